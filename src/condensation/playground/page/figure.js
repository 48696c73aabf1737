/** A picture on a canvas: its size on this screen, scales and axes, text, and images of numbers. */

import { palette } from "./colours.js";
import { niceTicks, num, power, tickLabels } from "./views/numbers.js";

export { palette };

const FAMILY = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif";

/**
 * Bind a view to a canvas. `paint(scene)` draws it at the canvas's present size in the screen's own pixels, `box()` is
 * where in CSS pixels, for `view.hit`; it paints again by itself when the canvas is resized; `release()` ends that.
 */
export function mount(view, canvas) {
  const g = canvas.getContext("2d");
  const size = { w: canvas.clientWidth, h: canvas.clientHeight };
  let scene = null;
  const box = () => ({ x: 0, y: 0, w: size.w, h: size.h });
  const paint = (next) => {
    scene = next;
    if (!(size.w > 0 && size.h > 0)) return;
    const ratio = Math.min(3, globalThis.devicePixelRatio || 1);
    const [w, h] = [Math.round(size.w * ratio), Math.round(size.h * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, size.w, size.h);
    g.save();
    view.draw(g, box(), scene);
    g.restore();
  };
  const observer = new ResizeObserver(() => {
    [size.w, size.h] = [canvas.clientWidth, canvas.clientHeight];
    if (scene) paint(scene);
  });
  observer.observe(canvas);
  return { paint, box, release: () => observer.disconnect() };
}

/** Size of the text in a box: 12 px in a small card, more where there is room, as on a projector. */
export function textSize(box) {
  return Math.min(18, Math.max(12, Math.round(Math.min(box.w / 60, box.h / 45) + 2)));
}

export function font(size, weight = 400) {
  return `${weight} ${size}px ${FAMILY}`;
}

let ruler = null;

/** Width of a text in CSS pixels; pictures and hits use the same ruler. */
export function widthOf(text, size, weight = 400) {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = font(size, weight);
  return ruler.measureText(text).width;
}

/** Write a text; `halo` is a ground colour that keeps it readable over marks. */
export function write(g, text, x, y, { size, colour, align = "left", base = "alphabetic", weight = 400, halo = null }) {
  g.font = font(size, weight);
  g.textAlign = align;
  g.textBaseline = base;
  if (halo) {
    g.strokeStyle = halo;
    g.lineWidth = 4;
    g.lineJoin = "round";
    g.strokeText(text, x, y);
  }
  g.fillStyle = colour;
  g.fillText(text, x, y);
}

/** The text, cut so that it fits into a width. */
export function cut(text, width, size, weight = 400) {
  if (widthOf(text, size, weight) <= width) return text;
  let end = text.length;
  while (end > 1 && widthOf(`${text.slice(0, end)}\u2026`, size, weight) > width) end--;
  return `${text.slice(0, end).trimEnd()}\u2026`;
}

/** A sentence in the middle of an empty picture, in as many rows as it takes. */
export function say(g, box, sentence, scene) {
  const [size, pal] = [textSize(box), palette(scene.theme)];
  const rows = [""];
  for (const word of sentence.split(" ")) {
    const longer = rows.at(-1) ? `${rows.at(-1)} ${word}` : word;
    if (widthOf(longer, size) > 0.8 * box.w && rows.at(-1)) rows.push(word);
    else rows[rows.length - 1] = longer;
  }
  rows.forEach((row, k) => {
    const y = box.y + box.h / 2 + (k - (rows.length - 1) / 2) * 1.5 * size;
    write(g, row, box.x + box.w / 2, y, { size, colour: pal.soft, align: "center", base: "middle" });
  });
}

/** A scale: values low..high to pixels a..b, by `forward` and its inverse; low and high are parted if they are equal. */
function scale(low, high, a, b, kind, forward, back) {
  const [f0, f1] = [forward(low), forward(high)];
  const slope = (b - a) / (f1 - f0);
  return { kind, low, high, a, b, to: (v) => a + slope * (forward(v) - f0), from: (px) => back(f0 + (px - a) / slope) };
}

export function linear(low, high, a, b) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) [low, high] = [0, 1];
  if (!(high > low)) {
    const pad = 0.5 * Math.abs(low) || 0.5;
    [low, high] = [low - pad, low + pad];
  }
  return scale(low, high, a, b, "linear", (v) => v, (v) => v);
}

export function logarithmic(low, high, a, b) {
  if (!(low > 0) || !Number.isFinite(high)) [low, high] = [1e-3, 1];
  if (!(high > 1.001 * low)) [low, high] = [low / 2, low * 2];
  return scale(low, high, a, b, "log", (v) => Math.log10(v), (v) => 10 ** v);
}

/** For counts and steps: logarithmic, but with a place for zero. */
export function countScale(low, high, a, b) {
  return scale(low, Math.max(high, low + 1), a, b, "count", (v) => Math.log10(1 + Math.max(v, 0)), (v) => 10 ** v - 1);
}

const labelled = (values) => {
  const { labels, exponent } = tickLabels(values);
  return { ticks: values.map((value, k) => ({ value, text: labels[k] })), exponent };
};

/** Ticks of a scale as [{value, text}], and the power of ten that stands in the axis's name instead. */
export function ticksOf(own, wished) {
  if (own.kind === "linear") return labelled(niceTicks(own.low, own.high, wished));
  const counts = own.kind === "count";
  const decades = Math.log10(own.high / Math.max(own.low, counts ? 1 : 1e-300));
  const first = counts ? 0 : Math.floor(Math.log10(own.low));
  const within = decades > wished * 0.7 ? [1] : decades > 1.6 ? [1, 3] : [1, 2, 5];
  let values = [];
  for (let every = Math.max(1, Math.ceil(decades / Math.max(1, wished))); every >= 1 && values.length < 2; every--) {
    values = counts ? [0] : [];
    for (let k = first; k <= Math.ceil(Math.log10(own.high)) && values.length < 60; k += every) {
      for (const m of within) if (m * 10 ** k >= own.low * 0.999 && m * 10 ** k <= own.high * 1.001) values.push(m * 10 ** k);
    }
  }
  if (!counts && (values.length < 2 || (within.length === 3 && own.high < 0.1))) {
    return labelled(values.length < 2 ? niceTicks(own.low, own.high, wished).filter((v) => v > 0) : values);
  }
  const plain = values.every((v) => v === 0 || (v > 0.0009 && v < 1e5));
  const raised = (v) => (Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-6 ? power(Math.round(Math.log10(v))) : "");
  return { ticks: values.map((value) => ({ value, text: plain || value === 0 ? num(value, 2) : raised(value) })), exponent: 0 };
}

const LOW = 230; // boxes less high have the name of x inside of the plot

/**
 * The area of a plot inside a box, its margins for tick labels and names of the axes taken away. In a low box it is
 * `compact`: the name of x goes inside, unless the picture writes it by itself (`below`).
 */
export function inside(box, { left = 0, right = 0, top = 0, below = false } = {}) {
  const size = textSize(box);
  const compact = box.h < LOW && !below;
  const [l, t, b] = [3.6 * size + left, 2.2 * size + top, (compact ? 1.8 : 3.3) * size];
  const [w, h] = [Math.max(8, box.w - l - size - right), Math.max(8, box.h - t - b)];
  return { x: box.x + l, y: box.y + t, w, h, compact };
}

const named = (name, exponent) => (exponent ? `${name}  (\u00d7\u202f${power(exponent)})` : name);

/**
 * Axes of a plot: a grid, tick labels, the name of y above its axis and that of x below. `xTicks` are ticks of
 * x's own, with `whole` y has whole numbers only.
 */
export function axes(g, area, x, y, { xName = "", yName = "", size, pal, whole = false, xTicks = null }) {
  const across = xTicks ?? ticksOf(x, Math.max(2, Math.floor(area.w / (5 * size))));
  const room = Math.max(2, Math.floor(area.h / (2.8 * size)));
  const up = ticksOf(y, whole ? Math.min(room, y.high - y.low) : room);
  const [right, bottom] = [area.x + area.w, area.y + area.h];
  g.lineWidth = 1;
  g.setLineDash([]);
  g.strokeStyle = pal.grid;
  g.beginPath();
  for (const { value } of across.ticks) line(g, crisp(x.to(value)), area.y, crisp(x.to(value)), bottom);
  for (const { value } of up.ticks) line(g, area.x, crisp(y.to(value)), right, crisp(y.to(value)));
  g.stroke();
  g.strokeStyle = pal.faint;
  g.beginPath();
  line(g, area.x, crisp(bottom), right, crisp(bottom));
  line(g, crisp(area.x), area.y, crisp(area.x), bottom);
  g.stroke();
  let end = -Infinity;
  for (const { value, text } of across.ticks.filter((tick) => tick.text)) {
    const half = widthOf(text, size) / 2;
    const middle = Math.min(x.to(value), right + size - half);
    if (middle - half < end + 4) continue;
    end = middle + half;
    write(g, text, middle, bottom + 0.4 * size, { size, colour: pal.soft, align: "center", base: "top" });
  }
  for (const { value, text } of up.ticks) {
    write(g, text, area.x - 0.5 * size, y.to(value), { size, colour: pal.soft, align: "right", base: "middle" });
  }
  const above = named(yName, up.exponent);
  write(g, cut(above, right - area.x + 2.8 * size, size), area.x - 2.8 * size, area.y - 0.95 * size, { size, colour: pal.ink });
  const below = named(xName, across.exponent);
  if (area.compact) write(g, below, right - 4, bottom - 0.45 * size, { size, colour: pal.soft, align: "right", halo: pal.ground });
  else write(g, below, right, bottom + 2.85 * size, { size, colour: pal.ink, align: "right" });
}

/** A straight piece added to the path. */
export function line(g, x0, y0, x1, y1) {
  g.moveTo(x0, y0);
  g.lineTo(x1, y1);
}

/** The middle of a pixel, where a thin line is sharp. */
export const crisp = (v) => Math.round(v - 0.5) + 0.5;

/** Keep what follows inside an area, until `restore`. */
export function clipTo(g, area) {
  g.save();
  g.beginPath();
  g.rect(area.x, area.y, area.w, area.h);
  g.clip();
}

/**
 * The path of a curve through the points k = 0 .. length - 1. Where many fall on one column of pixels only their first,
 * least, largest and last are drawn, so that long curves stay quick and keep their peaks. NaN interrupts it.
 */
export function curvePath(g, length, px, py) {
  g.beginPath();
  let column = NaN;
  let low = 0;
  let high = 0;
  let last = 0;
  let open = false;
  const close = () => {
    if (!open) return;
    if (low !== last || high !== last) {
      g.lineTo(column, low);
      g.lineTo(column, high);
    }
    g.lineTo(column, last);
  };
  for (let k = 0; k < length; k++) {
    const x = px(k);
    const y = py(k);
    if (!Number.isFinite(x) || !Number.isFinite(y)) {
      close();
      open = false;
      column = NaN;
    } else if (open && Math.abs(x - column) < 0.5) {
      low = Math.min(low, y);
      high = Math.max(high, y);
      last = y;
    } else {
      close();
      if (open) g.lineTo(x, y);
      else g.moveTo(x, y);
      column = x;
      low = high = last = y;
      open = true;
    }
  }
  close();
}

const sheets = new Map();

/** A canvas of w x h pixels for a name, kept for the next time: its 2d context and image data. */
export function sheet(name, w, h) {
  let own = sheets.get(name);
  if (!own || own.w !== w || own.h !== h) {
    const canvas = own?.canvas ?? document.createElement("canvas");
    [canvas.width, canvas.height] = [w, h];
    const g = canvas.getContext("2d", { willReadFrequently: true });
    const data = g.createImageData(w, h);
    own = { canvas, g, data, pixels: new Uint32Array(data.data.buffer), w, h };
    sheets.set(name, own);
  }
  return own;
}

/** Draw a sheet's pixels into a rectangle; smooth or as squares. */
export function stamp(g, own, x, y, w, h, smooth = false) {
  own.g.putImageData(own.data, 0, 0);
  const before = g.imageSmoothingEnabled;
  g.imageSmoothingEnabled = smooth;
  g.drawImage(own.canvas, x, y, w, h);
  g.imageSmoothingEnabled = before;
}

/** A colour bar standing upright, with values beside it as [{at: 0..1, text}], its name above. */
export function colourBar(g, x, y, w, h, map, marks, { size, pal, name = "" }) {
  const own = sheet(`bar ${map.css(0)}`, 1, map.size);
  for (let k = 0; k < map.size; k++) own.pixels[map.size - 1 - k] = map.table[k];
  stamp(g, own, x, y, w, h, true);
  g.strokeStyle = pal.faint;
  g.lineWidth = 1;
  g.strokeRect(x, y, w, h);
  for (const { at, text } of marks) {
    write(g, text, x + w + 0.4 * size, y + h * (1 - at), { size, colour: pal.soft, base: "middle" });
  }
  if (name) write(g, name, x, y - 0.6 * size, { size, colour: pal.ink });
}

/** Orientation against amplitude: where each neuron points, and how large it is. */

import { lineColour, palette } from "../colours.js";
import { axes, clipTo, crisp, inside, line, linear, logarithmic, say, textSize } from "../figure.js";
import { count, num } from "./numbers.js";
import { arrayOf, drawDots, drawHover, linesOf, nearestUnit, tellUnit, unitState } from "./units.js";

const SPREAD = 40; // of the amplitudes, from which on their axis is logarithmic
const xs = new Float32Array(400);
const ys = new Float32Array(400);
const QUARTERS = ["\u2212\u03c0", "\u2212\u03c0/2", "0", "\u03c0/2", "\u03c0"];
const TICKS = { ticks: QUARTERS.map((text, k) => ({ value: ((k - 2) * Math.PI) / 2, text })), exponent: 0 };

/** The range of amplitudes, and whether it is wide enough for a logarithmic axis. */
function range(scene) {
  let [low, high] = [Infinity, 0];
  for (const r of arrayOf(scene.frame, "amplitude") ?? []) {
    if (!(r > 0) || !Number.isFinite(r)) continue;
    low = Math.min(low, r);
    high = Math.max(high, r);
  }
  if (!(high > 0)) return { low: 0, high: 1, log: false };
  const log = scene.options?.amplitude ? scene.options.amplitude === "log" : high / low > SPREAD;
  return log ? { low: Math.max(low / 1.6, high * 1e-12), high: high * 1.6, log } : { low: 0, high: high * 1.1, log };
}

function place(box, scene) {
  const area = inside(box);
  const { low, high, log } = range(scene);
  const across = linear(-Math.PI, Math.PI, area.x, area.x + area.w);
  const up = (log ? logarithmic : linear)(low, high, area.y + area.h, area.y);
  return { area, across, up, log, size: textSize(box) };
}

function pixels(scene, { across, up }) {
  const [angle, amplitude] = [arrayOf(scene.frame, "angle"), arrayOf(scene.frame, "amplitude")];
  const n = Math.min(xs.length, unitState(scene).n, angle?.length ?? 0, amplitude?.length ?? 0);
  for (let i = 0; i < n; i++) {
    xs[i] = across.to(angle[i]);
    ys[i] = amplitude[i] >= 0 ? (amplitude[i] > 0 || up.kind === "linear" ? up.to(amplitude[i]) : up.a) : NaN;
  }
  xs.fill(NaN, n);
  return n;
}

/** The predicted angles: u, and -u unless the lines are oriented. */
function drawAngles(g, { area, across }, scene, pal) {
  const lines = linesOf(scene.layer);
  const xy = arrayOf(scene.layer, "line_xy");
  if (!xy) return;
  for (let k = lines.total - 1; k >= 0; k--) {
    if (!(Math.hypot(xy[2 * k], xy[2 * k + 1]) > 0.02)) continue;
    const attracts = lines.attracts(k);
    g.strokeStyle = attracts ? lineColour(lines.rank(k), scene.theme) : pal.soft;
    g.lineWidth = attracts ? 2 : 1;
    g.globalAlpha = attracts ? 0.55 : 0.6;
    for (const side of lines.oriented ? [1] : [1, -1]) {
      const x = across.to(Math.atan2(side * xy[2 * k + 1], side * xy[2 * k]));
      g.setLineDash(attracts ? (side > 0 ? [] : [7, 4]) : [1, 4]);
      g.beginPath();
      line(g, crisp(x), area.y, crisp(x), area.y + area.h);
      g.stroke();
    }
  }
  g.setLineDash([]);
  g.globalAlpha = 1;
}

function draw(g, box, scene) {
  const pal = palette(scene.theme);
  if (!scene.frame) {
    say(g, box, "Orientation and amplitude appear with the first frame.", scene);
    return;
  }
  const spot = place(box, scene);
  const { area, across, up, size } = spot;
  const exact = scene.layer?.plane?.exact ?? true;
  const xName = exact ? "orientation: angle of w" : "angle in the plane shown";
  axes(g, area, across, up, { xName, yName: "amplitude |w|", size, pal, xTicks: TICKS });
  clipTo(g, area);
  drawAngles(g, spot, scene, pal);
  g.restore();
  const n = pixels(scene, spot);
  const radius = Math.min(4.8, Math.max(3, box.w / 130));
  if (n) drawDots(g, unitState(scene), xs, ys, radius, scene.theme);
  const own = scene.hover?.unit;
  if (own >= 0 && own < n) drawHover(g, xs[own], ys[own], radius, scene.theme);
}

function hit(px, py, box, scene) {
  if (!scene.frame) return null;
  return nearestUnit(pixels(scene, place(box, scene)), xs, ys, px, py, 14);
}

function sentence(scene) {
  const { frame, layer } = scene;
  if (!frame) return "Where each neuron points, from \u2212\u03c0 to \u03c0, and how large it is.";
  let [low, high] = [Infinity, 0];
  for (const r of arrayOf(frame, "amplitude") ?? []) {
    if (r > 0 && r < low) low = r;
    if (r > high && Number.isFinite(r)) high = r;
  }
  if (!(high > 0)) return "All amplitudes are zero: there is no orientation.";
  const sizes = low < 0.97 * high ? `Amplitudes reach from ${num(low, 2)} to ${num(high, 2)}` : `All amplitudes are near ${num(high, 2)}`;
  const sides = frame.lines?.condensed ? count(frame.lines.orientations, "orientation") : "";
  const predicted = linesOf(layer).attracting.length ? "; upright lines are the predicted angles, dashed the opposite ones" : "";
  const found = sides ? `, at ${sides}` : frame.step === 0 ? ", at angles drawn by chance" : "";
  return `${sizes}${found}${linesOf(layer).oriented ? predicted.replace(", dashed the opposite ones", "") : predicted}.`;
}

export const view = {
  name: "orientation", title: "Orientation and amplitude", shows: () => true, sentence, draw, hit,
  tip: (own, scene) => tellUnit(own?.unit, scene),
};

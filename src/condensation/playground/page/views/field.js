/** The weights in the plane: the direction field, the predicted lines, and the neurons on their way to them. */

import { lineColour, palette } from "../colours.js";
import { clipTo, crisp, inside, line, linear, say, textSize, ticksOf, widthOf, write } from "../figure.js";
import { count, percent, power } from "./numbers.js";
import { validUntil } from "./time.js";
import { arrayOf, drawDots, drawHover, legendColumn, linesOf, nearestUnit, nounOf, tellUnit, unitState } from "./units.js";

const ROOM = 1.14; // of the largest coordinate
const xs = new Float32Array(400);
const ys = new Float32Array(400);

/** Half the side of the plane: a little more than the largest coordinate of a neuron. */
function halfSide(xy) {
  let most = 0;
  for (const v of xy ?? []) if (Number.isFinite(v)) most = Math.max(most, Math.abs(v));
  return most > 0 ? ROOM * most : 1;
}

/** Where the plane lies in the box, a square; the legend stands on its right if there is room. */
function place(box, scene) {
  const size = textSize(box);
  const area = inside(box, { below: true });
  const fits = (width) => area.w - Math.min(area.h, area.w) >= width || box.w >= 1.05 * box.h + 0.6 * width;
  const long = isLarge(box) && fits(legendWidth(scene, size, true));
  const wished = legendWidth(scene, size, long);
  const beside = fits(wished);
  const side = Math.max(8, Math.min(area.h, area.w - (beside ? wished : 0)));
  const slack = area.w - side - (beside ? wished : 0);
  const x = area.x + Math.max(0, slack) / 2;
  const square = { x, y: area.y + Math.max(0, area.h - side) / 2, w: side, h: side };
  const half = halfSide(arrayOf(scene.frame, "xy"));
  const across = linear(-half, half, square.x, square.x + side);
  const up = linear(-half, half, square.y + side, square.y);
  return { size, square, half, across, up, beside, long, legend: x + side + 1.2 * size };
}

/** Pixels of the neurons into xs and ys; how many there are. */
function pixels(scene, { across, up }) {
  const xy = arrayOf(scene.frame, "xy");
  const n = Math.min(xs.length, unitState(scene).n, (xy?.length ?? 0) / 2);
  for (let i = 0; i < n; i++) [xs[i], ys[i]] = [across.to(xy[2 * i]), up.to(xy[2 * i + 1])];
  xs.fill(NaN, n);
  return n;
}

const isLarge = (box) => box.w >= 640;
const dotRadius = (square) => Math.min(5.5, Math.max(3.2, square.w / 100));

/** Arrows of unit length in the middle of their places in the square. */
function drawArrows(g, square, layer, colour) {
  const arrows = arrayOf(layer, "arrows");
  const rows = Math.round(Math.sqrt((arrows?.length ?? 0) / 2));
  if (rows < 2) return;
  const every = Math.max(1, Math.ceil(13 / (square.w / rows)));
  const offset = Math.floor(((rows - 1) % every) / 2);
  const reach = 0.36 * Math.min(40, (every * square.w) / (rows - 1));
  g.strokeStyle = colour;
  g.lineWidth = square.w > 400 ? 1.3 : 1;
  g.setLineDash([]);
  g.beginPath();
  for (let row = offset; row < rows; row += every) {
    for (let column = offset; column < rows; column += every) {
      const [vx, vy] = [arrows[2 * (row * rows + column)], -arrows[2 * (row * rows + column) + 1]];
      if (!Number.isFinite(vx) || !Number.isFinite(vy) || vx * vx + vy * vy < 1e-6) continue;
      const x = square.x + (column / (rows - 1)) * square.w + reach * vx;
      const y = square.y + (1 - row / (rows - 1)) * square.h + reach * vy;
      const head = 0.55 * reach;
      line(g, x - 2 * reach * vx, y - 2 * reach * vy, x, y);
      g.moveTo(x - head * (vx - 0.6 * vy), y - head * (vy + 0.6 * vx));
      g.lineTo(x, y);
      g.lineTo(x - head * (vx + 0.6 * vy), y - head * (vy - 0.6 * vx));
    }
  }
  g.stroke();
}

const kept = new WeakMap();

/** The arrows, on a canvas from a picture of them that is kept: they do not change while the network is trained. */
function stampArrows(g, square, layer, pal) {
  if (!layer) return;
  if (!g.canvas) {
    clipTo(g, square);
    drawArrows(g, square, layer, pal.arrow);
    g.restore();
    return;
  }
  const ratio = Math.abs(g.getTransform().a) || 1; // pixels of this canvas to one of the page
  const key = `${square.w} ${ratio} ${pal.theme}`;
  let own = kept.get(layer);
  if (own?.key !== key) {
    const canvas = own?.canvas ?? document.createElement("canvas");
    canvas.width = canvas.height = Math.ceil(square.w * ratio);
    const into = canvas.getContext("2d");
    into.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawArrows(into, { x: 0, y: 0, w: square.w, h: square.h }, layer, pal.arrow);
    own = { key, canvas };
    kept.set(layer, own);
  }
  g.drawImage(own.canvas, square.x, square.y, own.canvas.width / ratio, own.canvas.height / ratio);
}

/** The lines through the origin; attracting ones full, with their number at the end. */
function drawLines(g, { square, size }, scene, pal) {
  const lines = linesOf(scene.layer);
  const xy = arrayOf(scene.layer, "line_xy");
  if (!xy) return;
  const [cx, cy, reach] = [square.x + square.w / 2, square.y + square.h / 2, square.w];
  for (let k = lines.total - 1; k >= 0; k--) {
    const length = Math.hypot(xy[2 * k], xy[2 * k + 1]);
    if (!(length > 0.02)) continue;
    const [ux, uy] = [xy[2 * k] / length, -xy[2 * k + 1] / length];
    const attracts = lines.attracts(k);
    const back = lines.oriented ? 0 : reach;
    g.strokeStyle = attracts ? lineColour(lines.rank(k), scene.theme) : pal.soft;
    g.lineWidth = attracts ? Math.max(2, square.w / 170) : 1.2;
    g.lineCap = attracts ? "butt" : "round";
    g.globalAlpha = (attracts ? 0.6 : 0.8) * Math.max(0.25, Math.min(1, length));
    g.setLineDash(attracts ? [] : [1, 4]);
    g.beginPath();
    line(g, cx - back * ux, cy - back * uy, cx + reach * ux, cy + reach * uy);
    g.stroke();
  }
  [g.globalAlpha, g.lineCap] = [1, "butt"];
  g.setLineDash([]);
  for (const k of lines.attracting.slice(0, 12)) {
    const [ux, uy] = [xy[2 * k], -xy[2 * k + 1]];
    const most = Math.max(Math.abs(ux), Math.abs(uy));
    if (!(most > 0.02)) continue;
    const far = square.w / 2 - 0.95 * size;
    const colour = lineColour(lines.rank(k), scene.theme);
    const [x, y] = [cx + (far * ux) / most, cy + (far * uy) / most];
    write(g, String(lines.rank(k) + 1), x, y, { size, colour, align: "center", base: "middle", weight: 700, halo: pal.ground });
  }
}

/** The frame of the plane with its axes through the origin and ticks at the edge. */
function drawFrame(g, { square, across, up, size, half }, scene, pal) {
  const [right, bottom] = [square.x + square.w, square.y + square.h];
  const wished = Math.max(2, Math.floor(square.w / (5.5 * size)));
  const { ticks, exponent } = ticksOf(linear(-half, half, 0, 1), wished);
  g.lineWidth = 1;
  g.strokeStyle = pal.faint;
  g.strokeRect(crisp(square.x), crisp(square.y), Math.round(square.w), Math.round(square.h));
  g.beginPath();
  for (const { value } of ticks) {
    line(g, crisp(across.to(value)), bottom, crisp(across.to(value)), bottom + 4);
    line(g, square.x, crisp(up.to(value)), square.x - 4, crisp(up.to(value)));
  }
  g.stroke();
  for (const { value, text } of ticks) {
    write(g, text, across.to(value), bottom + 0.5 * size, { size, colour: pal.soft, align: "center", base: "top" });
    write(g, text, square.x - 0.6 * size, up.to(value), { size, colour: pal.soft, align: "right", base: "middle" });
  }
  const labels = scene.layer?.plane?.labels ?? ["", ""];
  const factor = exponent ? `  (\u00d7\u202f${power(exponent)})` : "";
  write(g, `${labels[1]}${factor}`, square.x - 2.4 * size, square.y - 0.6 * size, { size, colour: pal.ink });
  write(g, `${labels[0]}${factor}`, right, bottom + 2.85 * size, { size, colour: pal.ink, align: "right" });
}

const legends = new WeakMap();

/** Lines with the number of neurons that are coloured by them, and what the marks mean; in more words if there is room. */
function legendOf(scene, long) {
  const { frame, theme } = scene;
  const pal = palette(theme);
  if (!frame) return [];
  const state = unitState(scene);
  const before = legends.get(state);
  if (before?.theme === theme && before.long === long) return before.entries;
  const tally = new Map();
  for (const rank of state.rank) tally.set(rank, (tally.get(rank) ?? 0) + 1);
  const lines = linesOf(scene.layer);
  const known = new Set([...lines.attracting.map((k) => lines.rank(k)), ...tally.keys()]);
  const ranks = [...known].filter((rank) => rank >= 0).sort((a, b) => a - b);
  const units = (number) => (long ? count(number, nounOf(scene.layer)) : String(number));
  const noun = state.by === "found" ? "found" : lines.oriented ? "direction" : "line";
  const entries = ranks.slice(0, 6).map((rank) => {
    return { kind: "dot", colour: lineColour(rank, theme), text: `${noun} ${rank + 1}: ${units(tally.get(rank) ?? 0)}` };
  });
  if (ranks.length > 6) entries.push({ kind: "", colour: "", text: `and ${ranks.length - 6} more` });
  if (tally.get(-1)) entries.push({ kind: "dot", colour: pal.none, text: `no line: ${units(tally.get(-1))}` });
  if (state.along.includes(0)) entries.push({ kind: "ring", colour: pal.ink, text: long ? "points against u" : "against u" });
  if (lines.attracting.length) entries.push({ kind: "line", colour: pal.ink, text: long ? "line that attracts" : "attracts" });
  if (lines.attracting.length < lines.total) entries.push({ kind: "dotted", colour: pal.soft, text: long ? "stationary only" : "stationary" });
  if (arrayOf(scene.layer, "arrows")) entries.push({ kind: "arrow", colour: pal.soft, text: long ? "field where a = 1" : "field" });
  legends.set(state, { theme, long, entries });
  return entries;
}

function legendWidth(scene, size, long) {
  const widest = Math.max(widthOf("stationary", size), ...legendOf(scene, long).map(({ text }) => widthOf(text, size)));
  return widest + 3.6 * size;
}

function draw(g, box, scene) {
  const pal = palette(scene.theme);
  if (!scene.frame && !scene.layer) {
    say(g, box, "The weights appear with the first frame.", scene);
    return;
  }
  const spot = place(box, scene);
  const { square, size } = spot;
  stampArrows(g, square, scene.layer, pal);
  drawFrame(g, spot, scene, pal);
  clipTo(g, square);
  drawLines(g, spot, scene, pal);
  g.restore();
  const n = pixels(scene, spot);
  const radius = dotRadius(square);
  if (n) drawDots(g, unitState(scene), xs, ys, radius, scene.theme);
  const own = scene.hover?.unit;
  if (own >= 0 && own < n) drawHover(g, xs[own], ys[own], radius, scene.theme);
  if (spot.beside) {
    const rows = Math.max(1, Math.floor(square.h / (1.55 * size)));
    legendColumn(g, legendOf(scene, spot.long).slice(0, rows), spot.legend, square.y + 0.8 * size, size, pal);
  }
  if (!scene.layer) {
    const [x, y] = [square.x + square.w / 2, square.y + 1.2 * size];
    write(g, "predicting \u2026", x, y, { size, colour: pal.soft, align: "center", base: "middle", halo: pal.ground });
  }
}

function hit(px, py, box, scene) {
  if (!scene.frame) return null;
  const spot = place(box, scene);
  return nearestUnit(pixels(scene, spot), xs, ys, px, py, 14);
}

/** Where the neurons are now, and what theory predicted. */
function sentence(scene) {
  const { frame, layer } = scene;
  if (!frame) return "Each neuron will be a point: its input weights in the plane.";
  return [progress(scene), shown(scene)].filter(Boolean).join(" ");
}

function progress(scene) {
  const { frame, layer } = scene;
  const n = unitState(scene).n;
  const [found, expected] = [frame.lines, layer?.count];
  const noun = nounOf(layer);
  const what = layer?.kind === "orientations" ? "orientation" : "line";
  const until = frame.valid && !frame.valid.holds ? validUntil(scene) : NaN;
  const when = until > 0 ? `for the time until step ${until}` : "before training";
  const theory = Number.isFinite(expected ?? NaN) ? `theory predicted ${expected} ${when}` : "";
  if (frame.diverged !== null && frame.diverged !== undefined) return `Training diverged at step ${frame.diverged}.`;
  if (found?.condensed) {
    const label = arrayOf(frame, "label");
    const on = label ? label.reduce((sum, k) => sum + (k >= 0 ? 1 : 0), 0) : n;
    const all = on === n ? (n === 1 ? "The neuron has" : `All ${n} ${noun}s have`) : `${on} of ${n} ${noun}s have`;
    const there = theory && Number.isFinite(frame.agree ?? NaN) ? `, and ${percent(frame.agree)} are on their predicted lines` : "";
    return `${all} turned to ${count(found.count, "line")}${theory ? `; ${theory}` : ""}${there}${why(layer)}.`;
  }
  const many = count(n, noun);
  const now = frame.step === 0 ? `The ${many} point in many directions before training` : `At step ${frame.step} the ${many} are not on common lines`;
  if (!Number.isFinite(expected ?? NaN)) return `${now}${why(layer)}.`;
  const there = frame.agree < 0.005 ? "none is there" : `${percent(frame.agree)} of them are there`;
  const agree = frame.step > 0 && Number.isFinite(frame.agree ?? NaN) ? `, ${there}` : "";
  return `${now}; theory predicts ${count(expected, what)}${agree}.`;
}

const why = (layer) => (layer?.why ? `; no lines are predicted: ${layer.why.replace(/\.$/, "")}` : "");

/** What the plane and the lines are. */
function shown({ layer, opened }) {
  if (!layer) return "The prediction is being computed.";
  const sentences = [];
  if (layer.kind === "cube") {
    const whose = opened?.settings?.optimizer === "sign_gd" ? "The lines of sign descent" : "Adam's lines";
    sentences.push(`${whose} are diagonals of a cube.`);
  }
  if (layer.plane && !layer.plane.exact) sentences.push(`The picture is a projection of ${layer.inputs} inputs.`);
  return sentences.join(" ");
}

export const view = {
  name: "field", title: "Weights in their direction field", wide: true, shows: () => true, sentence, draw, hit,
  tip: (own, scene) => tellUnit(own?.unit, scene),
};

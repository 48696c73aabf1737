/** What the pictures of a layer's units share: the line and side of each unit, their dots, legends and what is told of one. */

import { LINES, lineColour, palette } from "../colours.js";
import { widthOf, write } from "../figure.js";
import { num, percent } from "./numbers.js";

/** An array of a message, or null where it is missing or empty. */
export function arrayOf(message, name) {
  const found = message?.arrays?.[name];
  return found && found.length ? found : null;
}

/** What a unit of a layer is called. */
export const nounOf = (layer) => (layer?.attention ? "row" : layer?.image ? "unit" : "neuron");

/** How many units the frame shows. */
export function unitCount(scene) {
  return arrayOf(scene.frame, "amplitude")?.length ?? (arrayOf(scene.frame, "xy")?.length ?? 0) / 2;
}

const ranked = new WeakMap();

/**
 * The predicted lines of a layer: `total`, `attracts(k)`, `rank(k)` (lines that attract are counted first, so that their
 * colours differ), `attracting` (numbers of those that attract), `oriented`.
 */
export function linesOf(layer) {
  if (!layer) return NO_LINES;
  let found = ranked.get(layer);
  if (!found) {
    const flags = arrayOf(layer, "attracts");
    const xy = arrayOf(layer, "line_xy");
    const total = flags ? flags.length / 2 : xy ? xy.length / 2 : 0;
    const pulls = (k) => !flags || flags[2 * k] > 0 || flags[2 * k + 1] > 0;
    const all = Array.from({ length: total }, (_, k) => k);
    const order = [...all.filter(pulls), ...all.filter((k) => !pulls(k))];
    const ranks = new Int16Array(total);
    order.forEach((k, place) => (ranks[k] = place));
    const rank = (k) => (k >= 0 && k < total ? ranks[k] : -1);
    found = { total, attracts: pulls, rank, attracting: all.filter(pulls), oriented: layer.kind === "orientations" };
    ranked.set(layer, found);
  }
  return found;
}

const NO_LINES = { total: 0, attracts: () => false, rank: () => -1, attracting: [], oriented: false };

const states = new WeakMap();

/**
 * For each unit shown: `line` (number of its line, -1 none), `rank` (what its colour goes by, -1 none), `along` (1 if it
 * points along the line's u, 0 if against), and `by`: "fate", "nearest", "found" (no lines are predicted) or "none".
 */
export function unitState(scene) {
  const { frame, layer } = scene;
  if (!frame) return { n: 0, line: [], rank: [], along: [], by: "none" };
  const kept = states.get(frame);
  if (kept && kept.layer === layer) return kept;
  const n = unitCount(scene);
  const lines = linesOf(layer);
  const fate = layer?.colouring === "fate" ? arrayOf(layer, "fate") : null;
  const chosen = arrayOf(frame, "chosen") ?? arrayOf(layer, "chosen");
  const nearest = arrayOf(frame, "nearest");
  const label = arrayOf(frame, "label");
  let by = "none";
  if (lines.total) by = fate ? "fate" : nearest ? "nearest" : "none";
  else if (layer && label) by = "found";
  const state = { layer, by, n, line: new Int16Array(n), rank: new Int16Array(n), along: new Uint8Array(n) };
  for (let i = 0; i < n; i++) {
    const own = fate && fate.length !== n && chosen ? chosen[i] : i;
    const k = by === "fate" ? fate[own] : by === "nearest" ? nearest[i] : by === "found" ? label[i] : -1;
    state.line[i] = Number.isInteger(k) ? k : -1;
    state.rank[i] = by === "found" ? state.line[i] : lines.rank(state.line[i]);
    state.along[i] = by === "found" || cosine(scene, i, state.line[i]) >= 0 ? 1 : 0;
  }
  states.set(frame, state);
  return state;
}

/** The cosine of a unit with a predicted line's u; 0 where there is none. */
export function cosine(scene, i, k) {
  const w = arrayOf(scene.frame, "w");
  const u = arrayOf(scene.layer, "lines");
  const [n, total] = [unitCount(scene), linesOf(scene.layer).total];
  if (!w || !u || !(k >= 0 && k < total)) return 0;
  const d = w.length / n;
  if (u.length / total !== d) return 0;
  let [dot, size] = [0, 0];
  for (let j = 0; j < d; j++) {
    dot += w[i * d + j] * u[k * d + j];
    size += w[i * d + j] ** 2;
  }
  return size > 0 ? dot / Math.sqrt(size) : 0;
}

/**
 * The units as dots at px, py: filled along their line, rings against it; units of no line below the others. A faint
 * disc below each adds up to a halo where many units are at one place.
 */
export function drawDots(g, state, px, py, radius, theme) {
  const pal = palette(theme);
  g.setLineDash([]);
  g.globalAlpha = theme === "dark" ? 0.06 : 0.045;
  for (let i = 0; i < state.n; i++) {
    if (!Number.isFinite(px[i]) || !Number.isFinite(py[i])) continue;
    g.fillStyle = lineColour(state.rank[i], theme);
    g.beginPath();
    g.arc(px[i], py[i], 2.3 * radius, 0, 2 * Math.PI);
    g.fill();
  }
  for (let colour = -1; colour < LINES; colour++) {
    const own = lineColour(colour, theme);
    g.globalAlpha = colour < 0 ? 0.75 : 1;
    for (let i = 0; i < state.n; i++) {
      const rank = state.rank[i];
      if ((rank < 0 ? -1 : rank % LINES) !== colour || !Number.isFinite(px[i]) || !Number.isFinite(py[i])) continue;
      const along = state.along[i];
      g.fillStyle = along ? own : pal.ground;
      g.strokeStyle = along ? pal.ground : own;
      g.lineWidth = along ? 0.9 : 1.6;
      g.beginPath();
      g.arc(px[i], py[i], along ? radius : radius - 0.5, 0, 2 * Math.PI);
      g.fill();
      g.stroke();
    }
  }
  g.globalAlpha = 1;
}

/** A ring around the unit that the pointer is at, in all pictures. */
export function drawHover(g, x, y, radius, theme) {
  if (!Number.isFinite(x) || !Number.isFinite(y)) return;
  const pal = palette(theme);
  for (const [colour, width] of [[pal.ground, 4], [pal.ink, 2]]) {
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.beginPath();
    g.arc(x, y, radius + 4, 0, 2 * Math.PI);
    g.stroke();
  }
}

/** The unit nearest to a point, within `reach` pixels. */
export function nearestUnit(n, px, py, x, y, reach) {
  let [best, found] = [reach * reach, -1];
  for (let i = 0; i < n; i++) {
    const distance = (px[i] - x) ** 2 + (py[i] - y) ** 2;
    if (distance < best) [best, found] = [distance, i];
  }
  return found >= 0 ? { unit: found } : null;
}

/** Marks of a legend: dot, ring, line, dash, dotted, arrow. */
function drawMark(g, kind, x, y, size, colour, ground) {
  const half = 0.7 * size;
  g.strokeStyle = g.fillStyle = colour;
  g.lineWidth = kind === "arrow" ? 1.2 : kind === "thick" ? 4 : 2;
  g.lineCap = kind === "thick" ? "round" : "butt";
  g.setLineDash(kind === "dash" ? [6, 4] : kind === "dotted" ? [1.5, 3] : kind === "thick" ? [0.1, 6] : []);
  g.beginPath();
  if (kind === "dot" || kind === "ring") {
    g.arc(x, y, 0.33 * size, 0, 2 * Math.PI);
    if (kind === "ring") {
      g.fillStyle = ground;
      g.fill();
      g.stroke();
    } else g.fill();
  } else {
    g.moveTo(x - half, y);
    g.lineTo(x + half, y);
    if (kind === "arrow") {
      g.moveTo(x + half - 4, y - 3);
      g.lineTo(x + half, y);
      g.lineTo(x + half - 4, y + 3);
    }
    g.stroke();
  }
  g.setLineDash([]);
  g.lineCap = "butt";
}

/** A legend of [{kind, colour, text}] downward from x, y (the first row's middle). */
export function legendColumn(g, entries, x, y, size, pal) {
  entries.forEach(({ kind, colour, text }, k) => {
    const middle = y + 1.55 * size * k;
    if (kind) drawMark(g, kind, x + 0.7 * size, middle, size, colour, pal.ground);
    write(g, text, x + 1.9 * size, middle, { size, colour: kind ? pal.ink : pal.soft, base: "middle" });
  });
}

/** A legend in rows from the left; returns the height it takes (`g` null: only that). */
export function legendRows(g, entries, x, y, width, size, pal) {
  let [at, row] = [0, 0];
  for (const { kind, colour, text } of entries) {
    const wide = 2 * size + widthOf(text, size) + 1.2 * size;
    if (at > 0 && at + wide > width + 1.2 * size) [at, row] = [0, row + 1];
    const middle = y + 1.5 * size * (row + 0.5);
    if (g) {
      drawMark(g, kind, x + at + 0.7 * size, middle, size, colour, pal.ground);
      write(g, text, x + at + 1.9 * size, middle, { size, colour: pal.ink, base: "middle" });
    }
    at += wide;
  }
  return entries.length ? 1.5 * size * (row + 1) : 0;
}

/** What is told of a unit beside the pointer. */
export function tellUnit(i, scene) {
  const { frame, layer } = scene;
  const [n, state] = [unitCount(scene), unitState(scene)];
  if (!frame || !(i >= 0 && i < n)) return [];
  const [w, a, amplitude] = ["w", "a", "amplitude"].map((name) => arrayOf(frame, name));
  const chosen = arrayOf(frame, "chosen") ?? arrayOf(layer, "chosen");
  const own = chosen ? chosen[i] : i;
  const texts = [`${nounOf(layer)} ${own + 1}`];
  if (w && w.length / n <= 3) texts.push(`w = (${Array.from(w.subarray((i * w.length) / n, ((i + 1) * w.length) / n), (v) => num(v)).join(", ")})`);
  if (amplitude) texts.push(`amplitude |w| = ${num(amplitude[i])}`);
  if (a && a.length === n) texts.push(`output weight a = ${num(a[i])}`);
  if (state.by === "found") texts.push(state.line[i] >= 0 ? `on line ${state.line[i] + 1} of those found` : "on no line");
  const k = state.line[i];
  if (state.by === "fate") {
    const sure = arrayOf(layer, "confidence");
    const share = sure ? sure[sure.length === n ? i : own] : NaN;
    const sides = arrayOf(layer, "fate_sign");
    const side = sides?.[sides.length === n ? i : own] < 0 ? "against" : "along";
    const cube = share ? " (decided)" : " (the rate decides)";
    const how = !Number.isFinite(share) ? "" : layer.kind === "cube" ? cube : ` (${percent(share)} sure)`;
    texts.push(k >= 0 ? `predicted: ${side} line ${state.rank[i] + 1}${how}` : "predicted: comes to no line");
  }
  if (k >= 0 && state.by !== "found") {
    const what = state.by === "fate" ? "with it" : `with the nearest line, ${state.rank[i] + 1},`;
    texts.push(`cosine ${what} now ${num(cosine(scene, i, k), 4)}`);
  }
  return texts;
}

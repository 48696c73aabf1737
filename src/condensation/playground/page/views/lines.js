/** How many lines the layer has, and its k_eff, against the step. */

import { palette } from "../colours.js";
import { axes, clipTo, countScale, curvePath, inside, line, linear, say, textSize } from "../figure.js";
import { count, num } from "./numbers.js";
import { drawCursor, drawMark, hitStep, rowAt, rows, stepName, stepScale, tellStep } from "./time.js";
import { legendRows } from "./units.js";

const FEW = 8; // up to which the axis of numbers is linear

const predicted = ({ layer }) => (Number.isFinite(layer?.count) ? layer.count : NaN);

function entriesOf(scene, pal) {
  const entries = [
    { kind: "line", colour: pal.colours[0], text: "lines found" },
    { kind: "line", colour: pal.colours[1], text: "k_eff" },
  ];
  if (Number.isFinite(predicted(scene))) entries.push({ kind: "dash", colour: pal.good, text: `predicted: ${predicted(scene)}` });
  return entries;
}

function place(box, scene) {
  const size = textSize(box);
  const pal = palette(scene.theme);
  const legend = legendRows(null, entriesOf(scene, pal), 0, 0, box.w - 2.4 * size, size, pal);
  const area = inside(box, { top: legend - 0.9 * size });
  let most = Math.max(2, predicted(scene) || 0);
  for (let k = 0; k < rows(scene.curve); k++) most = Math.max(most, scene.curve.lines[k] || 0, scene.curve.keff[k] || 0);
  if (!Number.isFinite(most)) most = 2;
  const up = most > FEW ? countScale(0, 1.3 * most, area.y + area.h, area.y) : linear(0, Math.ceil(most) + 0.6, area.y + area.h, area.y);
  return { size, area, up, across: stepScale(scene, area) };
}

function draw(g, box, scene) {
  const pal = palette(scene.theme);
  const { curve, hover } = scene;
  if (!rows(curve)) {
    say(g, box, "The number of lines appears with the first frame.", scene);
    return;
  }
  const { area, across, up, size } = place(box, scene);
  axes(g, area, across, up, { xName: stepName(across), size, pal, whole: true });
  legendRows(g, entriesOf(scene, pal), box.x + 0.8 * size, box.y + 0.2 * size, box.w - 2.4 * size, size, pal);
  const expected = predicted(scene);
  clipTo(g, { x: area.x - 5, y: area.y - 5, w: area.w + 10, h: area.h + 10 });
  if (Number.isFinite(expected)) {
    g.strokeStyle = pal.good;
    g.lineWidth = 1.8;
    g.setLineDash([6, 4]);
    g.beginPath();
    line(g, area.x, up.to(expected), area.x + area.w, up.to(expected));
    g.stroke();
    g.setLineDash([]);
  }
  [g.lineWidth, g.lineJoin] = [2.2, "round"];
  g.strokeStyle = pal.colours[1];
  curvePath(g, rows(curve), (k) => across.to(curve.step[k]), (k) => up.to(curve.keff[k]));
  g.stroke();
  g.strokeStyle = pal.colours[0];
  const found = (k) => (curve.lines[k] >= 0 ? up.to(curve.lines[k]) : NaN);
  const stairs = (k) => (k % 2 ? across.to(curve.step[(k + 1) / 2]) : across.to(curve.step[k / 2])); // a step goes up at its end
  curvePath(g, Math.max(1, 2 * rows(curve) - 1), stairs, (k) => found(Math.floor(k / 2)));
  g.stroke();
  drawCursor(g, area, across, scene);
  for (const step of [scene.frame?.step, hover?.step]) {
    const k = step >= 0 ? rowAt(curve, step) : -1;
    if (k < 0) continue;
    drawMark(g, across.to(curve.step[k]), up.to(curve.keff[k]), pal.colours[1], pal.ground);
    drawMark(g, across.to(curve.step[k]), found(k), pal.colours[0], pal.ground);
  }
  g.restore();
}

function hit(px, py, box, scene) {
  if (!rows(scene.curve)) return null;
  const { area, across } = place(box, scene);
  return hitStep(px, py, area, across);
}

function sentence(scene) {
  const { frame } = scene;
  if (!frame) return "The number of lines, and k_eff, the effective number of lines, which needs no grouping.";
  if (!frame.lines) return "No lines can be counted: the weights of this layer are zero or of a single input, with no directions to condense to.";
  const { count: found, k_eff: keff, condensed, cover } = frame.lines;
  const share = Number.isFinite(cover) ? ` with ${Math.round(100 * cover)}% of the weight` : "";
  const now = condensed ? `The layer is condensed on ${count(found, "line")}` : `The layer is not condensed: ${count(found, "group")}`;
  const equal = keff < 1.05 ? "; k_eff is 1" : `; it counts as ${num(keff, 2)} equal lines (k_eff)`;
  const size = Number.isFinite(keff) ? equal : "";
  return `${now}${share}${size}.`;
}

export const view = { name: "lines", title: "Number of lines", shows: () => true, sentence, draw, hit, tip: tellStep };

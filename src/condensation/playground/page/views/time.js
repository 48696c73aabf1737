/** The axis of steps that the loss and the lines share: its scale, its cursor, and what is told of a step. */

import { palette } from "../colours.js";
import { countScale, crisp, line, linear } from "../figure.js";
import { count, exactness, num, percent } from "./numbers.js";

export const HOLDS = 0.05; // error of the leading order up to which theory holds
export const STAGE = 0.7; // share of the first loss above which a run is in its initial stage
const SHORT = 0.07; // a stage that takes less than this share of the axis asks for a logarithmic one

/** The number of rows of a curve. */
export const rows = (curve) => curve?.length ?? 0;

/** The last step of the axis. */
export function lastStep({ curve, frame, opened }) {
  const known = rows(curve) ? curve.step[rows(curve) - 1] : 0;
  return Math.max(1, known || 0, frame?.end ?? 0, frame?.step ?? 0, opened?.last ?? 0);
}

/**
 * The step up to which theory holds, from step 0 on: the leading order, and the predicted lines, which turn. -1 if it
 * never does; NaN where it is not known.
 */
export function validUntil({ curve, frame }) {
  let [last, known] = [-1, false];
  const turns = frame?.valid?.turned_at ?? Infinity;
  for (let k = 0; k < rows(curve); k++) {
    const error = curve.error[k];
    if (!Number.isFinite(error)) continue;
    known = true;
    if (error > HOLDS || curve.step[k] >= turns) break;
    last = curve.step[k];
  }
  return known ? last : NaN;
}

/** The first step at which the loss is below 70%; infinite while it is above. */
export function stageEnd(curve) {
  for (let k = 0; k < rows(curve); k++) if (curve.ratio[k] < STAGE) return curve.step[k];
  return Infinity;
}

/** The step by which the neurons have turned: k_eff is half way down, as a ratio; infinite where it hardly falls. */
function turned(curve) {
  const [first, last] = [curve?.keff[0], curve?.keff[rows(curve) - 1]];
  if (!(rows(curve) > 2 && last > 0 && first > 1.5 * last)) return Infinity;
  for (let k = 0; k < rows(curve); k++) if (curve.keff[k] < Math.sqrt(first * last)) return curve.step[k];
  return Infinity;
}

/** The scale of steps in an area: linear, or with a logarithm where the initial stage would be too short to be seen. */
export function stepScale(scene, area) {
  const [last, until] = [lastStep(scene), validUntil(scene)];
  const stage = Math.min(stageEnd(scene.curve), turned(scene.curve), until >= 0 ? until : Infinity);
  const wished = scene.options?.steps;
  const log = wished ? wished === "log" : last > 50 && stage < SHORT * last;
  return (log ? countScale : linear)(0, last, area.x, area.x + area.w);
}

export const stepName = (scale) => (scale.kind === "linear" ? "step" : "step (logarithmic)");

/** The row of the curve nearest to a step, -1 without rows. */
export function rowAt(curve, step) {
  let [low, high] = [0, rows(curve) - 1];
  if (high < 0) return -1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (curve.step[middle] < step) low = middle + 1;
    else high = middle;
  }
  return low > 0 && step - curve.step[low - 1] < curve.step[low] - step ? low - 1 : low;
}

/** The cursor at the present step, and a thin line where the pointer is. */
export function drawCursor(g, area, across, scene) {
  const pal = palette(scene.theme);
  const at = (step, width, dash, colour) => {
    if (!Number.isFinite(step)) return;
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.setLineDash(dash);
    g.beginPath();
    line(g, crisp(across.to(step)), area.y, crisp(across.to(step)), area.y + area.h);
    g.stroke();
    g.setLineDash([]);
  };
  if (scene.hover?.step >= 0) at(scene.hover.step, 1, [3, 3], pal.soft);
  at(scene.frame?.step ?? NaN, 1.5, [], pal.ink);
  if (Number.isFinite(scene.frame?.diverged ?? NaN)) at(scene.frame.diverged, 1.5, [6, 4], pal.bad);
}

/** A round mark on a curve at a step. */
export function drawMark(g, x, y, colour, ground) {
  if (!Number.isFinite(x) || !Number.isFinite(y)) return;
  g.beginPath();
  g.arc(x, y, 4.5, 0, 2 * Math.PI);
  g.fillStyle = colour;
  g.strokeStyle = ground;
  g.lineWidth = 1.5;
  g.fill();
  g.stroke();
}

/** The step below a pixel of the area, or null beside it. */
export function hitStep(px, py, area, across) {
  if (px < area.x - 8 || px > area.x + area.w + 8 || py < area.y - 8 || py > area.y + area.h + 24) return null;
  const step = Math.round(across.from(Math.min(area.x + area.w, Math.max(area.x, px))));
  return { step: Math.max(0, step) };
}

/** What is told of a step beside the pointer. */
export function tellStep(own, { curve }) {
  if (!(own?.step >= 0)) return [];
  const k = rowAt(curve, own.step);
  if (k < 0) return [`step ${own.step}`];
  const texts = [`step ${curve.step[k]}`];
  const ratio = curve.ratio[k];
  if (Number.isFinite(curve.loss[k])) texts.push(`loss ${num(curve.loss[k])}${Number.isFinite(ratio) ? `, ${percent(ratio)} of the first` : ""}`);
  if (curve.lines[k] >= 0) texts.push(`${count(curve.lines[k], "line")}, k_eff ${num(curve.keff[k], 2)}`);
  if (Number.isFinite(curve.error[k])) texts.push(`leading order ${exactness(curve.error[k])}`);
  return texts;
}

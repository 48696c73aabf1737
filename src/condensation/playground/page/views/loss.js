/** The loss against the step, and the clock that tells how far theory holds. */

import { palette } from "../colours.js";
import { axes, clipTo, curvePath, inside, line, linear, logarithmic, say, textSize, widthOf, write } from "../figure.js";
import { exactness, num, percent } from "./numbers.js";
import { drawCursor, drawMark, hitStep, HOLDS, rowAt, rows, STAGE, stageEnd, stepName, stepScale, tellStep, validUntil } from "./time.js";

/** Least and largest loss of the curve, and the first loss. */
function range(curve) {
  let [low, high, first] = [Infinity, -Infinity, NaN];
  for (let k = 0; k < rows(curve); k++) {
    const loss = curve.loss[k];
    if (!Number.isFinite(loss)) continue;
    low = Math.min(low, loss);
    high = Math.max(high, loss);
    if (Number.isNaN(first) && curve.ratio[k] > 0) first = loss / curve.ratio[k];
  }
  return { low, high, first };
}

function place(box, scene) {
  const size = textSize(box);
  const area = inside(box, { top: scene.frame?.valid ? 1.5 * size : 0 });
  const { low, high, first } = range(scene.curve);
  const log = low > 0 && high / low > 10;
  const up = log
    ? logarithmic(low / 1.3, high * 1.3, area.y + area.h, area.y)
    : linear(Math.min(0, low), high > 0 ? 1.12 * high : 1, area.y + area.h, area.y);
  return { size, area, up, first, across: stepScale(scene, area) };
}

/** From step 0 to the step up to which the leading order is exact to 5%. */
function validWidth({ area, across }, scene) {
  const until = validUntil(scene);
  return until >= 0 ? Math.max(2, across.to(until) - area.x) : 0;
}

function drawValid(g, { area }, width, pal) {
  g.globalAlpha = pal.theme === "dark" ? 0.18 : 0.13;
  g.fillStyle = pal.wash;
  g.fillRect(area.x, area.y, width, area.h);
  g.globalAlpha = 1;
}

/** A dial that fills as the error of the leading order grows to 5%, when theory's time is over. */
function drawClock(g, box, { size, area }, { frame }, pal) {
  const { leading_error: error, drift, holds } = frame.valid;
  const [radius, x, y] = [0.62 * size, area.x - 2.8 * size + 0.62 * size, box.y + 0.95 * size];
  const known = Number.isFinite(error);
  const drifted = !holds && error <= HOLDS && drift > 0;
  const share = known && !drifted ? Math.min(1, error / HOLDS) : 1;
  const colour = holds ? pal.good : pal.bad;
  g.setLineDash([]);
  g.lineWidth = 1.5;
  g.strokeStyle = g.fillStyle = colour;
  g.beginPath();
  g.moveTo(x, y);
  g.arc(x, y, radius, -Math.PI / 2, -Math.PI / 2 + Math.max(0.02, share) * 2 * Math.PI - 1e-4);
  g.closePath();
  g.fill();
  g.beginPath();
  g.arc(x, y, radius, 0, 2 * Math.PI);
  g.stroke();
  let text = known ? `leading order ${exactness(error)}` : "leading order not known";
  if (error > 1) text = "leading order has failed";
  if (drifted) text = `predicted lines have turned by ${num((drift * 180) / Math.PI, 2)}\u00b0`;
  write(g, text, x + 1.3 * size, y, { size, colour, base: "middle", weight: 600 });
}

const levels = ({ layer }) => layer?.attention?.levels ?? [];

/** The levels at which theory says that the loss stands still. */
function drawLevels(g, { area, up, size }, scene, pal) {
  g.strokeStyle = pal.good;
  g.lineWidth = 1.2;
  g.setLineDash([5, 4]);
  g.globalAlpha = 0.8;
  g.beginPath();
  const inside = levels(scene).filter((level) => level > up.low && level < up.high);
  for (const level of inside) line(g, area.x, up.to(level), area.x + area.w, up.to(level));
  g.stroke();
  g.setLineDash([]);
  g.globalAlpha = 1;
  if (!inside.length) return;
  const at = { size, colour: pal.good, align: "right", halo: pal.ground };
  write(g, "levels of theory", area.x + area.w, up.to(Math.max(...inside)) - 0.4 * size, at);
}

function draw(g, box, scene) {
  const pal = palette(scene.theme);
  if (!rows(scene.curve)) {
    say(g, box, "The loss appears with the first frame.", scene);
    return;
  }
  const spot = place(box, scene);
  const { area, across, up, size, first } = spot;
  const width = validWidth(spot, scene);
  drawValid(g, spot, width, pal);
  axes(g, area, across, up, { xName: stepName(across), yName: up.kind === "log" ? "loss (logarithmic)" : "loss", size, pal });
  if (widthOf("theory holds", size) + size < width) {
    const at = { size, colour: pal.good, align: "center" };
    write(g, "theory holds", area.x + Math.min(width, 0.7 * area.w) / 2, area.y + area.h - 0.6 * size, at);
  }
  if (scene.frame?.valid) drawClock(g, box, spot, scene, pal);
  drawLevels(g, spot, scene, pal);
  const stage = levels(scene).length ? NaN : STAGE * first;
  if (stage > up.low && stage < up.high) {
    g.strokeStyle = pal.soft;
    g.lineWidth = 1.2;
    g.setLineDash([5, 4]);
    g.beginPath();
    line(g, area.x, up.to(stage), area.x + area.w, up.to(stage));
    g.stroke();
    g.setLineDash([]);
  }
  const { curve } = scene;
  clipTo(g, { x: area.x - 4, y: area.y - 4, w: area.w + 8, h: area.h + 8 });
  g.strokeStyle = pal.colours[0];
  g.lineWidth = 2.2;
  g.lineJoin = "round";
  curvePath(g, rows(curve), (k) => across.to(curve.step[k]), (k) => (curve.loss[k] > 0 || up.kind === "linear" ? up.to(curve.loss[k]) : NaN));
  g.stroke();
  drawCursor(g, area, across, scene);
  const { hover, frame } = scene;
  if (frame && Number.isFinite(frame.loss)) drawMark(g, across.to(frame.step), up.to(frame.loss), pal.colours[0], pal.ground);
  const k = hover?.step >= 0 ? rowAt(curve, hover.step) : -1;
  if (k >= 0) drawMark(g, across.to(curve.step[k]), up.to(curve.loss[k]), pal.colours[1], pal.ground);
  g.restore();
  if (stage > up.low && stage < up.high) {
    const below = up.to(stage) + 1.3 * size < area.y + area.h ? 1.15 * size : -0.4 * size;
    write(g, "70% of the first loss", area.x + area.w, up.to(stage) + below, { size, colour: pal.soft, align: "right" });
  }
}

function hit(px, py, box, scene) {
  if (!rows(scene.curve)) return null;
  const { area, across } = place(box, scene);
  return hitStep(px, py, area, across);
}

function sentence(scene) {
  const { frame, curve } = scene;
  if (!frame) return "The loss: how far the network's output is from the targets.";
  const ratio = Number.isFinite(frame.ratio) ? frame.ratio : NaN;
  if (!Number.isFinite(frame.loss)) return `The loss is no longer a number at step ${frame.step}: training diverged.`;
  const now = frame.step === 0 ? `The loss starts at ${num(frame.loss)}` : `At step ${frame.step} the loss is ${percent(ratio)} of the first`;
  const stage = frame.step === 0 || !(ratio > STAGE) ? "" : ", still the initial stage";
  if (levels(scene).length) {
    const next = levels(scene).find((level) => level < 0.98 * frame.loss);
    const best = levels(scene).at(-1);
    const ahead = next === undefined || next === best ? `the best loss is ${num(best)}` : `theory's next level is ${num(next)}`;
    return `${now}; ${ahead}, for infinitely many sequences.`;
  }
  if (scene.opened?.attention) return `${now}${stage}; the clock of the leading order is for dense networks.`;
  const until = validUntil(scene);
  if (frame.valid?.holds) {
    const exact = exactness(frame.valid.leading_error);
    return `${now}${stage}; the leading order, the part of the activation that theory uses, is ${exact}.`;
  }
  if (until > 0) {
    const end = stageEnd(curve);
    return `${now}${stage}; theory held until step ${until}${Number.isFinite(end) ? `, the loss fell below 70% at step ${end}` : ""}.`;
  }
  if (frame.valid) return `${now}${stage}; the weights are too large for theory's leading order.`;
  return `${now}${stage}.`;
}

export const view = { name: "loss", title: "Loss and validity clock", shows: () => true, sentence, draw, hit, tip: tellStep };

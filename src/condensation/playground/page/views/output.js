/** The output: the network's function of one or two inputs, its fit of the samples, or its accuracy. */

import { palette } from "../colours.js";
import { axes, inside, line, linear, say, textSize, write } from "../figure.js";
import { draw1d, extent } from "./curve1d.js";
import { draw2d } from "./map2d.js";
import { percent } from "./numbers.js";
import { arrayOf } from "./units.js";

const ORDER = ["", "linear", "quadratic", "cubic"];

/** The output on the samples against their targets: a perfect fit lies on the diagonal. */
function drawFit(g, box, scene) {
  const pal = palette(scene.theme);
  const size = textSize(box);
  const [y, fit] = [arrayOf(scene.opened, "y"), arrayOf(scene.frame, "fit")];
  const outputs = scene.opened?.shapes?.y?.[1] ?? 1;
  const area = inside(box);
  const [targets, given] = [extent(y), extent(fit)];
  const pad = (range) => 0.06 * range.span || 0.5;
  const across = linear(targets.low - pad(targets), targets.high + pad(targets), area.x, area.x + area.w);
  const [low, high] = [Math.min(targets.low, given.low), Math.max(targets.high, given.high)];
  const up = linear(low - pad(targets), high + pad(targets), area.y + area.h, area.y);
  axes(g, area, across, up, { xName: scene.opened.loss === "exponential" ? "label y" : "target y", yName: "output f(x) on the samples", size, pal });
  g.strokeStyle = pal.soft;
  g.lineWidth = 1.4;
  g.setLineDash([6, 4]);
  g.beginPath();
  const [from, to] = [Math.max(across.low, up.low), Math.min(across.high, up.high)];
  if (scene.opened.loss === "exponential") line(g, area.x, up.to(0), area.x + area.w, up.to(0)); // where the sign changes
  else line(g, across.to(from), up.to(from), across.to(to), up.to(to));
  g.stroke();
  g.setLineDash([]);
  g.fillStyle = pal.colours[0];
  g.strokeStyle = pal.ground;
  g.lineWidth = 0.8;
  g.beginPath();
  for (let k = 0; k < fit.length; k++) {
    const [px, py] = [across.to(y[k * outputs]), up.to(fit[k])];
    if (!Number.isFinite(px) || !Number.isFinite(py)) continue;
    g.moveTo(px + 3.6, py);
    g.arc(px, py, 3.6, 0, 2 * Math.PI);
  }
  g.fill();
  g.stroke();
}

/** The share of images classified correctly, with chance as a mark. */
function drawAccuracy(g, box, scene) {
  const pal = palette(scene.theme);
  const size = textSize(box);
  const classes = scene.opened?.shapes?.y?.[1] ?? 0;
  const chance = classes > 1 ? 1 / classes : NaN;
  const share = scene.frame?.accuracy;
  const known = Number.isFinite(share ?? NaN);
  const [cx, cy] = [box.x + box.w / 2, box.y + box.h / 2];
  write(g, known ? percent(share) : "\u2013", cx, cy - 0.6 * size, { size: 3.4 * size, colour: pal.ink, align: "center", weight: 600 });
  write(g, "of the images are classified correctly", cx, cy + 1.1 * size, { size, colour: pal.soft, align: "center" });
  const bar = { x: box.x + 0.12 * box.w, y: cy + 2.2 * size, w: 0.76 * box.w, h: size };
  g.fillStyle = pal.grid;
  g.fillRect(bar.x, bar.y, bar.w, bar.h);
  g.fillStyle = pal.colours[0];
  if (known) g.fillRect(bar.x, bar.y, bar.w * Math.min(1, Math.max(0, share)), bar.h);
  if (!Number.isFinite(chance)) return;
  const x = bar.x + chance * bar.w;
  g.strokeStyle = pal.ink;
  g.lineWidth = 1.5;
  g.beginPath();
  line(g, x, bar.y - 4, x, bar.y + bar.h + 4);
  g.stroke();
  write(g, "chance", x, bar.y + bar.h + 0.6 * size, { size, colour: pal.soft, align: "center", base: "top" });
}

function draw(g, box, scene) {
  const { opened, frame } = scene;
  if (!opened) say(g, box, "The network's output appears with the first frame.", scene);
  else if (opened.dim === 1) draw1d(g, box, scene);
  else if (opened.dim === 2) draw2d(g, box, scene);
  else if (opened.classes) drawAccuracy(g, box, scene);
  else if (arrayOf(frame, "fit") && arrayOf(opened, "y")) drawFit(g, box, scene);
  else say(g, box, "The network's output appears with the first frame.", scene);
}

/** The share of samples whose output has the sign of their label. */
function signed({ opened, frame }) {
  const [y, fit] = [arrayOf(opened, "y"), arrayOf(frame, "fit")];
  return y && fit ? fit.filter((value, k) => value * y[k] > 0).length / fit.length : NaN;
}

function sentence(scene) {
  const { opened, frame } = scene;
  if (!frame || !opened) return "The output of the network, with its data.";
  const clauses = [];
  const { reduced, poly } = frame;
  const known = Number.isFinite(frame.accuracy ?? NaN);
  const order = ORDER[poly?.order] ?? `order-${poly?.order}`;
  if (opened.classes) clauses.push(`The network classifies ${known ? `${percent(frame.accuracy)} of its images correctly` : "images"}`);
  else if (Number.isFinite(poly?.error)) clauses.push(`The output differs from the ${order} polynomial of theory by ${percent(poly.error)}`);
  else if (opened.dim === 2) clauses.push("Blue is below zero, orange above, the black curve between; points have the colour of their target");
  else if (opened.loss === "exponential") clauses.push(`${percent(signed(scene))} of the samples have an output with the sign of their label`);
  else if (opened.dim === null) clauses.push("Samples on the diagonal are fitted");
  if (reduced && Number.isFinite(reduced.error)) {
    const units = reduced.after === 1 ? "1 neuron" : `${reduced.after} neurons`;
    const one = reduced.after === 1;
    const near = `give${one ? "s" : ""} the same output to ${percent(reduced.error)}`;
    const far = `cannot yet replace ${reduced.before}: ${one ? "its" : "their"} output is ${percent(reduced.error)} away`;
    clauses.push(reduced.error <= 0.1 ? `${units} in place of ${reduced.before} ${near}` : `${units} ${far}`);
  }
  if (opened.attention) clauses.push("networks of attention are not reduced here");
  return clauses.length ? `${clauses.join("; ")}.` : "The output of the network, with its data.";
}

/** Of a watched run the network is not known. */
export const view = {
  name: "output", title: "Output of the network", shows: ({ opened }) => !opened || Boolean(opened.arrays.y), sentence, draw, hit: () => null, tip: () => [],
};

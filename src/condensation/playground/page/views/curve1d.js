/** The network's function of one input: data, output, its polynomial, and the reduced network. */

import { palette } from "../colours.js";
import { axes, clipTo, curvePath, inside, linear, textSize, write } from "../figure.js";
import { num, power } from "./numbers.js";
import { arrayOf, legendRows } from "./units.js";

const SMALL = 0.08; // of the data's range: below it the output is shown enlarged, too

/** Least and largest finite value of arrays. */
export function extent(...arrays) {
  let [low, high] = [Infinity, -Infinity];
  for (const values of arrays) {
    for (const v of values ?? []) {
      if (!Number.isFinite(v)) continue;
      if (v < low) low = v;
      if (v > high) high = v;
    }
  }
  return { low, high, span: high - low };
}

const ORDER = ["", "linear part", "quadratic part", "cubic part"];

function curvesOf({ frame, layer }, pal) {
  const order = frame?.poly?.order ?? layer?.p;
  const small = frame?.reduced ? `${frame.reduced.after} of ${frame.reduced.before} neurons` : "reduced";
  return [
    { name: "reduced", colour: pal.colours[2], width: 5, dash: [0.1, 8], cap: "round", kind: "thick", text: small },
    { name: "f", colour: pal.colours[0], width: 2.4, dash: [], cap: "butt", kind: "line", text: "network" },
    { name: "poly", colour: pal.colours[1], width: 2, dash: [7, 5], cap: "butt", kind: "dash", text: ORDER[order] ?? "polynomial" },
  ].map((curve) => ({ ...curve, values: arrayOf(frame, curve.name) })).filter((curve) => curve.values);
}

function drawCurves(g, curves, grid, across, up, area) {
  clipTo(g, area);
  g.lineJoin = "round";
  for (const { colour, width, dash, cap, values } of curves) {
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.lineCap = cap;
    g.setLineDash(dash);
    curvePath(g, Math.min(grid.length, values.length), (k) => across.to(grid[k]), (k) => up.to(values[k]));
    g.stroke();
  }
  g.setLineDash([]);
  g.lineCap = "butt";
  g.restore();
}

/** An inset in the corner that has the fewest data: the output, as much larger as it takes to see its shape. */
function drawInset(g, area, curves, grid, points, size, pal) {
  const [w, h] = [0.4 * area.w, 0.38 * area.h];
  const spots = [[1, 0], [0, 0], [1, 1], [0, 1]].map(([right, below]) => {
    const spot = { x: right ? area.x + area.w - w - 4 : area.x + 4, y: below ? area.y + area.h - h - 4 : area.y + 4, w, h };
    const inner = (p) => p.x > spot.x - 4 && p.x < spot.x + w + 4 && p.y > spot.y - 4 && p.y < spot.y + h + 4;
    return { spot, full: points.filter(inner).length };
  });
  const { spot } = spots.reduce((best, other) => (other.full < best.full ? other : best));
  const { low, high, span } = extent(...curves.filter(({ name }) => name === "f").map(({ values }) => values));
  if (!(span > 0)) return;
  g.globalAlpha = 0.93;
  g.fillStyle = pal.ground;
  g.fillRect(spot.x, spot.y, w, h);
  g.globalAlpha = 1;
  g.strokeStyle = pal.faint;
  g.lineWidth = 1;
  g.strokeRect(spot.x, spot.y, w, h);
  const across = linear(grid[0], grid[grid.length - 1], spot.x + 3, spot.x + w - 3);
  const up = linear(low - 0.08 * span, high + 0.08 * span, spot.y + h - 4, spot.y + 1.5 * size);
  const thin = curves.map((curve) => ({ ...curve, width: curve.name === "reduced" ? 4 : 1.8 }));
  drawCurves(g, thin, grid, across, up, spot);
  const text = `output, range ${span < 1e-3 ? power(Math.round(Math.log10(span))) : num(span, 1)}`;
  write(g, text, spot.x + 0.4 * size, spot.y + 1.15 * size, { size, colour: pal.soft });
}

export function draw1d(g, box, scene) {
  const pal = palette(scene.theme);
  const size = textSize(box);
  const [x, y, grid] = [arrayOf(scene.opened, "x"), arrayOf(scene.opened, "y"), arrayOf(scene.opened, "grid")];
  const curves = grid ? curvesOf(scene, pal) : [];
  const entries = [{ kind: "ring", colour: pal.ink, text: "data" }, ...[...curves].sort((a, b) => (a.name > b.name ? 1 : -1))];
  const tall = legendRows(null, entries, 0, 0, box.w - 2.4 * size, size, pal);
  const area = inside(box, { top: tall - 0.9 * size });
  const [wide, data, output] = [extent(grid ?? x), extent(y), extent(arrayOf(scene.frame, "f"))];
  const [low, high] = [Math.min(data.low, output.low), Math.max(data.high, output.high)];
  const pad = 0.08 * (high - low) || 0.5;
  const across = linear(wide.low, wide.high, area.x, area.x + area.w);
  const up = linear(low - pad, high + pad, area.y + area.h, area.y);
  axes(g, area, across, up, { xName: "x", size, pal });
  legendRows(g, entries, box.x + 0.8 * size, box.y + 0.2 * size, box.w - 2.4 * size, size, pal);
  if (grid) drawCurves(g, curves, grid, across, up, area);
  const points = [];
  const outputs = scene.opened?.shapes?.y?.[1] ?? 1;
  for (let k = 0; x && y && k < x.length; k++) {
    const point = { x: across.to(x[k]), y: up.to(y[k * outputs]) };
    if (Number.isFinite(point.x) && Number.isFinite(point.y)) points.push(point);
  }
  clipTo(g, area);
  g.fillStyle = pal.ground;
  g.strokeStyle = pal.ink;
  g.lineWidth = 1.4;
  g.beginPath();
  for (const p of points) {
    g.moveTo(p.x + 3.2, p.y);
    g.arc(p.x, p.y, 3.2, 0, 2 * Math.PI);
  }
  g.fill();
  g.stroke();
  g.restore();
  if (curves.length && output.span < SMALL * data.span && area.h > 8 * size) drawInset(g, area, curves, grid, points, size, pal);
}

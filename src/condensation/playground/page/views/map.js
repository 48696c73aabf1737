/** A sweep as a map: one quantity over two of its axes, a cell for each pair of values. */

import { palette, SEQUENTIAL } from "../colours.js";
import { colourBar, cut, inside, line, say, textSize, ticksOf, linear, logarithmic, widthOf, write } from "../figure.js";
import { num } from "./numbers.js";
import { arrayOf } from "./units.js";

/** The map of a scene: `scene.map` is the server's message of kind "map". */
function sizes({ map }) {
  const [columns, rows] = [map?.xs?.length ?? 0, map?.ys?.length ?? 0];
  return { columns, rows };
}

const ranges = new WeakMap();

/** Least and largest value, and whether colours go by their logarithm. */
function rangeOf(map) {
  let found = ranges.get(map);
  if (!found) {
    let [low, high] = [Infinity, -Infinity];
    for (const v of arrayOf(map, "values") ?? []) {
      if (!Number.isFinite(v)) continue;
      low = Math.min(low, v);
      high = Math.max(high, v);
    }
    const known = low <= high;
    const log = known && low > 0 && high / low > 50;
    found = { low: known ? low : 0, high: known ? high : 1, log, known };
    ranges.set(map, found);
  }
  return found;
}

function shade(map, value) {
  const { low, high, log } = rangeOf(map);
  if (!(high > low)) return 0.5;
  return log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
}

function place(box, scene) {
  const size = textSize(box);
  const { columns, rows } = sizes(scene);
  const area = inside(box, { left: 1.6 * size, right: 5.6 * size, below: true });
  return { size, area, columns, rows, w: area.w / Math.max(1, columns), h: area.h / Math.max(1, rows) };
}

/** A cell's rectangle, its edges on whole pixels so that no gaps are seen. */
function cellBox({ area, w, h }, column, row) {
  const [x, right] = [Math.round(area.x + column * w), Math.round(area.x + (column + 1) * w)];
  const [y, bottom] = [Math.round(area.y + area.h - (row + 1) * h), Math.round(area.y + area.h - row * h)];
  return { x, y, w: right - x, h: bottom - y };
}

/** Which values get a name: on a logarithmic axis powers of ten if there are some, else one after every `every`. */
function named(values, log, every) {
  const round = (v) => typeof v === "number" && v > 0 && Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-3;
  const powers = log ? values.map((_, k) => k).filter((k) => round(values[k])) : [];
  const gap = powers.length > 1 ? Math.max(1, Math.ceil(every / (powers[1] - powers[0]))) : 1;
  return new Set(powers.length > 1 ? powers.filter((_, k) => k % gap === 0) : values.map((_, k) => k).filter((k) => k % every === 0));
}

const label = (value) => (typeof value === "number" ? num(value, 2) : String(value));

/** Names of the values below the columns and beside the rows, as many as there is room for. */
function drawNames(g, { area, size, w, h }, map, pal) {
  let end = -Infinity;
  const most = Math.max(...map.xs.map((value) => widthOf(label(value), size)), 1);
  const across = named(map.xs, map.x_log, Math.max(1, Math.ceil((most + 0.8 * size) / w)));
  map.xs.forEach((value, k) => {
    const [text, x] = [cut(label(value), Math.max(w, 6 * size), size), area.x + (k + 0.5) * w];
    const half = widthOf(text, size) / 2;
    if (!across.has(k) || x - half < end + 3) return;
    end = x + half;
    write(g, text, x, area.y + area.h + 0.5 * size, { size, colour: pal.soft, align: "center", base: "top" });
  });
  const up = named(map.ys, map.y_log, Math.max(1, Math.ceil((1.4 * size) / h)));
  map.ys.forEach((value, k) => {
    if (!up.has(k)) return;
    const y = area.y + area.h - (k + 0.5) * h;
    write(g, cut(label(value), 4.4 * size, size), area.x - 0.5 * size, y, { size, colour: pal.soft, align: "right", base: "middle" });
  });
  const title = (name, log) => `${name ?? ""}${log ? " (logarithmic)" : ""}`;
  const room = area.w + 4 * size;
  write(g, cut(title(map.y, map.y_log), room, size), area.x - 4.4 * size, area.y - 0.95 * size, { size, colour: pal.ink });
  const below = { size, colour: pal.ink, align: "right" };
  write(g, cut(title(map.x, map.x_log), room, size), area.x + area.w, area.y + area.h + 2.85 * size, below);
}

/** The bar of colours with round values. */
function drawBar(g, { area, size }, map, pal) {
  const { low, high, log, known } = rangeOf(map);
  if (!known) return;
  const scale = (log ? logarithmic : linear)(low, high, 0, 1);
  const one = { ticks: [{ value: low, text: num(low) }], exponent: 0 };
  const { ticks, exponent } = high > low ? ticksOf(scale, Math.max(2, Math.floor(area.h / (3 * size)))) : one;
  const marks = ticks.map(({ value, text }) => ({ at: scale.to(value), text: exponent ? num(value, 2) : text }));
  colourBar(g, area.x + area.w + 1.1 * size, area.y, size, area.h, SEQUENTIAL, marks, { size, pal });
  const name = cut(map.quantity ?? "", 0.45 * area.w + 6 * size, size, 600);
  write(g, name, area.x + area.w + 6.2 * size, area.y - 0.95 * size, { size, colour: pal.ink, align: "right", weight: 600 });
}

function draw(g, box, scene) {
  const pal = palette(scene.theme);
  const { map } = scene;
  const values = arrayOf(map, "values");
  const spot = place(box, scene);
  const { area, columns, rows } = spot;
  if (!values || !columns || !rows) {
    say(g, box, "The sweep has no cells yet.", scene);
    return;
  }
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const value = values[row * columns + column];
      const { x, y, w, h } = cellBox(spot, column, row);
      if (Number.isFinite(value)) {
        g.fillStyle = SEQUENTIAL.css(shade(map, value));
        g.fillRect(x, y, w, h);
      } else drawMissing(g, x, y, w, h, pal);
    }
  }
  g.strokeStyle = pal.faint;
  g.lineWidth = 1;
  g.strokeRect(area.x, area.y, area.w, area.h);
  drawNames(g, spot, map, pal);
  drawBar(g, spot, map, pal);
  const cells = arrayOf(map, "cells");
  const open = scene.cell ?? -1;
  for (let at = 0; cells && open >= 0 && at < cells.length; at++) {
    if (cells[at] === open) frame(g, spot, at % columns, Math.floor(at / columns), pal, 3);
  }
  const { column, row } = scene.hover ?? {};
  if (column >= 0 && row >= 0 && column < columns && row < rows) frame(g, spot, column, row, pal, 2);
}

function drawMissing(g, x, y, w, h, pal) {
  g.fillStyle = pal.grid;
  g.fillRect(x, y, w, h);
  g.strokeStyle = pal.faint;
  g.lineWidth = 1;
  g.beginPath();
  line(g, x, y + h, x + w, y);
  g.stroke();
}

function frame(g, spot, column, row, pal, width) {
  const { x, y, w, h } = cellBox(spot, column, row);
  for (const [colour, extra] of [[pal.ground, 2.5], [pal.ink, 0]]) {
    g.strokeStyle = colour;
    g.lineWidth = width + extra;
    g.strokeRect(x, y, w, h);
  }
}

function hit(px, py, box, scene) {
  const { area, columns, rows, w, h } = place(box, scene);
  const column = Math.floor((px - area.x) / w);
  const row = Math.floor((area.y + area.h - py) / h);
  if (column < 0 || row < 0 || column >= columns || row >= rows) return null;
  return { cell: arrayOf(scene.map, "cells")?.[row * columns + column] ?? -1, column, row };
}

function tip(own, { map }) {
  if (!map || !own || !(own.column >= 0)) return [];
  const value = arrayOf(map, "values")?.[own.row * map.xs.length + own.column];
  const texts = [`${map.x} = ${label(map.xs[own.column])}`];
  if (map.y) texts.push(`${map.y} = ${label(map.ys[own.row])}`);
  texts.push(Number.isFinite(value) ? `${map.quantity}: ${num(value)}` : `${map.quantity}: not there`);
  return texts;
}

function sentence({ map }) {
  if (!map) return "A sweep as a map.";
  const { low, high, known } = rangeOf(map);
  if (!known) return "No cell of this sweep has a value yet.";
  const what = `${map.quantity} goes from ${num(low)} to ${num(high)} (median over what is not an axis)`;
  return `Each cell is an experiment of the sweep: ${what}; click one to train it.`;
}

export const view = { name: "map", title: "Sweep", wide: true, shows: ({ map }) => Boolean(map), sentence, draw, hit, tip };
export const map = view;

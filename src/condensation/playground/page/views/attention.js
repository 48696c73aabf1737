/** Attention: the matrices of the heads as heat maps, their singular values over the steps, and theory's vectors. */

import { diverging, lineColour, palette, SEQUENTIAL } from "../colours.js";
import { axes, clipTo, curvePath, cut, inside, logarithmic, say, sheet, stamp, textSize, widthOf, write } from "../figure.js";
import { headOf, largest, measured, NEAR, panelsOf, partsOf, plainName, sentence, tellMatrix, valuesOf } from "./heads.js";
import { view as loss } from "./loss.js";
import { count, num } from "./numbers.js";
import { drawCursor, drawMark, hitStep, rowAt, rows, stepName, stepScale, tellStep } from "./time.js";
import { arrayOf, legendRows, tellUnit } from "./units.js";

const LEAST_COLUMN = 150; // px of a panel, below which there are fewer in a row
const LARGEST_CELL = 34; // px of an entry
const UPPER = 0.55; // share of a panel's height that its matrix has; the curves have the rest
const DECADES = 9; // of singular values that are drawn at most

/** The panels in rows and columns; in each the matrix above and the curves below. */
function place(box, scene) {
  const size = textSize(box);
  const panels = panelsOf(scene);
  const columns = Math.max(1, Math.min(panels.length, Math.floor(box.w / LEAST_COLUMN)));
  const down = Math.ceil(panels.length / columns);
  const [w, h] = [box.w / columns, box.h / down];
  const head = headOf(scene);
  panels.forEach((panel, k) => {
    const at = { x: box.x + (k % columns) * w + 0.6 * size, y: box.y + Math.floor(k / columns) * h, w: w - 1.6 * size, h };
    Object.assign(panel, { at, ...arrange(panel, at, size, scene, head) });
  });
  return { size, panels, head };
}

/** The matrices of the heads as tiles in a grid, as large as they can be; below each other if they have a row each. */
function tilesOf({ matrix }, head, room) {
  if (!matrix) return null;
  const { heads, rows: r, columns: c } = matrix;
  const shown = head >= 0 || heads === 1 ? [Math.max(head, 0)] : Array.from({ length: heads }, (_, k) => k);
  const gap = r === 1 || shown.length === 1 ? 0 : 1;
  let best = null;
  for (let across = 1; across <= (gap ? shown.length : 1); across++) {
    const down = Math.ceil(shown.length / across);
    const [wide, high] = [across * (c + gap) - gap, down * (r + gap) - gap];
    const cell = Math.min(room.w / wide, room.h / high, LARGEST_CELL);
    if (!best || cell > best.cell) best = { across, r, c, gap, heads: shown, wide, high, cell };
  }
  return best;
}

function arrange(panel, at, size, scene, head) {
  const top = at.y + 1.9 * size;
  const upper = UPPER * at.h;
  const pattern = panel.name === "pattern";
  const room = { w: at.w - (pattern ? 0 : 2.4) * size, h: Math.max(20, pattern ? 0.2 * at.h : upper - (head < 0 ? 5.4 : 7.8) * size) };
  const curves = { x: at.x, y: at.y + upper, w: at.w + size, h: at.h - upper };
  const tiles = tilesOf(panel, head, room);
  if (!tiles) return { tiles, curves, heat: { x: at.x, y: top, w: 0, h: 0, cell: 0 } };
  const { wide, high, cell } = tiles;
  const strip = { w: cell, h: Math.min(0.8 * size, Math.max(6, cell)) };
  return { tiles, curves, strip, heat: { x: at.x, y: top, w: cell * wide, h: cell * high, cell, across: wide, down: high } };
}

/** The name of a matrix, subscripts lower and smaller; gives where it ends. */
function writeName(g, name, x, y, size, colour) {
  let at = x;
  const piece = (text, own, lower) => {
    write(g, text, at, y + lower, { size: own, colour, weight: 650 });
    at += widthOf(text, own, 650);
  };
  for (const [letter, low, high] of partsOf(name)) {
    piece(letter, size + 2, 0);
    if (low) piece(low, 0.75 * size, 0.28 * size);
    if (high) piece(high, size, -0.1 * size);
    at += 0.15 * size;
  }
  return at;
}

/** Fills a sheet with the tiles of the heads and stamps it. */
function drawTiles(g, { name, matrix, tiles, heat }, colour, line) {
  const own = sheet(`attention ${name}`, heat.across, heat.down);
  own.pixels.fill(0);
  const { r, c, across, gap } = tiles;
  tiles.heads.forEach((head, k) => {
    const [left, top] = [(k % across) * (c + gap), Math.floor(k / across) * (r + gap)];
    for (let i = 0; i < r; i++) {
      for (let j = 0; j < c; j++) own.pixels[(top + i) * own.w + left + j] = colour(matrix.values[(head * r + i) * c + j]);
    }
  });
  stamp(g, own, heat.x, heat.y, heat.w, heat.h);
  g.strokeStyle = line;
  g.lineWidth = 1;
  const { cell } = heat;
  if (!gap) g.strokeRect(heat.x, heat.y, heat.w, heat.h);
  else tiles.heads.forEach((_, k) => g.strokeRect(heat.x + (k % across) * (c + gap) * cell, heat.y + Math.floor(k / across) * (r + gap) * cell, c * cell, r * cell));
}

function level(map, from, to) {
  const scale = (map.size - 1) / (to - from || 1);
  return (value) => map.table[Number.isFinite(value) ? Math.max(0, Math.min(map.size - 1, Math.round((value - from) * scale))) : 0];
}

/** A vector as a strip below its matrix, scaled to its largest entry, with its name beside it. */
function drawStrip(g, { heat, strip }, k, values, text, scene, { size, pal, colour = pal.soft }) {
  const y = heat.y + heat.h + 4 + k * (strip.h + 3);
  const most = Math.max(...values.map(Math.abs)) || 1;
  const own = sheet(`attention strip ${k}`, values.length, 1);
  const paint = level(diverging(scene.theme), -most, most);
  values.forEach((value, j) => (own.pixels[j] = paint(value)));
  stamp(g, own, heat.x, y, strip.w * values.length, strip.h);
  g.strokeStyle = colour;
  g.lineWidth = 1;
  g.strokeRect(heat.x, y, strip.w * values.length, strip.h);
  write(g, text, heat.x + strip.w * values.length + 5, y + strip.h / 2 + 1, { size: size - 1, colour, base: "middle" });
}

/** The top singular vector of one head and the predicted one; how much room both take. */
function drawVectors(g, panel, head, scene, style) {
  const { name, matrix } = panel;
  const top = arrayOf(scene.frame, `head_top_${name}`);
  if (head < 0 || !top) return 0;
  const { columns } = matrix;
  drawStrip(g, panel, 0, [...top.subarray(head * columns, (head + 1) * columns)], "top", scene, style);
  const marks = arrayOf(scene.layer, `mark_${name}`);
  const { best, mark, cosine } = measured(scene, name, head);
  const whole = marks && marks.length === columns * scene.layer.shapes[`mark_${name}`][0];
  if (!whole || best < 0) return panel.strip.h + 7;
  const colour = cosine >= NEAR ? style.pal.good : style.pal.soft;
  const short = mark.replace("eigenvector ", "e");
  drawStrip(g, panel, 1, [...marks.subarray(best * columns, (best + 1) * columns)], short, scene, { ...style, colour });
  return 2 * panel.strip.h + 10;
}

function drawMatrix(g, panel, { size, head }, scene, pal) {
  const { name, matrix, at, heat } = panel;
  const shape = `${matrix.rows} \u00d7 ${matrix.columns}`;
  const most = largest(matrix, head);
  const end = writeName(g, name, at.x, at.y + 1.2 * size, size, pal.ink);
  const told = `${shape}, up to ${num(most, 2)}`;
  const room = at.x + at.w - end - size;
  write(g, widthOf(told, size) <= room ? told : cut(shape, room, size), at.x + at.w, at.y + 1.2 * size, { size, colour: pal.soft, align: "right" });
  drawTiles(g, panel, level(diverging(scene.theme), -most, most), pal.faint);
  if (head < 0 && matrix.rows === 1) drawHeadNumbers(g, panel, scene, { size, pal });
  drawRow(g, panel, head, scene, pal);
  const used = drawVectors(g, panel, head, scene, { size, pal });
  tellMatrix(scene, name, head).forEach(({ text, good }, k) => {
    const y = heat.y + heat.h + used + 1.15 * size + 1.35 * size * k;
    write(g, cut(text, at.w + 0.8 * size, size, good ? 650 : 400), at.x, y, { size, colour: good ? pal.good : pal.ink, weight: good ? 650 : 400 });
  });
}

/** Beside the row of each head the vector of theory that it is nearest to, and how near. */
function drawHeadNumbers(g, { name, heat, at }, scene, { size, pal }) {
  const x = heat.x + heat.w + 0.5 * size;
  for (let head = 0; head < scene.layer.attention.drawn; head++) {
    const { mark, cosine } = measured(scene, name, head);
    const text = `${mark.replace("eigenvector ", "e")} ${num(cosine, 2)}`;
    if (!mark || heat.cell < 1.1 * size || x + widthOf(text, size) > at.x + at.w + size) continue;
    const colour = cosine >= NEAR ? pal.good : pal.soft;
    write(g, text, x, heat.y + (head + 0.5) * heat.cell + 1, { size: size - 1, colour, base: "middle" });
  }
}

/** A frame around the row that is pointed at, where the matrix is of the layer that the other pictures show. */
function drawRow(g, panel, head, scene, pal) {
  const unit = scene.hover?.unit;
  if (!(unit >= 0) || !isShown(panel, scene)) return;
  const { tiles, heat } = panel;
  const k = tiles.heads.indexOf(Math.floor(unit / tiles.r));
  if (k < 0) return;
  const x = heat.x + (k % tiles.across) * (tiles.c + tiles.gap) * heat.cell;
  const y = heat.y + (Math.floor(k / tiles.across) * (tiles.r + tiles.gap) + (unit % tiles.r)) * heat.cell;
  g.strokeStyle = pal.ink;
  g.lineWidth = 2;
  g.strokeRect(x - 1, y - 1, tiles.c * heat.cell + 2, heat.cell + 2);
}

const isShown = ({ name, matrix }, { layer, frame }) =>
  layer.name.replace(/\d+$/, "") === name && matrix && frame.shapes.w[0] === matrix.heads * matrix.rows;

/** Which curves a panel has: those of one head, the largest first, or the largest of each head. */
function curvesOf(scene, name, head) {
  const own = valuesOf(scene, name);
  if (!own) return [];
  if (head < 0) return Array.from({ length: scene.layer.attention.drawn }, (_, k) => ({ column: own.column(k, 0), colour: lineColour(k, scene.theme), width: 2 }));
  const pal = palette(scene.theme);
  return Array.from({ length: own.count }, (_, k) => ({ column: own.column(head, k), colour: k ? pal.colours[5] : pal.colours[0], width: k ? 1.3 : 2.4 }));
}

/** The plot of the singular values of a panel: its area and scales. */
function plotOf(panel, scene, head) {
  const area = inside(panel.curves, { right: -4 });
  const curves = curvesOf(scene, panel.name, head);
  let [low, high] = [Infinity, 0];
  const { spectra } = scene;
  for (const { column } of curves) {
    for (let k = 0; k < rows(spectra); k++) {
      const value = spectra[column][k];
      if (!(value > 0) || !Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  const up = logarithmic(Math.max(low / 1.4, high * 10 ** -DECADES), high * 1.6, area.y + area.h, area.y);
  return { area, up, curves, across: stepScale(scene, area) };
}

function drawCurves(g, panel, { size, head }, scene, pal) {
  const { spectra, frame } = scene;
  const { area, up, curves, across } = plotOf(panel, scene, head);
  axes(g, area, across, up, { xName: stepName(across), yName: head < 0 ? "largest singular value" : "singular values", size, pal });
  clipTo(g, { x: area.x - 4, y: area.y - 4, w: area.w + 8, h: area.h + 8 });
  g.lineJoin = "round";
  for (const { column, colour, width } of [...curves].reverse()) {
    g.strokeStyle = colour;
    g.lineWidth = width;
    curvePath(g, rows(spectra), (k) => across.to(spectra.step[k]), (k) => (spectra[column][k] > 0 ? up.to(Math.max(spectra[column][k], up.low)) : NaN));
    g.stroke();
  }
  drawCursor(g, area, across, scene);
  for (const step of [frame?.step, scene.hover?.step]) {
    const k = step >= 0 ? rowAt(spectra, step) : -1;
    if (k >= 0 && curves.length) drawMark(g, across.to(spectra.step[k]), up.to(spectra[curves[0].column][k]), curves[0].colour, pal.ground);
  }
  g.restore();
}

/** How much the tokens of one sequence are read: bars of one head that asks once, else a heat map. */
function drawPattern(g, panel, { size, head }, scene, pal) {
  const { matrix, at, heat } = panel;
  const end = writeName(g, "pattern", at.x, at.y + 1.2 * size, size, pal.ink);
  if (!matrix) {
    write(g, cut("what tokens are read", at.w, size), at.x, at.y + 2.8 * size, { size, colour: pal.soft });
    return;
  }
  const single = matrix.rows === 1;
  const title = single ? "tokens read by the last one" : "tokens read (columns)";
  write(g, cut(title, at.x + at.w - end - 0.6 * size, size), at.x + at.w, at.y + 1.2 * size, { size, colour: pal.soft, align: "right" });
  const { softmax } = scene.layer.attention;
  const most = largest(matrix, head);
  if (single && head >= 0) drawBars(g, panel, head, most, softmax, { size, pal });
  else drawTiles(g, panel, softmax ? level(SEQUENTIAL, 0, most) : level(diverging(scene.theme), -most, most), pal.faint);
  const told = `${head < 0 && single ? "a row a head" : "first sequence"}, up to ${num(most, 2)}`;
  write(g, cut(told, at.w + 0.8 * size, size), at.x, patternEnd(panel, size) - 0.6 * size, { size, colour: pal.ink });
}

/** Where the pattern and what is told of it end. */
const patternEnd = ({ at }, size) => at.y + 0.2 * at.h + 4.2 * size;

const barsOf = (panel, size) => ({ x: panel.at.x, w: panel.at.w, top: panel.at.y + 2.2 * size, bottom: patternEnd(panel, size) - 3 * size });

function drawBars(g, panel, head, most, softmax, { size, pal }) {
  const { matrix } = panel;
  const { x, w, top, bottom } = barsOf(panel, size);
  const pitch = Math.min(w / matrix.columns, 34);
  const zero = softmax ? bottom : (top + bottom) / 2;
  const height = (value) => (value / (most || 1)) * (zero - top) * 0.96;
  for (let j = 0; j < matrix.columns; j++) {
    const value = matrix.values[head * matrix.columns + j];
    g.fillStyle = pal.colours[value < 0 ? 0 : 1];
    g.fillRect(x + j * pitch + 0.1 * pitch, zero - Math.max(0, height(value)), 0.8 * pitch, Math.abs(height(value)));
    if (pitch > 1.4 * size) write(g, String(j + 1), x + (j + 0.5) * pitch, bottom + 1.1 * size, { size: size - 1, colour: pal.soft, align: "center" });
  }
  g.fillStyle = pal.faint;
  g.fillRect(x, zero, pitch * matrix.columns, 1);
}

function drawLegend(g, panel, { size, head }, scene, pal) {
  const { at } = panel;
  const y = patternEnd(panel, size) + 0.4 * size;
  const several = head < 0;
  const heads = Array.from({ length: several ? Math.min(6, scene.layer.attention.drawn) : 0 }, (_, k) => ({ kind: "line", colour: lineColour(k, scene.theme), text: `head ${k + 1}` }));
  const one = [
    { kind: "line", colour: pal.colours[0], text: "largest singular value" },
    { kind: "line", colour: pal.colours[5], text: "the other ones" },
  ];
  const height = legendRows(g, several ? heads : one, at.x, y, at.w, size, pal);
  const marks = Object.keys(scene.layer.arrays).some((name) => name.startsWith("mark_"));
  const predicted = scene.layer.attention.mark === "eigenvector" ? "e: eigenvector of the inputs" : "v, F: predicted vectors";
  const texts = several ? [] : ["top: top singular vector", ...(marks ? [predicted] : [])];
  texts.forEach((text, k) => write(g, cut(text, at.w + size, size), at.x, y + height + (1 + 1.35 * k) * size, { size, colour: pal.soft }));
}

function draw(g, box, scene) {
  if (!scene.frame || !scene.layer?.attention) {
    say(g, box, "The matrices of attention appear with the first frame.", scene);
    return;
  }
  const pal = palette(scene.theme);
  const spot = place(box, scene);
  for (const panel of spot.panels) {
    if (panel.name === "pattern") {
      drawPattern(g, panel, spot, scene, pal);
      drawLegend(g, panel, spot, scene, pal);
      loss.draw(g, panel.curves, scene);
      continue;
    }
    if (panel.matrix) drawMatrix(g, panel, spot, scene, pal);
    else writeName(g, panel.name, panel.at.x, panel.at.y + 1.2 * spot.size, spot.size, pal.ink);
    drawCurves(g, panel, spot, scene, pal);
  }
}

function hit(px, py, box, scene) {
  if (!scene.frame || !scene.layer?.attention) return null;
  const { panels, head } = place(box, scene);
  for (const panel of panels) {
    const { name, tiles, heat, matrix } = panel;
    if (name === "pattern") {
      const found = loss.hit(px, py, panel.curves, scene);
      if (found) return found;
    } else {
      const { area, across } = plotOf(panel, scene, head);
      const found = hitStep(px, py, area, across);
      if (found) return { ...found, panel: name };
    }
    if (!matrix || (name === "pattern" && matrix.rows === 1 && head >= 0)) continue;
    const [column, row] = [Math.floor((px - heat.x) / heat.cell), Math.floor((py - heat.y) / heat.cell)];
    if (column < 0 || row < 0 || column >= heat.across || row >= heat.down) continue;
    const [j, i] = [column % (tiles.c + tiles.gap), row % (tiles.r + tiles.gap)];
    const own = tiles.heads[Math.floor(row / (tiles.r + tiles.gap)) * tiles.across + Math.floor(column / (tiles.c + tiles.gap))];
    if (own === undefined || j >= tiles.c || i >= tiles.r) continue;
    const unit = isShown(panel, scene) ? { unit: own * tiles.r + i } : {};
    return { ...unit, panel: name, cell: { head: own, i, j, value: matrix.values[(own * tiles.r + i) * tiles.c + j] } };
  }
  return null;
}

function tip(own, scene) {
  if (own?.cell) {
    const { head, i, j, value } = own.cell;
    const where = scene.layer.attention.heads > 1 ? `, head ${head + 1}` : "";
    return [`${plainName(own.panel)}${where}: ${num(value)}`, `row ${i + 1}, column ${j + 1}`];
  }
  if (!(own?.step >= 0)) return tellUnit(own?.unit, scene);
  const { spectra } = scene;
  const k = rowAt(spectra, own.step);
  if (!own.panel) return tellStep(own, scene);
  if (k < 0) return [];
  const values = curvesOf(scene, own.panel, headOf(scene)).map(({ column }) => num(spectra[column][k]));
  return [`step ${spectra.step[k]}`, `${plainName(own.panel)}: ${count(values.length, "singular value")}`, values.join(", ")];
}

export const view = {
  name: "attention", title: "Matrices of attention", sentence, draw, hit, tip,
  shows: ({ opened, layer }) => Boolean(opened?.attention) && (!layer || Boolean(layer.attention)),
  absent: ({ opened, layer }) => (!layer || layer.attention ? "" : opened?.attention ? "attention, as no matrix of its heads was kept" : "attention, as the network has no heads"),
};

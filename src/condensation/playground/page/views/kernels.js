/** Kernels or filters as small pictures in block order, framed in the colour of their line; before them the predicted v1. */

import { diverging, LINES, lineColour, palette } from "../colours.js";
import { say, sheet, stamp, textSize, write } from "../figure.js";
import { count } from "./numbers.js";
import { arrayOf, cosine, linesOf, tellUnit, unitState } from "./units.js";

const SHOWN = 3; // predicted lines shown at most

/** The layout: columns of tiles right of the predicted ones. */
function place(box, scene) {
  const size = textSize(box);
  const state = unitState(scene);
  const predicted = Math.min(SHOWN, linesOf(scene.layer).attracting.length);
  const big = predicted ? Math.min(0.24 * box.w, (box.h - 2 * size) / predicted - 1.8 * size, 150) : 0;
  const x = box.x + size + (predicted ? big + 1.6 * size : 0);
  const area = { x, y: box.y + 1.9 * size, w: Math.max(20, box.x + box.w - size - x), h: Math.max(20, box.h - 2.5 * size) };
  let columns = 1;
  const pitch = (c) => Math.min(area.w / c, area.h / Math.ceil(state.n / c));
  for (let c = 1; c <= state.n; c++) if (pitch(c) > pitch(columns)) columns = c;
  return { size, state, predicted, big, area, columns, pitch: Math.min(64, state.n ? pitch(columns) : 1) };
}

function orderOf(scene, n) {
  const own = arrayOf(scene.frame, "order");
  return own?.length === n ? own : null;
}

/** Pixels of one unit's weights, scaled to their largest: one channel on blue to orange, three as colours, more in a mosaic.
 * A kernel of one dimension is drawn as stripes. */
function paintTile(own, left, top, weights, from, [channels, side, height = side], map) {
  let most = 0;
  const entries = side * height;
  const total = channels * entries;
  for (let k = 0; k < total; k++) if (Math.abs(weights[from + k]) > most) most = Math.abs(weights[from + k]);
  const level = (k) => (most > 0 ? 0.5 + weights[from + k] / most / 2 : 0.5);
  const area = side * side;
  const entry = (c, k) => c * entries + (k % entries);
  if (channels === 3) {
    for (let k = 0; k < area; k++) {
      const [r, g, b] = [0, 1, 2].map((c) => Math.round(255 * level(entry(c, k))));
      own.pixels[(top + Math.floor(k / side)) * own.w + left + (k % side)] = (255 << 24) | (b << 16) | (g << 8) | r;
    }
    return;
  }
  const across = Math.ceil(Math.sqrt(channels));
  for (let c = 0; c < channels; c++) {
    const [x0, y0] = [left + (c % across) * side, top + Math.floor(c / across) * side];
    for (let k = 0; k < area; k++) {
      const pixel = Math.min(255, Math.max(0, Math.round(255 * level(entry(c, k)))));
      own.pixels[(y0 + Math.floor(k / side)) * own.w + x0 + (k % side)] = map.table[Number.isNaN(pixel) ? 128 : pixel];
    }
  }
}

const tileSide = ([channels, side]) => (channels === 1 || channels === 3 ? side : side * Math.ceil(Math.sqrt(channels)));

function drawPredicted(g, box, { size, predicted, big }, scene, pal) {
  const lines = linesOf(scene.layer);
  const u = arrayOf(scene.layer, "lines");
  const { image } = scene.layer;
  if (!u || !lines.total) return;
  const d = u.length / lines.total;
  for (let k = 0; k < predicted; k++) {
    const tile = tileSide(image);
    const own = sheet(`predicted ${k}`, tile, tile);
    own.pixels.fill(0);
    paintTile(own, 0, 0, u, lines.attracting[k] * d, image, diverging(scene.theme));
    const [x, y] = [box.x + size, box.y + 1.9 * size + k * (big + 2 * size)];
    stamp(g, own, x, y, big, big);
    g.strokeStyle = lineColour(k, scene.theme);
    g.lineWidth = 3;
    g.strokeRect(x - 1.5, y - 1.5, big + 3, big + 3);
    const name = scene.layer.kind === "kernels" ? `v${"\u2081\u2082\u2083"[k]} predicted` : `line ${k + 1} predicted`;
    write(g, name, x, y - 0.6 * size, { size, colour: pal.ink, weight: 600 });
  }
}

function draw(g, box, scene) {
  const pal = palette(scene.theme);
  const { layer, frame } = scene;
  const w = arrayOf(frame, "w");
  if (!layer?.image || !w) {
    say(g, box, "Kernels appear with the first frame.", scene);
    return;
  }
  const spot = place(box, scene);
  const { state, area, columns, pitch, size } = spot;
  drawPredicted(g, box, spot, scene, pal);
  const tile = tileSide(layer.image);
  const step = tile + 1;
  const down = Math.ceil(state.n / columns);
  const own = sheet("kernels", columns * step, down * step);
  own.pixels.fill(0);
  const order = orderOf(scene, state.n);
  const d = w.length / state.n;
  for (let at = 0; at < state.n; at++) {
    const i = order ? order[at] : at;
    paintTile(own, (at % columns) * step, Math.floor(at / columns) * step, w, i * d, layer.image, diverging(scene.theme));
  }
  const inner = (pitch * tile) / step; // a pixel is left free between two tiles
  stamp(g, own, area.x, area.y, columns * pitch, down * pitch);
  for (let colour = -1; colour < LINES; colour++) {
    g.strokeStyle = lineColour(colour, scene.theme);
    g.lineWidth = Math.max(1.2, Math.min(3, 0.12 * pitch));
    g.beginPath();
    for (let at = 0; at < state.n; at++) {
      const rank = state.rank[order ? order[at] : at];
      if ((rank < 0 ? -1 : rank % LINES) !== colour) continue;
      g.rect(area.x + (at % columns) * pitch, area.y + Math.floor(at / columns) * pitch, inner, inner);
    }
    g.stroke();
  }
  const at = order ? order.indexOf(scene.hover?.unit ?? -1) : (scene.hover?.unit ?? -1);
  if (at >= 0 && at < state.n) {
    g.strokeStyle = pal.ink;
    g.lineWidth = 3;
    g.strokeRect(area.x + (at % columns) * pitch - 2, area.y + Math.floor(at / columns) * pitch - 2, inner + 4, inner + 4);
  }
  write(g, `${count(state.n, "unit")} in block order`, area.x, area.y - 0.6 * size, { size, colour: pal.ink });
}

function hit(px, py, box, scene) {
  if (!scene.layer?.image || !arrayOf(scene.frame, "w")) return null;
  const { area, columns, pitch, state } = place(box, scene);
  const [row, column] = [Math.floor((py - area.y) / pitch), Math.floor((px - area.x) / pitch)];
  const at = row * columns + column;
  if (row < 0 || column < 0 || column >= columns || at >= state.n) return null;
  const order = orderOf(scene, state.n);
  return { unit: order ? order[at] : at };
}

function sentence(scene) {
  const { frame, layer } = scene;
  if (!frame || !layer?.image) return "Each kernel as a small picture.";
  const state = unitState(scene);
  const [first] = linesOf(layer).attracting;
  if (first === undefined) return `The ${count(state.n, "unit")} as pictures, each scaled to its largest weight.`;
  let near = 0;
  for (let i = 0; i < state.n; i++) if (Math.abs(cosine(scene, i, first)) >= 0.95) near++;
  const name = layer.kind === "kernels" ? "v\u2081" : "line 1";
  const colours = layer.image[0] === 3 ? "colours are those of the image" : "blue weights are negative, orange positive";
  return `${near} of ${state.n} look like the predicted ${name} or its negative (|cos| \u2265 0.95); ${colours}.`;
}

export const view = {
  name: "kernels", title: "Kernels", shows: ({ layer }) => Boolean(layer?.image), sentence, draw, hit,
  absent: ({ layer }) => (layer?.image === null ? "kernels, as the layer has no convolution" : ""),
  tip: (own, scene) => tellUnit(own?.unit, scene),
};

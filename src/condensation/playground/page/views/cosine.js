/** The cosine between each two units, in block order: units of one line are squares. */

import { LINES, lineColour, palette, SIMILARITY } from "../colours.js";
import { colourBar, line, say, sheet, stamp, textSize, write } from "../figure.js";
import { num } from "./numbers.js";
import { arrayOf, tellUnit, unitState } from "./units.js";

const BAR = [{ at: 0, text: "\u22121" }, { at: 0.5, text: "0" }, { at: 1, text: "1" }];
const COLOUR = new Uint32Array(256); // of a cosine times 127, plus 128
for (let k = 0; k < 256; k++) COLOUR[k] = SIMILARITY.table[Math.round((Math.max(0, k - 1) / 254) * 255)];

const orders = new WeakMap();

/** Rows of the picture as numbers of units; the order last known of this layer where a frame has none. */
function orderOf(scene, n) {
  const own = arrayOf(scene.frame, "order");
  const name = `${scene.layer?.name} ${n}`;
  const key = scene.opened ?? scene.frame;
  if (own && own.length === n) {
    if (orders.get(key)?.order !== own) orders.set(key, { name, order: own });
    return own;
  }
  const before = orders.get(key);
  if (before?.name === name) return before.order;
  const plain = Uint16Array.from({ length: n }, (_, k) => k);
  orders.set(key, { name, order: plain });
  return plain;
}

function sizeOf(scene) {
  return Math.round(Math.sqrt(arrayOf(scene.frame, "cos")?.length ?? 0));
}

function place(box) {
  const size = textSize(box);
  const strip = Math.max(5, Math.round(size / 2));
  const bar = 0.9 * size + 0.4 * size + 1.5 * size;
  const top = 1.6 * size;
  const side = Math.max(8, Math.floor(Math.min(box.h - top - strip - 1.8 * size, box.w - bar - strip - 2.4 * size)));
  const x = box.x + Math.max(strip + 4, (box.w - side - bar - strip) / 2);
  return { size, strip, side, x, y: box.y + top + strip, barX: x + side + size };
}

/** A strip beside the rows and above the columns: the colour of each unit's line. */
function drawStrips(g, { x, y, side, strip }, scene, order, n) {
  const state = unitState(scene);
  const cell = side / n;
  if (state.by === "none" || state.n !== n) return;
  for (let from = 0; from < n; ) {
    const rank = state.rank[order[from]];
    let to = from + 1;
    while (to < n && state.rank[order[to]] === rank) to++;
    g.fillStyle = lineColour(rank < 0 ? -1 : rank % LINES, scene.theme);
    g.fillRect(x - strip - 2, y + from * cell, strip, (to - from) * cell);
    g.fillRect(x + from * cell, y - strip - 2, (to - from) * cell, strip);
    from = to;
  }
}

function draw(g, box, scene) {
  const pal = palette(scene.theme);
  const n = sizeOf(scene);
  if (!n) {
    say(g, box, "The cosines of all pairs appear with the first frame.", scene);
    return;
  }
  const cos = arrayOf(scene.frame, "cos");
  const order = orderOf(scene, n);
  const spot = place(box);
  const { x, y, side, size } = spot;
  const own = sheet("cosine", n, n);
  for (let row = 0, at = 0; row < n; row++) {
    const from = order[row] * n;
    for (let column = 0; column < n; column++) own.pixels[at++] = COLOUR[cos[from + order[column]] + 128];
  }
  stamp(g, own, x, y, side, side);
  drawStrips(g, spot, scene, order, n);
  g.strokeStyle = pal.faint;
  g.lineWidth = 1;
  g.strokeRect(x, y, side, side);
  const bar = { size, pal };
  colourBar(g, spot.barX, y, 0.9 * size, side, SIMILARITY, BAR, bar);
  write(g, "cosine", spot.barX + 2.8 * size, y - 0.8 * size, { size, colour: pal.ink, align: "right" });
  const name = `${n} units in block order`;
  write(g, name, x, y + side + 0.5 * size, { size, colour: pal.soft, base: "top" });
  drawCross(g, spot, scene, order, n, pal);
}

function drawCross(g, { x, y, side }, scene, order, n, pal) {
  const { unit, other } = scene.hover ?? {};
  if (!(unit >= 0 && unit < n)) return;
  const place = (i) => ((order.indexOf(i) + 0.5) / n) * side;
  const [row, column] = [place(unit), place(other >= 0 && other < n ? other : unit)];
  for (const [colour, width] of [[pal.theme === "dark" ? "#000000" : "#ffffff", 3], ["#ff3b30", 1.4]]) {
    g.strokeStyle = colour;
    g.lineWidth = width;
    g.beginPath();
    line(g, x, y + row, x + side, y + row);
    line(g, x + column, y, x + column, y + side);
    g.stroke();
  }
}

function hit(px, py, box, scene) {
  const n = sizeOf(scene);
  const { x, y, side } = place(box);
  const [row, column] = [Math.floor(((py - y) / side) * n), Math.floor(((px - x) / side) * n)];
  if (!n || row < 0 || column < 0 || row >= n || column >= n) return null;
  const order = orderOf(scene, n);
  return { unit: order[row], other: order[column] };
}

function tip(own, scene) {
  const n = sizeOf(scene);
  if (!(own?.unit >= 0 && own.other >= 0 && own.unit < n && own.other < n)) return tellUnit(own?.unit, scene);
  const value = arrayOf(scene.frame, "cos")[own.unit * n + own.other] / 127;
  const names = [own.unit, own.other].map((i) => tellUnit(i, scene)[0] ?? `unit ${i + 1}`);
  return [names.join(" and "), `cosine ${num(value, 2)}`];
}

function sentence(scene) {
  const n = sizeOf(scene);
  if (!n) return "Light where two units point the same way, dark where they point opposite ways.";
  const cos = arrayOf(scene.frame, "cos");
  const least = Math.ceil(127 * (scene.frame.lines?.threshold ?? 0.95));
  let near = 0;
  for (let k = 0; k < cos.length; k++) if (cos[k] >= least || -cos[k] >= least) near++;
  const share = n > 1 ? (near - n) / (n * (n - 1)) : 1;
  const blocks = scene.frame.lines?.condensed ? "square blocks are lines, dark corners their opposite sides" : "there are no clear blocks";
  const pairs = `${Math.max(0, Math.round(100 * share))}% of all pairs of units lie on one line`;
  return n > 1 ? `${pairs} (|cos| \u2265 ${num(least / 127, 2)}); ${blocks}.` : "One unit alone has nothing to be compared with.";
}

export const view = { name: "cosine", title: "Cosine similarity", shows: () => true, sentence, draw, hit, tip };

/** The network's function of two inputs as a map with its data, and a smaller one of the reduced network beside it. */

import { diverging, palette } from "../colours.js";
import { crisp, line, linear, sheet, stamp, textSize, ticksOf, widthOf, write } from "../figure.js";
import { extent } from "./curve1d.js";
import { num } from "./numbers.js";
import { arrayOf } from "./units.js";

/** The path along which a grid of values crosses zero. */
function zeroPath(g, values, side, px, py) {
  g.beginPath();
  for (let row = 0; row + 1 < side; row++) {
    for (let column = 0; column + 1 < side; column++) {
      const at = row * side + column;
      const corners = [values[at], values[at + 1], values[at + side + 1], values[at + side]];
      let code = 0;
      for (let k = 0; k < 4; k++) code |= corners[k] > 0 ? 1 << k : 0;
      if (code === 0 || code === 15 || !corners.every(Number.isFinite)) continue;
      const crossing = [];
      for (let k = 0; k < 4; k++) {
        const [a, b] = [corners[k], corners[(k + 1) % 4]];
        if (a > 0 === b > 0) continue;
        const t = a / (a - b);
        const [x, y] = [[t, 0], [1, t], [1 - t, 1], [0, 1 - t]][k];
        crossing.push([px(column + x), py(row + y)]);
      }
      for (let k = 0; k + 1 < crossing.length; k += 2) line(g, ...crossing[k], ...crossing[k + 1]);
    }
  }
}

function drawField(g, name, values, most, square, scene, pal) {
  const side = Math.round(Math.sqrt(values.length));
  const own = sheet(`output ${name}`, side, side);
  const { table } = diverging(scene.theme);
  for (let row = 0; row < side; row++) {
    for (let column = 0; column < side; column++) {
      const t = 0.5 + values[row * side + column] / most / 2;
      const at = (side - 1 - row) * side + column;
      own.pixels[at] = Number.isFinite(t) ? table[Math.min(255, Math.max(0, Math.round(t * 255)))] : 0;
    }
  }
  stamp(g, own, square.x, square.y, square.w, square.h, true);
  const pixel = square.w / side;
  zeroPath(g, values, side, (c) => square.x + (c + 0.5) * pixel, (r) => square.y + square.h - (r + 0.5) * pixel);
  g.strokeStyle = pal.ink;
  g.lineWidth = 1.6;
  g.lineCap = "round";
  g.stroke();
  g.lineCap = "butt";
  g.strokeStyle = pal.faint;
  g.lineWidth = 1;
  g.strokeRect(square.x, square.y, square.w, square.h);
}

function drawPoints(g, scene, across, up, radius, pal) {
  const [x, y] = [arrayOf(scene.opened, "x"), arrayOf(scene.opened, "y")];
  if (!x || !y) return;
  const n = x.length / 2;
  const outputs = y.length / n;
  const { low, high } = extent(y);
  const most = Math.max(Math.abs(low), Math.abs(high)) || 1;
  const map = diverging(scene.theme);
  g.strokeStyle = pal.ink;
  g.lineWidth = 1.2;
  for (let k = 0; k < n; k++) {
    if (![x[2 * k], x[2 * k + 1], y[k * outputs]].every(Number.isFinite)) continue;
    g.beginPath();
    g.arc(across.to(x[2 * k]), up.to(x[2 * k + 1]), radius, 0, 2 * Math.PI);
    g.fillStyle = map.css(0.5 + (0.42 * y[k * outputs]) / most);
    g.fill();
    g.stroke();
  }
}

const SMALL = 0.46; // side of the reduced network's map to the other's

/** The map on the left, a column on its right with the reduced network's map and the colours. */
function place(box, size) {
  const [left, top, bottom, gap] = [2.6 * size, 1.9 * size, 2 * size, 1.6 * size];
  const room = box.w - left - gap - size;
  const side = Math.max(16, Math.min(box.h - top - bottom, room / (1 + SMALL), room - 7 * size));
  const column = Math.max(SMALL * side, 7 * size);
  const x = box.x + left + Math.max(0, room - side - column) / 2;
  const y = box.y + top + Math.max(0, box.h - top - bottom - side) / 2;
  return { square: { x, y, w: side, h: side }, small: { x: x + side + gap, y, w: SMALL * side, h: SMALL * side }, column };
}

export function draw2d(g, box, scene) {
  const pal = palette(scene.theme);
  const size = textSize(box);
  const [f, reduced] = [arrayOf(scene.frame, "f"), arrayOf(scene.frame, "reduced")];
  const range = arrayOf(scene.opened, "grid") ?? [-1, 1, -1, 1];
  const { square, small, column } = place(box, size);
  const side = square.w;
  const across = linear(range[0], range[1], square.x, square.x + side);
  const up = linear(range[2], range[3], square.y + side, square.y);
  const { low, high } = extent(f);
  const most = Math.max(Math.abs(low), Math.abs(high));
  const scale = Number.isFinite(most) && most > 0 ? most : 1;
  if (f) drawField(g, "f", f, scale, square, scene, pal);
  drawPoints(g, scene, across, up, Math.min(6, Math.max(2.2, side / 60)), pal);
  drawTicks(g, square, across, up, size, pal);
  write(g, "x2", square.x - 2.4 * size, square.y - 0.6 * size, { size, colour: pal.ink });
  write(g, "x1", square.x + side + 0.3 * size, square.y + side + 0.5 * size, { size, colour: pal.ink, base: "top" });
  write(g, "network", square.x + side / 2, square.y - 0.6 * size, { size, colour: pal.ink, align: "center", weight: 600 });
  if (reduced) {
    drawField(g, "reduced", reduced, scale, small, scene, pal);
    const made = scene.frame.reduced;
    const name = made ? `${made.after} of ${made.before}` : "reduced";
    write(g, name, small.x, small.y - 0.6 * size, { size, colour: pal.ink, weight: 600 });
  }
  if (f) drawColours(g, small.x, square.y + side - 1.9 * size, column, scale, size, scene);
}

/** The colours of the output, lying. */
function drawColours(g, x, y, width, most, size, scene) {
  const [pal, map] = [palette(scene.theme), diverging(scene.theme)];
  const own = sheet("output bar", map.size, 1);
  own.pixels.set(map.table);
  stamp(g, own, x, y, width, 0.8 * size, true);
  g.strokeStyle = pal.faint;
  g.lineWidth = 1;
  g.strokeRect(x, y, width, 0.8 * size);
  write(g, "output f", x, y - 0.5 * size, { size, colour: pal.ink });
  const text = num(most, 2);
  if (2.4 * widthOf(text, size) > width) {
    write(g, `\u00b1 ${text}`, x + width / 2, y + 1.2 * size, { size, colour: pal.soft, align: "center", base: "top" });
    return;
  }
  write(g, `\u2212${text}`, x, y + 1.2 * size, { size, colour: pal.soft, base: "top" });
  write(g, text, x + width, y + 1.2 * size, { size, colour: pal.soft, align: "right", base: "top" });
}

function drawTicks(g, square, across, up, size, pal) {
  const bottom = square.y + square.h;
  g.strokeStyle = pal.faint;
  g.lineWidth = 1;
  for (const { value, text } of ticksOf(across, Math.max(2, Math.floor(square.w / (5 * size)))).ticks) {
    g.beginPath();
    line(g, crisp(across.to(value)), bottom, crisp(across.to(value)), bottom + 4);
    g.stroke();
    write(g, text, across.to(value), bottom + 0.5 * size, { size, colour: pal.soft, align: "center", base: "top" });
  }
  for (const { value, text } of ticksOf(up, Math.max(2, Math.floor(square.h / (3 * size)))).ticks) {
    write(g, text, square.x - 0.5 * size, up.to(value), { size, colour: pal.soft, align: "right", base: "middle" });
  }
}

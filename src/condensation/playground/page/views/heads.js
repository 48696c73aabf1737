/** What the picture of attention shows: its matrices, all heads of them or one, their singular values and numbers. */

import { num } from "./numbers.js";
import { arrayOf } from "./units.js";

export const NEAR = 0.95; // |cos| from which on a singular vector counts as the predicted one
const ONE = 1.5; // effective rank up to which a matrix is mostly one vector

/** The parts of a matrix's name: letter, subscript, and what is raised. */
const NAMES = {
  value: [["W", "V", ""]],
  query: [["W", "Q", ""]],
  key: [["W", "K", ""]],
  key_query: [["W", "QK", ""]],
  product: [["W", "Q", "\u1d40"], ["W", "K", ""]],
  pattern: [["A", "", ""]],
};
const ORDER = ["value", "query", "key", "key_query", "product"];
const PREDICTED = { value: "v", query: "F", key: "F" };

export const partsOf = (name) => NAMES[name];
export const plainName = (name) => NAMES[name].map(([letter, low, high]) => letter + (low ? `_${low}` : "") + high).join(" ");

/** Which head is looked at, from 0 on; -1 for all of them. */
export function headOf({ layer, own }) {
  const { drawn } = layer.attention;
  const head = Number(own?.head) - 1;
  return drawn === 1 ? 0 : head >= 0 && head < drawn ? head : -1;
}

/** A matrix of all heads: its numbers, and how many heads, rows and columns it has. */
function matrixOf(scene, name) {
  if (name === "product") return productOf(scene);
  const values = arrayOf(scene.frame, `head_${name}`);
  const [heads, rows, columns] = scene.frame?.shapes[`head_${name}`] ?? [0, 0, 0];
  return values ? { values, heads, rows, columns } : null;
}

const products = new WeakMap();

/** W_Q\u1d40 W_K of each head; not where only some rows are drawn. */
function productOf(scene) {
  const { frame, layer } = scene;
  const [query, key] = ["query", "key"].map((name) => matrixOf(scene, name));
  const whole = ({ name, rows, columns }) => name !== "query" || (rows === query.rows && columns === query.columns);
  if (!query || !key || !layer.attention.matrices.every(whole)) return null;
  if (products.has(frame)) return products.get(frame);
  const { heads, rows, columns: side } = query;
  const values = new Float32Array(heads * side * side);
  for (let h = 0; h < heads; h++) {
    for (let r = 0; r < rows; r++) {
      for (let a = 0; a < side; a++) {
        for (let k = 0; k < side; k++) {
          values[(h * side + a) * side + k] += query.values[(h * rows + r) * side + a] * key.values[(h * rows + r) * side + k];
        }
      }
    }
  }
  const product = { values, heads, rows: side, columns: side };
  products.set(frame, product);
  return product;
}

/** The panels of the picture: a matrix each, then the pattern of attention on a sequence. */
export function panelsOf(scene) {
  const known = ORDER.filter((name) => scene.layer.attention.values.some((one) => one.name === name));
  return [...known, "pattern"].map((name) => ({ name, matrix: matrixOf(scene, name) }));
}

/** The largest absolute value of what is shown of a matrix. */
export function largest({ values, heads }, head) {
  const size = values.length / heads;
  const [from, to] = head < 0 ? [0, values.length] : [head * size, (head + 1) * size];
  let most = 0;
  for (let k = from; k < to; k++) most = Math.max(most, Math.abs(values[k]));
  return most;
}

/** Where the singular values of a matrix stand in a row of the curve: `column(head, k)`, and how many there are of a head. */
export function valuesOf({ layer }, name) {
  let first = 0;
  for (const { name: other, count } of layer.attention.values) {
    if (other === name) return { count, column: (head, k) => first + head * count + k };
    first += layer.attention.heads * count;
  }
  return null;
}

/** Of one head: its effective rank, and the vector of theory that its top singular vector is nearest to. */
export function measured({ frame, layer }, name, head) {
  const rank = arrayOf(frame, `head_rank_${name}`)?.[head];
  const cosines = arrayOf(frame, `head_cos_${name}`);
  const count = layer.shapes?.[`mark_${name}`]?.[0] ?? 0;
  let [best, cosine] = [-1, NaN];
  for (let k = 0; cosines && k < count; k++) if (!(cosines[head * count + k] <= cosine)) [best, cosine] = [k, cosines[head * count + k]];
  return { rank, best, cosine, mark: count ? markName(layer, name, best, count) : "" };
}

/** What a vector of theory is called. */
function markName({ attention }, name, k, count) {
  if (attention.mark === "eigenvector") return `eigenvector ${k + 1}`;
  return PREDICTED[name] + (count > 1 ? ` ${k + 1}` : "");
}

/** The numbers of each head, and a range of their effective ranks in words. */
function allHeads(scene, name) {
  const each = Array.from({ length: scene.layer.attention.drawn }, (_, k) => measured(scene, name, k));
  const ranks = each.map(({ rank }) => rank);
  const [least, most] = [Math.min(...ranks), Math.max(...ranks)].map((rank) => num(rank, 2));
  const on = each.flatMap(({ cosine, rank, best }, k) => (cosine >= NEAR && rank < ONE ? [{ head: k + 1, best: best + 1 }] : []));
  return { each, on, ranks: `effective rank ${least === most ? least : `${least} to ${most}`}` };
}

/** The numbers below a matrix, as short lines; `good` where the vector is the predicted one. */
export function tellMatrix(scene, name, head) {
  if (!arrayOf(scene.frame, `head_rank_${name}`)) return [];
  if (head >= 0) {
    const { rank, cosine, mark } = measured(scene, name, head);
    const lines = [{ text: `effective rank ${num(rank, 3)}` }];
    if (mark) lines.push({ text: `|cos| with ${mark}: ${num(cosine, 3)}`, good: cosine >= NEAR });
    return lines;
  }
  const { each, on, ranks } = allHeads(scene, name);
  const lines = [{ text: ranks }];
  if (each[0].mark) lines.push({ text: `on one vector: ${on.length} of ${each.length}`, good: on.length > 0 });
  return lines;
}

/** The picture in a sentence: how far each matrix has condensed, and on what. */
export function sentence(scene) {
  const { frame, layer } = scene;
  if (!frame || !layer?.attention) return "The matrices of the heads, and their singular values.";
  const head = headOf(scene);
  const names = layer.attention.matrices.map(({ name }) => name).sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));
  const known = names.filter((name) => arrayOf(frame, `head_rank_${name}`));
  if (!known.length) return "The singular values of the matrices of attention.";
  const marked = Object.keys(layer.arrays).some((name) => name.startsWith("mark_"));
  const why = marked ? "" : "; theory predicts no vectors here";
  if (head < 0) return `${known.map((name) => tellHeads(scene, name)).join("; ")}${why}.`;
  const clauses = known.map((name) => {
    const { rank, cosine, mark } = measured(scene, name, head);
    return `${plainName(name)} has effective rank ${num(rank, 3)}${mark ? ` and |cos| ${num(cosine, 3)} with ${mark}` : ""}`;
  });
  const where = layer.attention.heads > 1 ? `Head ${head + 1}: ` : "";
  return `${where}${clauses.join("; ")}${why}.`;
}

/** All heads of a matrix in a clause: which of them are mostly one vector of theory. */
function tellHeads(scene, name) {
  const { each, on, ranks } = allHeads(scene, name);
  const said = `${plainName(name)}: ${ranks}`;
  if (!each[0].mark) return said;
  const what = scene.layer.attention.mark === "eigenvector" ? "eigenvector" : "predicted vector";
  if (!on.length) return `${said}, no head on one ${what} (|cos| \u2265 ${NEAR})`;
  return `${said}, ${on.map(({ head, best }) => `head ${head} on ${what} ${best}`).join(", ")}`;
}

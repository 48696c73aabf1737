/** The curves of a training so far: columns that grow, and are thinned when they are many. */

const MOST = 4000;
const COLUMNS = ["step", "loss", "lines", "keff", "error", "ratio"];

/** Names of the columns of singular values: the step, then a number for each. */
export const numbered = (width) => ["step", ...Array.from({ length: width - 1 }, (_, k) => k)];

export class Curve {
  length = 0;

  /** @param {(string|number)[]} [columns] the step first */
  constructor(columns = COLUMNS) {
    this.columns = columns;
    for (const name of columns) this[name] = new Float64Array(MOST);
  }

  clear() {
    this.length = 0;
  }

  /**
   * Adds rows of a number for each column. A row at a step that is known already is left out.
   * @param {Float64Array|Float32Array|undefined} rows
   */
  add(rows) {
    if (!rows) return;
    const { columns } = this;
    for (let at = 0; at + columns.length <= rows.length; at += columns.length) {
      if (this.length && rows[at] <= this.step[this.length - 1]) continue;
      if (this.length === MOST) this.#thin();
      for (let k = 0; k < columns.length; k++) this[columns[k]][this.length] = rows[at + k];
      this.length++;
    }
  }

  /** Takes other rows in place of these, up to their last step; what came later stays. */
  replace(rows) {
    if (!rows?.length) return;
    const { columns } = this;
    const last = rows[rows.length - columns.length];
    const later = [];
    for (let i = 0; i < this.length; i++) if (this.step[i] > last) later.push(...columns.map((name) => this[name][i]));
    this.clear();
    this.add(rows);
    this.add(Float64Array.from(later));
  }

  /** The last recorded step before `step`, or 0. */
  before(step) {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.step[middle] < step) low = middle + 1;
      else high = middle;
    }
    return low ? this.step[low - 1] : 0;
  }

  /** Keeps rows that are at least a 2000th of the whole apart: at most half of the room is left taken. */
  #thin() {
    const gap = (this.step[this.length - 1] - this.step[0]) / (MOST / 2 - 2);
    let kept = 1;
    for (let i = 1; i < this.length; i++) {
      const last = i === this.length - 1;
      if (!last && this.step[i] - this.step[kept - 1] < gap) continue;
      for (const name of this.columns) this[name][kept] = this[name][i];
      kept++;
    }
    this.length = kept;
  }
}

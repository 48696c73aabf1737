/** The curve of a training so far: columns that grow, and are thinned when they are many. */

const MOST = 4000;
const COLUMNS = ["step", "loss", "lines", "keff", "error", "ratio"];

export class Curve {
  length = 0;

  constructor() {
    for (const name of COLUMNS) this[name] = new Float64Array(MOST);
  }

  clear() {
    this.length = 0;
  }

  /**
   * Adds rows of six numbers. A row at a step that is known already is left out.
   * @param {Float64Array|undefined} rows
   */
  add(rows) {
    if (!rows) return;
    for (let at = 0; at + COLUMNS.length <= rows.length; at += COLUMNS.length) {
      if (this.length && rows[at] <= this.step[this.length - 1]) continue;
      if (this.length === MOST) this.#thin();
      for (let k = 0; k < COLUMNS.length; k++) this[COLUMNS[k]][this.length] = rows[at + k];
      this.length++;
    }
  }

  /** Takes other rows in place of these, up to their last step; what came later stays. */
  replace(rows) {
    if (!rows?.length) return;
    const last = rows[rows.length - COLUMNS.length];
    const later = [];
    for (let i = 0; i < this.length; i++) if (this.step[i] > last) later.push(...COLUMNS.map((name) => this[name][i]));
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
      for (const name of COLUMNS) this[name][kept] = this[name][i];
      kept++;
    }
    this.length = kept;
  }
}

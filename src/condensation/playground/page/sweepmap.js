/** The user's runs and sweeps: a list to open them from, and the map of a sweep whose cells can be trained. */

import { make } from "./dom.js";
import { group, option } from "./fields.js";
import { mount } from "./figure.js";
import { map } from "./views/map.js";

/** The group "Your runs and sweeps" in the settings; null where there are none. One that cannot be opened says why. */
export function libraryList({ library, recorded }, open) {
  if (!library.length) return null;
  const rows = library.map((entry) => {
    const act = { onclick: () => open(entry), disabled: Boolean(entry.shut) };
    const about = { type: "button", class: "library", "data-library": entry.name, ...act };
    const kind = entry.kind === "training" ? [] : [make("span", { class: "kind" }, entry.kind)];
    const button = make("button", about, ...kind, entry.title);
    return make("li", {}, button, ...(entry.problem ? [make("p", { class: "problem" }, entry.problem)] : []));
  });
  return group(recorded ? "Recorded" : "Your runs and sweeps", make("ul", { class: "library" }, ...rows));
}

/**
 * The card with a sweep's map.
 * @typedef {Object} Acts
 * @property {(message: object) => Promise<object>} request
 * @property {(name: string, cell: number) => void} open a cell was chosen
 * @property {(lines: string[], at: {x: number, y: number}|null) => void} tip
 * @property {(sentence: string) => void} fail
 * @property {() => object} state
 * @property {() => void} closed
 */
export class SweepMap {
  /** @type {string|null} the sweep that is shown */
  name = null;
  /** how many seeds each of its cells has */
  seeds = 1;
  #root;
  #acts;
  #figure = null;
  #canvas = null;
  #map = null;
  #selects = {};
  #sentence = null;

  /**
   * @param {HTMLElement} root
   * @param {Acts} acts
   */
  constructor(root, acts) {
    this.#root = root;
    this.#acts = acts;
  }

  /** Reads the map of a sweep and shows it; tells whether it could. */
  async show(name, wish = {}) {
    try {
      this.#map = await this.#acts.request({ do: "sweep", name, ...wish });
    } catch (error) {
      this.#acts.fail(error.message);
      return false;
    }
    if (!this.#figure) this.#build();
    this.name = name;
    const { quantities, axes, quantity, x, y, title, seeds, notes } = this.#map;
    this.#root.querySelector("h2").textContent = title;
    fill(this.#selects.quantity, quantities, quantity);
    fill(this.#selects.x, axes, x);
    fill(this.#selects.y, axes, y);
    this.#selects.y.parentElement.hidden = axes.length < 2;
    this.seeds = seeds;
    const over = [seeds > 1 ? `${seeds} seeds` : "", axes.length > 2 ? "the other axes" : ""].filter(Boolean).join(" and ");
    const medians = over ? `Medians over ${over}. ` : "";
    this.#sentence.textContent = `${medians}Click a cell to train its network while you watch${axes.length > 2 ? ", at the first value of the other axes" : ""}.${notes.map((note) => ` Note: ${note}.`).join("")}`;
    this.paint();
    return true;
  }

  paint() {
    if (this.#figure) this.#figure.paint(this.#scene());
  }

  close() {
    this.#figure?.release?.();
    this.#figure = null;
    this.name = null;
    this.#root.replaceChildren();
    this.#acts.closed();
  }

  /** What the map view draws: the page's scene with the map in it. */
  #scene() {
    const state = this.#acts.state();
    return { ...state, map: this.#map, hover: this.hover ?? null, cell: state.source?.do === "cell" ? state.source.cell : null };
  }

  #build() {
    const again = () => {
      const { quantity, x, y } = this.#selects;
      this.show(this.name, { quantity: quantity.value, x: x.value, ...(y.value && { y: y.value }) });
    };
    const select = (name, label) => {
      this.#selects[name] = make("select", { onchange: again, "data-map": name });
      return make("label", { class: "inline" }, label, " ", this.#selects[name]);
    };
    const label = "Map of the sweep: arrow keys choose a cell, Enter opens it";
    this.#canvas = make("canvas", { tabindex: 0, role: "img", "aria-label": label });
    this.#sentence = make("p", { class: "sentence" });
    const about = { type: "button", class: "quiet icon small", "aria-label": "Close the map", onclick: () => this.close() };
    const close = make("button", about, "\u00d7");
    this.#root.replaceChildren(
      make(
        "section",
        { class: "card map", "data-view": "map" },
        make("header", {}, make("h2", {}), close),
        make("div", { class: "selects" }, select("quantity", "shown"), select("x", "across"), select("y", "up")),
        make("div", { class: "frame" }, this.#canvas),
        this.#sentence,
      ),
    );
    this.#figure = mount(map, this.#canvas);
    this.#canvas.addEventListener("pointermove", (event) => this.#over(this.#hit(event), event));
    this.#canvas.addEventListener("pointerleave", () => this.#over(null, null));
    this.#canvas.addEventListener("click", (event) => this.#choose(this.#hit(event)));
    this.#canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #hit(event) {
    return map.hit(event.offsetX, event.offsetY, this.#figure.box(), this.#scene());
  }

  #over(hit, at) {
    this.hover = hit;
    this.#acts.tip(hit ? map.tip(hit, this.#scene()) : [], hit && at ? { x: at.clientX, y: at.clientY } : null);
    this.paint();
  }

  #choose(hit) {
    if (!(hit && hit.cell >= 0)) return;
    const { x, y, xs, ys } = this.#map;
    this.#acts.open(this.name, hit.cell, x === "step" ? xs[hit.column] : y === "step" ? ys[hit.row] : 0);
  }

  /** Arrow keys go from cell to cell, Enter opens one. */
  #key(event) {
    const [rows, columns] = this.#map.shapes.cells;
    const way = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [1, 0], ArrowDown: [-1, 0] }[event.key];
    if (event.key === "Enter") this.#choose(this.hover);
    else if (way) {
      const row = Math.min(rows - 1, Math.max(0, (this.hover?.row ?? 0) + way[0]));
      const column = Math.min(columns - 1, Math.max(0, (this.hover?.column ?? -1) + way[1]));
      const rect = this.#canvas.getBoundingClientRect();
      const cell = this.#map.arrays.cells[row * columns + column];
      this.#over({ row, column, cell }, { clientX: rect.left + 20, clientY: rect.top + 20 });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

/** Fills a select with names. */
function fill(select, names, chosen) {
  select.replaceChildren(...names.map((name) => option([name, name])));
  select.value = chosen;
}

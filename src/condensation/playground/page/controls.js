/** The settings at the left: groups of fields, and a draft that is sent when the user rests. */

import { find, make, reveal } from "./dom.js";
import { drawing, STARTER } from "./drawing.js";
import { choice, field, group, line, number, option, pair, slider, tick } from "./fields.js";
import { layersField } from "./layers.js";
import { CANNOT } from "./recorded.js";
import { Shown } from "./shown.js";

export const NARROW = "(max-width: 760px)"; // there the pictures come first
const REST = 150; // ms after the last change
const FUNCTIONS = "+ - * / ** sin cos tan tanh exp log sqrt abs sign relu max min";
const HINTS = {
  formula: `in x (summed over the inputs) or in x1, x2, \u2026: ${FUNCTIONS}`,
  turn: "Rotates the samples after their targets were computed",
  width: "Neurons in each hidden layer, channels, or coordinates of a token",
  tokens: "Tokens of a sequence; for regression in context, pairs of x and y before the query",
  eigenvalues: "Eigenvalues of the covariance of x, one for each coordinate, with commas between",
  heads: "Heads of attention",
  rank: "Rows of each head's query and key",
  merged: "One matrix in the place of the product of query and key",
  std_w: "Standard deviation of the initial hidden weights",
  std_a: "Standard deviation of the initial output weights",
  rate: "Learning rate; for gradient flow, the time of one step",
  seed: "Seed of the initial weights and of random samples",
};
const DATA = [["formula", "formula"], ["points", "points, drawn"], ["digits", "digits, images"], ["sequences", "sequences, attention"], ["context", "regression in context"]];
export const OF_TOKENS = ["sequences", "context"]; // data for networks of attention
const SPACINGS = [["random", "random"], ["even", "even"]];

/**
 * @typedef {Object} Acts
 * @property {(settings: Object<string, string>, setting: string|null) => void} open the settings changed, this one last
 * @property {(reduce: string) => void} reduce
 * @property {(layer: string, view: string) => void} layer
 * @property {(head: string|undefined) => void} head
 * @property {(seed: number) => void} seed another seed of a saved run, by its place
 * @property {() => void} leave back from a saved run to a new training
 */
export class Controls {
  #hello;
  #acts;
  #draft;
  #data = "";
  #timer = 0;
  #fields = {};
  #range;
  #pad;
  #figures;
  #targets;
  #about = make("p", { class: "hint" });
  #settings;
  #note = make("div", { class: "note", hidden: true });
  #shown;

  /**
   * @param {HTMLElement} root
   * @param {object} hello
   * @param {Acts} acts
   */
  constructor(root, hello, acts) {
    this.#hello = hello;
    this.#acts = acts;
    this.#draft = { ...hello.defaults };
    this.#figures = presets("figure", "Example", hello.figures, (settings) => this.#change({ ...hello.defaults, ...settings }, null));
    this.#targets = presets("target", "Preset", hello.targets, (settings) => this.#change(settings, null));
    this.#settings = this.#build(hello);
    this.#shown = new Shown(hello.limits.reduce, Boolean(hello.recorded), {
      layer: acts.layer,
      head: acts.head,
      reduce: (value) => {
        this.#draft.reduce = value;
        acts.reduce(value);
      },
    });
    root.replaceChildren(this.#note, this.#settings, this.#shown.element);
    this.set(hello.defaults);
  }

  /** Shows settings, unless the user has changed something since. */
  set(settings) {
    if (this.#timer) return;
    this.#draft = { ...settings };
    this.#data = settings.data;
    this.#refresh();
  }

  /** What is wrong with the setting that was changed last; tells whether there is a place to say it. */
  fault(setting, sentence) {
    const place = this.#fields[setting];
    if (!place || place.element.hidden) return false;
    place.fault(sentence);
    return true;
  }

  /** Another initialization: a random seed. */
  roll() {
    this.#change({ seed: String(Math.floor(Math.random() * 10000)) }, "seed");
  }

  /** Shows what can be set of what was opened. */
  opened(opened, source) {
    if (opened.settings) this.set(opened.settings);
    this.#clear();
    const { recorded } = this.#hello;
    this.#settings.hidden = !opened.settings;
    this.#settings.disabled = !opened.settings || Boolean(recorded);
    this.#note.hidden = Boolean(opened.settings) && !recorded;
    if (!opened.settings) this.#describe(opened, source);
    else if (recorded) this.#note.replaceChildren(make("p", {}, CANNOT));
    this.#shown.list(opened.layers, !opened.attention);
  }

  /** Shows which of the heads is looked at. */
  heads(count, head) {
    this.#shown.heads(count, head);
  }

  /** Shows which layer is looked at. */
  layer(name, views, view, predicted) {
    this.#shown.layer(name, views, view, predicted);
  }

  /** Puts a list of what can be opened before the settings. */
  list(group) {
    this.#note.after(group);
  }

  paint(theme) {
    this.#pad.paint(theme);
  }

  #build({ limits, optimizers, activations }) {
    const change = (setting, value) => this.#change({ [setting]: value }, setting);
    const add = (made) => (this.#fields[made.setting] = made).element;
    const log = { log: true };
    const seed = number("seed", "Seed", limits.seed, true, change, HINTS.seed);
    const about = { type: "button", class: "icon small", "aria-label": "New seed", title: "New seed (n)" };
    seed.element.querySelector(".inputs").append(make("button", { ...about, onclick: () => this.roll() }, "\u2684"));
    this.#pad = drawing(change);
    const low = add(number("low", "from", limits.low, false, change));
    this.#range = pair("Range", low, add(number("high", "to", limits.high, false, change)));
    return make(
      "fieldset",
      { class: "settings" },
      make("legend", { class: "unseen" }, "Settings"),
      group("Examples", this.#figures.element, this.#about),
      group(
        "Target",
        add(choice("data", "Data", DATA, change)),
        this.#targets.element,
        add(line("formula", "y =", change, HINTS.formula)),
        add(this.#pad),
        add(number("inputs", "Inputs", limits.inputs, true, change)),
        add(number("n", "Samples", limits.n, true, change)),
        add(number("tokens", "Tokens", limits.tokens, true, change, HINTS.tokens)),
        add(line("eigenvalues", "\u03bb of x", change, HINTS.eigenvalues)),
        this.#range,
        add(choice("spacing", "Spacing", SPACINGS, change)),
        add(slider("turn", "Turn, \u00b0", [-180, 180], { whole: true }, change, HINTS.turn)),
      ),
      group(
        "Network",
        add(layersField(activations, change)),
        add(slider("width", "Width", limits.width, { log: true, whole: true }, change, HINTS.width)),
        add(number("heads", "Heads", limits.heads, true, change, HINTS.heads)),
        add(number("rank", "Rank", limits.rank, true, change, HINTS.rank)),
        add(tick("merged", "key and query merged", change, HINTS.merged)),
        make("div", { class: "ticks" }, add(tick("residual", "residual", change)), add(tick("bias", "bias", change))),
      ),
      group(
        "Initialization",
        add(slider("std_w", "Hidden", [1e-8, 10], log, change, HINTS.std_w)),
        add(slider("std_a", "Output", [1e-8, 10], log, change, HINTS.std_a)),
      ),
      group(
        "Training",
        add(choice("optimizer", "Method", optimizers.map(({ name, label }) => [name, label]), change)),
        add(slider("rate", "Rate", [1e-6, 1], log, change, HINTS.rate)),
        add(slider("eps", "Adam's \u03b5", [1e-20, 1], log, change)),
        add(seed),
      ),
    );
  }

  /** A note in place of the settings, for a run that has none. */
  #describe(opened, source) {
    const cell = source.do === "cell";
    const saved = this.#hello.recorded ? `A saved run. ${CANNOT}` : "A saved run. You can watch it, but not change its settings.";
    const about = cell ? "One cell of a sweep, trained while you watch." : saved;
    const parts = [make("strong", {}, opened.title), make("p", {}, about)];
    if (opened.seeds.length > 1) {
      const select = make("select", { id: "run-seed" }, ...opened.seeds.map((name, k) => option([String(k), name])));
      select.value = String(opened.seed);
      select.addEventListener("change", () => this.#acts.seed(Number(select.value)));
      parts.push(field("run-seed", "Seed", select, [], () => {}).element);
    }
    const leave = { type: "button", id: "leave", disabled: Boolean(this.#hello.recorded), onclick: () => this.#acts.leave() };
    parts.push(make("button", leave, "Train a new one"));
    this.#note.replaceChildren(...parts);
  }

  #clear() {
    for (const field of Object.values(this.#fields)) field.fault("");
  }

  #change(settings, setting) {
    const draft = Object.assign(this.#draft, settings);
    if (setting === "data") {
      const { seed, data, points } = draft;
      const example = this.#hello.figures.find((figure) => figure.settings.data === data && !["formula", "points"].includes(data));
      // Images and attention need other settings for training: take those of the papers' example. Nor are these for other data.
      if (example) Object.assign(draft, example.settings, { seed });
      else if (OF_TOKENS.includes(this.#data)) Object.assign(draft, this.#hello.defaults, { seed, data, points });
    }
    this.#data = draft.data;
    if (draft.data === "points" && !draft.points && setting === "data") draft.points = STARTER;
    const { channels, deep } = this.#hello.widest;
    const most = draft.data === "digits" ? channels : draft.layers.includes(",") ? deep : Infinity;
    if (setting !== "width" && Number(draft.width) > most) draft.width = String(most);
    this.#clear();
    this.#refresh();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.#acts.open({ ...this.#draft }, setting);
    }, REST);
  }

  /** Writes the draft into the fields and shows those that matter. */
  #refresh() {
    const draft = this.#draft;
    for (const [setting, field] of Object.entries(this.#fields)) field.set(draft[setting] ?? "");
    this.#shown?.set(draft.reduce);
    const [formula, points, digits, sequences, context] = DATA.map(([name]) => draft.data === name);
    const tokens = sequences || context;
    const shows = {
      formula, points, inputs: formula, n: !points, spacing: formula, turn: points || (formula && draft.inputs === "2"),
      residual: formula || points, bias: formula || points, eps: draft.optimizer === "adam", tokens, heads: tokens,
      eigenvalues: context, rank: context && draft.merged !== "1", merged: context, layers: !context, width: !context,
    };
    for (const [setting, shown] of Object.entries(shows)) this.#fields[setting].show(shown);
    this.#range.hidden = !formula;
    this.#targets.element.hidden = digits || tokens;
    this.#fields.layers.element.querySelector(".depth").hidden = sequences;
    this.#about.textContent = this.#figures.match(this.#hello.defaults, draft)?.about ?? "";
    this.#targets.match({}, draft);
  }
}

/** A choice of presets that shows which of them the settings are. */
function presets(id, label, list, use) {
  const options = [["", "\u2013"], ...list.map(({ name, title }) => [name, title])];
  const select = make("select", { id: `preset-${id}` }, ...options.map(option));
  select.addEventListener("change", () => {
    const chosen = list.find(({ name }) => name === select.value);
    if (chosen) use(chosen.settings);
  });
  const match = (base, settings) => {
    const same = ([setting, value]) => setting === "seed" || settings[setting] === value;
    const preset = list.find(({ settings: own }) => Object.entries({ ...base, ...own }).every(same));
    select.value = preset?.name ?? "";
    return preset;
  };
  return { element: field(id, label, select, [], () => {}).element, match };
}

/** Folds the settings away, or shows them again; on a narrow screen they stand below the pictures. */
export function fold() {
  const button = find("fold");
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(open));
  document.body.classList.toggle("folded", !open);
  if (open && matchMedia(NARROW).matches) reveal(find("panel"));
}

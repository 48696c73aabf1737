/** The settings at the left: groups of fields, a draft of the words, and when to tell of a change. */

import { find, make } from "./dom.js";
import { drawing, STARTER } from "./drawing.js";
import { choice, field, group, line, number, option, slider, tick } from "./fields.js";

const REST = 150; // ms after the last change
const DEEPEST = 5;
const WIDEST = { digits: 64, deep: 128 }; // the server's own limits, so that a change of depth is not refused

/**
 * @typedef {Object} Acts
 * @property {(words: Object<string, string>, word: string|null) => void} open the words were changed, this one last
 * @property {(reduce: string) => void} reduce
 * @property {(layer: string, view: string) => void} layer
 * @property {(seed: number) => void} seed another seed of a saved run, by its place
 * @property {() => void} leave back from a saved run to a new training
 */
export class Controls {
  #hello;
  #acts;
  #fields = {};
  #draft;
  #timer = 0;
  #pad;
  #layers;
  #figures;
  #targets;
  #about;
  #settings;
  #note;
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
    const change = (word, value) => this.#change({ [word]: value }, word);
    const limits = hello.limits;
    const add = (made) => (this.#fields[made.word] = made).element;

    this.#figures = presets("figure", "Example", hello.figures, (words) => this.#change({ ...hello.defaults, ...words }, null));
    this.#about = make("p", { class: "hint" });
    this.#targets = presets("target", "Preset", hello.targets, (words) => this.#change(words, null));
    this.#pad = drawing(change);
    this.#fields.points = this.#pad;
    this.#layers = make("div", { class: "layers" });
    const dice = make("button", { type: "button", class: "icon small", "aria-label": "New seed", title: "New seed (n)", onclick: () => this.roll() }, "\u2684");
    const rate = slider("rate", "Rate", [1e-6, 1], { log: true }, change, "Learning rate; of gradient flow the time of a step");
    const seed = number("seed", "Seed", limits.seed, true, change, "Of the start and of random data");
    seed.element.querySelector(".inputs").append(dice);
    this.#settings = make(
      "fieldset",
      { class: "settings" },
      make("legend", { class: "unseen" }, "Settings"),
      group("Examples", this.#figures.element, this.#about),
      group(
        "Target",
        add(choice("data", "Data", [["formula", "formula"], ["points", "points, drawn"], ["digits", "digits, images"]], change)),
        this.#targets.element,
        add(line("formula", "y =", change, "in x (summed over the inputs) or x1, x2, \u2026: + - * / ** sin cos tan tanh exp log sqrt abs sign relu max min")),
        this.#pad.element,
        add(number("inputs", "Inputs", limits.inputs, true, change)),
        add(number("n", "Samples", limits.n, true, change)),
        pair("Range", add(number("low", "from", limits.low, false, change)), add(number("high", "to", limits.high, false, change))),
        add(choice("spacing", "Spacing", [["random", "random"], ["even", "even"]], change)),
        add(slider("turn", "Turn, \u00b0", [-180, 180], { whole: true }, change, "Turns the samples after their targets were computed")),
      ),
      group(
        "Network",
        add(field("layers", "Layers", this.#layers, [], () => this.#setLayers())),
        add(slider("width", "Width", limits.width, { log: true, whole: true }, change, "Neurons in each hidden layer, or channels")),
        make("div", { class: "ticks" }, add(tick("residual", "residual", change)), add(tick("bias", "bias", change))),
      ),
      group(
        "Start",
        add(slider("std_w", "Hidden", [1e-8, 10], { log: true }, change, "Standard deviation of the hidden weights")),
        add(slider("std_a", "Output", [1e-8, 10], { log: true }, change, "Standard deviation of the output weights")),
      ),
      group(
        "Training",
        add(choice("optimizer", "Method", hello.optimizers.map(({ name, label }) => [name, label]), change)),
        add(rate),
        add(slider("eps", "Adam's \u03b5", [1e-20, 1], { log: true }, change)),
        add(seed),
      ),
    );
    this.#note = make("div", { class: "note", hidden: true });
    this.#shown = this.#makeShown();
    root.replaceChildren(this.#note, this.#settings, this.#shown.element);
    this.set(hello.defaults);
  }

  /** Shows words, unless the user has changed something since. */
  set(words) {
    if (this.#timer) return;
    this.#draft = { ...words };
    this.#refresh();
  }

  /** What is wrong with the word that was changed last; tells whether there is a place to say it. */
  fault(word, sentence) {
    const place = this.#fields[word];
    if (!place || place.element.hidden) return false;
    place.fault(sentence);
    return true;
  }

  /** Another start. */
  roll() {
    this.#change({ seed: String(Math.floor(Math.random() * 10000)) }, "seed");
  }

  /** Shows what can be set of what was opened. */
  opened(opened, source) {
    if (opened.words) this.set(opened.words);
    for (const one of Object.values(this.#fields)) one.fault("");
    this.#settings.disabled = !opened.words;
    this.#settings.hidden = !opened.words;
    this.#note.hidden = Boolean(opened.words);
    if (!opened.words) this.#describe(opened, source);
    const { layer } = this.#shown;
    layer.replaceChildren(...opened.layers.map((one) => option([one.name, `${one.label} (${one.units})`])));
  }

  /** Shows which layer is looked at. */
  layer(name, views, view, predicted) {
    this.#shown.layer.value = name;
    this.#shown.predicted = predicted;
    this.#shown.views.hidden = !views.length;
    if (views.includes(view)) this.#shown.view.value = view;
  }

  paint(theme) {
    this.#pad.paint(theme);
  }

  #describe(opened, source) {
    const parts = [
      make("strong", {}, opened.title),
      make("p", {}, opened.live ? "The run of a sweep's cell, trained again while you watch." : "A saved run: it can be looked at, step by step, but not changed."),
    ];
    if (opened.seeds?.length > 1) {
      const select = make("select", { id: "run-seed" }, ...opened.seeds.map((name, k) => option([String(k), name])));
      select.value = String(opened.seed);
      select.addEventListener("change", () => this.#acts.seed(Number(select.value)));
      parts.push(make("label", { for: "run-seed" }, "Seed "), select);
    }
    const text = source?.do === "cell" ? "Back to the settings" : "Train a new one";
    parts.push(make("button", { type: "button", id: "leave", onclick: () => this.#acts.leave() }, text));
    this.#note.replaceChildren(...parts);
  }

  #makeShown() {
    const layer = make("select", { "data-word": "layer", id: "word-layer" });
    const view = make("select", { id: "word-view" }, option(["kernel", "kernels"]), option(["filter", "filters"]));
    const tell = () => this.#acts.layer(layer.value, view.value);
    layer.addEventListener("change", tell);
    view.addEventListener("change", tell);
    const auto = make("input", { type: "checkbox", id: "reduce-auto" });
    const count = make("input", { type: "number", min: 1, max: this.#hello.limits.reduce?.[1] ?? 400, step: 1, class: "short" });
    const most = Number(count.max);
    const reduce = () => {
      if (!auto.checked) count.value = String(Math.min(most, Math.max(1, Math.round(Number(count.value) || this.#shown.predicted || 1))));
      this.#draft.reduce = auto.checked ? "auto" : count.value;
      made.set(this.#draft.reduce);
      this.#acts.reduce(this.#draft.reduce);
    };
    auto.addEventListener("change", reduce);
    count.addEventListener("change", reduce);
    const label = make("label", { class: "inline", for: "reduce-auto" }, auto, " auto");
    label.title = "As many as lines are predicted";
    const made = field("reduce", "Reduce to", count, [label], (value) => {
      auto.checked = value === "auto";
      count.disabled = auto.checked;
      count.value = auto.checked ? "" : value;
    }, "How many units the reduced network has");
    this.#fields.reduce = made;
    const views = field("view", "Units", view, [], () => {}).element;
    const element = group("Shown", field("layer", "Layer", layer, [], () => {}).element, views, made.element);
    return { element, layer, view, views, predicted: null };
  }

  #change(words, word) {
    Object.assign(this.#draft, words);
    if (words.data === "digits" && word === "data") {
      // Images need a training of their own: the papers' example is where to begin.
      Object.assign(this.#draft, this.#hello.figures.find((one) => one.words.data === "digits")?.words, { seed: this.#draft.seed });
    }
    if (this.#draft.data === "points" && !this.#draft.points) this.#draft.points = STARTER;
    const most = this.#draft.data === "digits" ? WIDEST.digits : this.#draft.layers.includes(",") ? WIDEST.deep : Infinity;
    if (word !== "width" && Number(this.#draft.width) > most) this.#draft.width = String(most);
    for (const one of Object.values(this.#fields)) one.fault("");
    this.#refresh();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      this.#acts.open({ ...this.#draft }, word);
    }, REST);
  }

  /** Writes the draft into the fields and shows those that matter. */
  #refresh() {
    const draft = this.#draft;
    for (const [word, one] of Object.entries(this.#fields)) one.set(draft[word] ?? "");
    const formula = draft.data === "formula";
    const shows = {
      formula,
      points: draft.data === "points",
      inputs: formula,
      n: draft.data !== "points",
      low: formula,
      high: formula,
      spacing: formula,
      turn: draft.data === "points" || (formula && draft.inputs === "2"),
      residual: draft.data !== "digits",
      bias: draft.data !== "digits",
      eps: draft.optimizer === "adam",
    };
    for (const [word, shown] of Object.entries(shows)) this.#fields[word].show(shown);
    this.#fields.low.element.parentElement.parentElement.hidden = !formula;
    this.#targets.element.hidden = draft.data === "digits";
    const figure = this.#figures.match({ ...this.#hello.defaults }, draft);
    this.#about.textContent = figure?.about ?? "";
    this.#targets.match({}, draft);
  }

  #setLayers() {
    const names = this.#draft.layers.split(",").filter(Boolean);
    const options = this.#hello.activations.map(({ name, label, p }) => [name, p ? `${label} (p = ${p})` : label]);
    const tell = (next) => this.#change({ layers: next.join(",") }, "layers");
    const same = this.#layers.childElementCount === names.length + 1;
    if (!same) {
      const rows = names.map((_, k) => {
        const select = make("select", { "data-word": `layer${k + 1}`, "aria-label": `Activation of layer ${k + 1}` }, ...options.map(option));
        select.addEventListener("change", () => tell([...this.#layers.querySelectorAll("select")].map((one) => one.value)));
        return make("div", { class: "layer-row" }, make("span", { class: "hint" }, String(k + 1)), select);
      });
      const current = () => [...this.#layers.querySelectorAll("select")].map((one) => one.value);
      const add = make("button", { type: "button", class: "small", "aria-label": "One layer more", title: "One layer more", onclick: () => tell([...current(), current().at(-1)]) }, "+ layer");
      const less = make("button", { type: "button", class: "small", "aria-label": "One layer less", title: "One layer less", onclick: () => tell(current().slice(0, -1)) }, "\u2212 layer");
      add.disabled = names.length >= DEEPEST;
      less.disabled = names.length <= 1;
      const focused = this.#layers.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
      this.#layers.replaceChildren(...rows, make("div", { class: "depth" }, less, add));
      if (focused) this.#layers.querySelector(`[aria-label="${focused}"]:enabled`)?.focus();
    }
    [...this.#layers.querySelectorAll("select")].forEach((select, k) => {
      select.value = names[k];
    });
  }
}

/** Two fields beside each other under one label. */
function pair(label, first, second) {
  return make("div", { class: "pair", role: "group", "aria-label": label }, make("span", { class: "label" }, label), make("div", { class: "inputs" }, first, second));
}

/** A choice of presets that shows which of them the words are. */
function presets(id, label, list, use) {
  const select = make("select", { id: `preset-${id}` }, option(["", "\u2013"]), ...list.map(({ name, title }) => option([name, title])));
  select.addEventListener("change", () => {
    const chosen = list.find(({ name }) => name === select.value);
    if (chosen) use(chosen.words);
  });
  const made = field(id, label, select, [], () => {});
  const match = (base, words) => {
    const found = list.find((one) => Object.entries({ ...base, ...one.words }).every(([word, value]) => word === "seed" || String(words[word]) === String(value)));
    select.value = found?.name ?? "";
    return found;
  };
  return { element: made.element, match };
}

/** Folds the settings away, or shows them again. */
export function fold(open) {
  const button = find("fold");
  const next = open ?? button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(next));
  document.body.classList.toggle("folded", !next);
}

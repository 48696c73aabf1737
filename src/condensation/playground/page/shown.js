/** What the pictures show: the layer, its units, and the size of the reduced network. */

import { make } from "./dom.js";
import { field, group, option } from "./fields.js";

/**
 * @typedef {Object} Acts
 * @property {(layer: string, view: string) => void} layer
 * @property {(head: string|undefined) => void} head of attention, from 1 on; undefined for all of them
 * @property {(reduce: string) => void} reduce "auto" or a number
 */
export class Shown {
  #layer = make("select", { "data-setting": "layer", id: "setting-layer" });
  #view = make("select", { id: "setting-view" }, option(["kernel", "kernels"]), option(["filter", "filters"]));
  #head = make("select", { id: "setting-head" });
  #heads;
  #reduced;
  #auto = make("input", { type: "checkbox", id: "reduce-auto" });
  #count;
  #units;
  #predicted = null;
  #fixed;

  /**
   * @param {[number, number]} limits of the reduced network's size
   * @param {boolean} recorded a recording has one reduced network
   * @param {Acts} acts
   */
  constructor([least, most], recorded, acts) {
    this.#fixed = this.#auto.disabled = recorded;
    const tell = () => acts.layer(this.#layer.value, this.#view.value);
    this.#layer.addEventListener("change", tell);
    this.#view.addEventListener("change", tell);
    this.#head.addEventListener("change", () => acts.head(this.#head.value || undefined));
    this.#count = make("input", { type: "number", min: least, max: most, step: 1, class: "short" });
    const reduce = () => {
      const wish = Math.round(Number(this.#count.value)) || this.#predicted || least;
      this.set(this.#auto.checked ? "auto" : String(Math.min(most, Math.max(least, wish))));
      acts.reduce(this.#auto.checked ? "auto" : this.#count.value);
    };
    this.#auto.addEventListener("change", reduce);
    this.#count.addEventListener("change", reduce);
    const title = "As many units as lines are predicted";
    const label = make("label", { class: "inline", for: "reduce-auto", title }, this.#auto, "auto");
    const sized = field("reduce", "Reduce to", this.#count, [label], () => {}, "How many units the reduced network has");
    this.#units = field("view", "Units", this.#view, [], () => {}).element;
    this.#heads = field("head", "Head", this.#head, [], () => {}).element;
    this.#reduced = sized.element;
    const layer = field("layer", "Layer", this.#layer, [], () => {}).element;
    this.element = group("Shown", layer, this.#units, this.#heads, this.#reduced);
  }

  /** Shows the setting "reduce". */
  set(reduce) {
    this.#auto.checked = reduce === "auto";
    this.#count.disabled = this.#auto.checked || this.#fixed;
    this.#count.value = this.#auto.checked ? "" : reduce;
  }

  /** Lists the layers of what was opened; attention is not reduced. */
  list(layers, reduced) {
    this.#reduced.hidden = !reduced;
    this.#layer.replaceChildren(...layers.map((layer) => option([layer.name, `${layer.label} (${layer.units})`])));
  }

  /** Shows which layer is looked at, how, and how many lines are predicted for it. */
  layer(name, views, view, predicted) {
    this.#layer.value = name;
    this.#units.hidden = !views.length;
    if (views.includes(view)) this.#view.value = view;
    this.#predicted = predicted;
  }

  /** Shows which of the heads of attention is looked at, where there are several. */
  heads(count, head) {
    const numbers = Array.from({ length: count }, (_, k) => String(k + 1));
    if (this.#head.childElementCount !== count + 1) {
      this.#head.replaceChildren(...[["", `all ${count}`], ...numbers.map((number) => [number, number])].map(option));
    }
    this.#heads.hidden = count < 2;
    this.#head.value = numbers.includes(head) ? head : "";
  }
}

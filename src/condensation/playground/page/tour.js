/** The guided tour: a card at the bottom that sets the scene, says what to see, and plays it. */

import { make } from "./dom.js";

/**
 * @typedef {Object} Acts
 * @property {(words: Object<string, string>, speed: number|null, how: {step?: number, play: boolean}) => void} show
 * @property {(watch: string|null) => void} watch marks the picture to look at
 * @property {() => void} changed the scene is not what it was
 */
export class Tour {
  /** @type {object|null} the scene that is shown */
  scene = null;
  #root;
  #scenes;
  #defaults;
  #acts;

  /**
   * @param {HTMLElement} root
   * @param {object} hello
   * @param {Acts} acts
   */
  constructor(root, hello, acts) {
    this.#root = root;
    this.#scenes = hello.scenes;
    this.#defaults = hello.defaults;
    this.#acts = acts;
  }

  /** The words of a scene. */
  words(scene) {
    return { ...this.#defaults, ...scene.words };
  }

  find(name) {
    return this.#scenes.find((scene) => scene.name === name) ?? null;
  }

  /** Starts the tour, or ends it. */
  toggle() {
    if (this.scene) this.close();
    else if (this.#scenes.length) this.go(this.#scenes[0]);
  }

  /** Goes to a scene, sets its words and plays. */
  go(scene) {
    this.enter(scene);
    this.#acts.show(this.words(scene), scene.speed ?? null, { play: true });
    this.#root.querySelector("h2").focus();
  }

  /** Shows a scene's card without setting anything: the words are set already. */
  enter(scene) {
    this.scene = scene;
    this.#draw();
    this.#acts.watch(scene.watch ?? null);
    this.#acts.changed();
  }

  close() {
    this.scene = null;
    this.#root.hidden = true;
    document.body.classList.remove("touring");
    this.#acts.watch(null);
    this.#acts.changed();
  }

  /** Marks the setting of a comparison that the words are. */
  mark(words) {
    if (!this.scene || !words) return;
    for (const button of this.#root.querySelectorAll("[data-compare]")) {
      const own = this.scene.compare[Number(button.dataset.compare)].words;
      const same = Object.entries(own).every(([word, value]) => String(words[word]) === String(value));
      button.setAttribute("aria-pressed", String(same));
    }
  }

  #draw() {
    const { scene } = this;
    const at = this.#scenes.indexOf(scene);
    const move = (by) => this.#scenes[at + by] && this.go(this.#scenes[at + by]);
    const dots = this.#scenes.map((one, k) =>
      make("button", { type: "button", class: "dot", "aria-label": `Scene ${k + 1}: ${one.title}`, title: one.title, "aria-current": k === at ? "step" : null, onclick: () => this.go(one) }, String(k + 1)),
    );
    const compare = (scene.compare ?? []).map(({ label, words }, k) =>
      make("button", { type: "button", "data-compare": k, "aria-pressed": "false", onclick: () => {
        this.#acts.show({ ...this.#defaults, ...scene.words, ...words }, scene.speed ?? null, { play: true });
      } }, label),
    );
    const back = make("button", { type: "button", id: "tour-back", onclick: () => move(-1) }, "Back");
    const next = make("button", { type: "button", id: "tour-next", class: "main", onclick: () => (at + 1 < this.#scenes.length ? move(1) : this.close()) }, at + 1 < this.#scenes.length ? "Next" : "Finish");
    back.disabled = at === 0;
    this.#root.replaceChildren(
      make("div", { class: "tour-text" }, make("h2", { tabindex: -1 }, scene.title), make("p", {}, scene.text)),
      compare.length ? make("div", { class: "compare", role: "group", "aria-label": "Compare" }, ...compare) : "",
      make("div", { class: "tour-moves" }, back, make("div", { class: "dots" }, ...dots), next),
      make("button", { type: "button", class: "quiet icon small close", "aria-label": "End the tour", title: "End the tour (Esc)", onclick: () => this.close() }, "\u00d7"),
    );
    this.#root.hidden = false;
    document.body.classList.add("touring");
  }
}

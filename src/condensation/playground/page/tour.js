/** The guided tour: a card at the bottom with a text. It changes the settings and plays. */

import { make } from "./dom.js";

/**
 * @typedef {Object} Acts
 * @property {(settings: Object<string, string>, speed: number|null, how: {step?: number, play: boolean}) => void} show
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

  /** The settings of a scene. */
  settings(scene) {
    return { ...this.#defaults, ...scene.settings };
  }

  find(name) {
    return this.#scenes.find((scene) => scene.name === name) ?? null;
  }

  /** Begins the tour, or ends it. */
  toggle() {
    if (this.scene) this.close();
    else if (this.#scenes.length) this.go(this.#scenes[0]);
  }

  /** Goes to a scene, sets its settings and plays. */
  go(scene) {
    this.enter(scene);
    this.#acts.show(this.settings(scene), scene.speed ?? null, { play: true });
    this.#root.querySelector("h2").focus({ preventScroll: true });
  }

  /** Shows a scene's card without setting anything: the settings are set already. */
  enter(scene) {
    this.scene = scene;
    this.#draw();
    this.#acts.watch(scene.watch ?? null);
    this.#acts.changed();
  }

  close() {
    if (!this.scene) return;
    this.scene = null;
    this.#root.hidden = true;
    this.#acts.watch(null);
    this.#acts.changed();
  }

  /** Marks the setting of a comparison that the settings are. */
  mark(settings) {
    if (!this.scene || !settings) return;
    for (const button of this.#root.querySelectorAll("[data-compare]")) {
      const own = this.scene.compare[Number(button.dataset.compare)].settings;
      const same = Object.entries(own).every(([setting, value]) => String(settings[setting]) === String(value));
      button.setAttribute("aria-pressed", String(same));
    }
  }

  #draw() {
    const { scene } = this;
    const at = this.#scenes.indexOf(scene);
    const last = at + 1 === this.#scenes.length;
    const button = (text, act, attributes = {}) => make("button", { type: "button", onclick: act, ...attributes }, text);
    const dots = this.#scenes.map((other, k) =>
      button(String(k + 1), () => this.go(other), {
        class: "dot",
        title: other.title,
        "aria-label": `Scene ${k + 1}: ${other.title}`,
        "aria-current": k === at ? "step" : null,
      }),
    );
    const compare = (scene.compare ?? []).map(({ label, settings }, k) => {
      const show = () => this.#acts.show({ ...this.settings(scene), ...settings }, scene.speed ?? null, { play: true });
      return button(label, show, { "data-compare": k, "aria-pressed": "false" });
    });
    const back = button("Back", () => this.go(this.#scenes[at - 1]), { id: "tour-back", disabled: at === 0 });
    const next = button(last ? "Finish" : "Next", () => (last ? this.close() : this.go(this.#scenes[at + 1])), {
      id: "tour-next",
      class: "main",
    });
    const close = button("\u00d7", () => this.close(), {
      class: "quiet icon small close",
      title: "End the tour (Esc)",
      "aria-label": "End the tour",
    });
    this.#root.replaceChildren(
      make("h2", { tabindex: -1 }, scene.title),
      make("div", { class: "tour-moves" }, back, make("div", { class: "dots" }, ...dots), next),
      make("p", {}, scene.text),
      make("div", { class: "compare", role: "group", "aria-label": "Compare", hidden: !compare.length }, ...compare),
      close,
    );
    this.#root.hidden = false;
  }
}

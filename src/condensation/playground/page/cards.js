/** The cards with the pictures: laid out, painted, hovered, enlarged, walked through by keys. */

import { find, make, mark, reveal, throttle, write } from "./dom.js";
import { mount } from "./figure.js";

/** Views whose points are moments rather than neurons: arrow keys there belong to the player. */
const MOMENTS = new Set(["loss", "lines"]);
const BROKEN = "This picture could not be drawn. The browser's console has the reason.";

/**
 * @typedef {Object} Acts
 * @property {(hover: object|null, lines: string[], at: {x: number, y: number}|null) => void} hover
 * @property {(hit: object) => void} click
 * @property {(card: object) => void} save
 */
export class Cards {
  /** @type {{view: object, element: HTMLElement, canvas: HTMLCanvasElement, figure: object, sentence: HTMLElement}[]} */
  cards = [];
  #root;
  #acts;
  #speaker;
  #state = null;
  #pointer = null;
  #dirty = 0;
  #broken = new Set();
  #speak = throttle(() => this.#say(), 1000);
  #tell = throttle(() => this.#sentences(), 250);

  /**
   * @param {HTMLElement} root
   * @param {object[]} views
   * @param {HTMLElement} speaker where sentences are read aloud from
   * @param {Acts} acts
   */
  constructor(root, views, speaker, acts) {
    this.#root = root;
    this.#acts = acts;
    this.#speaker = speaker;
    for (const view of views) this.cards.push(this.#card(view));
    root.replaceChildren(...this.cards.map((card) => card.element));
  }

  /** Paints all cards that have something to show. */
  paint(state) {
    this.#state = state;
    let moved = false;
    for (const card of this.cards) {
      const shown = Boolean(this.#guard(card.view, () => card.view.shows(state)));
      if (card.element.hidden === shown) {
        card.element.hidden = !shown;
        moved = true;
      }
      if (shown) this.#guard(card.view, () => card.figure.paint(state));
    }
    const watched = this.cards.find(({ element }) => element.classList.contains("watched"));
    if (moved && watched) reveal(watched.element); // others came or went above it
    this.#tell();
    this.#speak();
    if (this.#pointer) this.#hover(this.#pointer);
  }

  /** Paints once in the next animation frame, however often it is asked. */
  repaint() {
    if (!this.#state || this.#dirty) return;
    this.#dirty = requestAnimationFrame(() => {
      this.#dirty = 0;
      this.paint(this.#state);
    });
  }

  /** Cards that are on the page now. */
  visible() {
    return this.cards.filter((card) => card.element.offsetParent !== null);
  }

  /** Lets one card fill the page, or none. */
  enlarge(name) {
    for (const { view, element } of this.cards) {
      const large = view.name === name;
      element.classList.toggle("large", large);
      const button = element.querySelector(".enlarge");
      button.setAttribute("aria-pressed", String(large));
      button.title = button.ariaLabel = large ? "Show all pictures" : "Enlarge this picture";
    }
    this.#root.classList.toggle("one", Boolean(name));
    this.repaint();
  }

  get large() {
    return this.cards.find((card) => card.element.classList.contains("large"))?.view.name ?? null;
  }

  /** Marks the card that the tour describes. */
  watch(name) {
    for (const { view, element } of this.cards) {
      element.classList.toggle("watched", view.name === name);
      if (view.name === name) reveal(element);
    }
  }

  #card(view) {
    const canvas = make("canvas", { tabindex: 0, role: "img", "aria-label": view.title });
    const sentence = make("p", { class: "sentence" });
    const card = { view, canvas, sentence };
    const enlarge = make("button", {
      type: "button",
      class: "quiet icon small enlarge",
      "aria-label": "Enlarge this picture",
      "aria-pressed": "false",
      title: "Enlarge this picture",
      onclick: () => this.enlarge(this.large === view.name ? null : view.name),
    }, "\u2922");
    const save = make("button", {
      type: "button",
      class: "quiet icon small save",
      "aria-label": `Save this picture: ${view.title}`,
      title: "Save this picture (with shift as SVG)",
      onclick: (event) => this.#acts.save(card, event.shiftKey ? "svg" : "png"),
    }, "\u2913");
    card.element = make(
      "section",
      { class: view.wide ? "card wide" : "card", "data-view": view.name, "aria-label": view.title },
      make("header", {}, make("h2", {}, view.title), save, enlarge),
      make("div", { class: "frame" }, canvas),
      sentence,
    );
    card.element.hidden = Boolean(view.absent); // until it is known to make sense
    card.figure = mount(view, canvas);
    const point = (event) => ({ card, px: event.offsetX, py: event.offsetY, x: event.clientX, y: event.clientY });
    canvas.addEventListener("pointermove", (event) => this.#hover(point(event)));
    canvas.addEventListener("pointerdown", (event) => this.#hover(point(event)));
    canvas.addEventListener("pointerleave", () => this.#leave());
    canvas.addEventListener("pointercancel", () => this.#leave());
    canvas.addEventListener("click", (event) => {
      const hit = this.#hit(point(event));
      if (hit) this.#acts.click(hit);
    });
    canvas.addEventListener("keydown", (event) => this.#key(event, card));
    canvas.addEventListener("focus", () => this.#say());
    canvas.addEventListener("blur", () => {
      if (!this.#pointer) this.#acts.hover(null, [], null);
    });
    return card;
  }

  #hit({ card, px, py }) {
    if (!this.#state) return null;
    return this.#guard(card.view, () => card.view.hit(px, py, card.figure.box(), this.#state)) ?? null;
  }

  #hover(pointer) {
    this.#pointer = pointer;
    const hit = this.#hit(pointer);
    this.#acts.hover(hit, hit ? this.#lines(pointer.card.view, hit) : [], hit ? pointer : null);
  }

  #leave() {
    this.#pointer = null;
    this.#acts.hover(null, [], null);
  }

  #lines(view, hit) {
    return this.#guard(view, () => view.tip(hit, this.#state)) ?? [];
  }

  /** Arrow keys in a picture go from neuron to neuron. */
  #key(event, card) {
    const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const units = this.#state?.frame?.shapes.w?.[0];
    if (!way || !units || MOMENTS.has(card.view.name) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    const last = this.#state.hover?.unit;
    const unit = last === undefined ? (way > 0 ? 0 : units - 1) : (last + way + units) % units;
    const lines = this.#lines(card.view, { unit });
    const rect = card.canvas.getBoundingClientRect();
    this.#acts.hover({ unit }, lines, { x: rect.left + 12, y: rect.top + 12 });
    this.#speaker.textContent = lines.join(", ");
  }

  #sentences() {
    const left = this.cards.filter((card) => card.element.hidden && !card.element.classList.contains("away"));
    const reasons = left.map(({ view }) => this.#guard(view, () => view.absent?.(this.#state) ?? "")).filter(Boolean);
    write(find("absent"), reasons.length ? `Not shown: ${reasons.join("; ")}.` : "");
    for (const { view, element, sentence, canvas } of this.cards) {
      if (element.hidden) continue;
      const text = this.#broken.has(view.name) ? BROKEN : (this.#guard(view, () => view.sentence(this.#state)) ?? "");
      write(sentence, text);
      mark(canvas, "aria-label", `${view.title}. ${text}`);
    }
  }

  /** Speaks the sentence of the picture in focus, else of the first one. */
  #say() {
    if (!this.#state) return;
    const focused = this.cards.find((card) => card.canvas === document.activeElement);
    if (focused && this.#state.hover?.unit !== undefined) return;
    const { view } = focused ?? this.cards.find((card) => !card.element.hidden) ?? this.cards[0];
    write(this.#speaker, this.#guard(view, () => view.sentence(this.#state)) ?? "");
  }

  /** A view that throws does not take the others with it. */
  #guard(view, call) {
    try {
      const value = call();
      if (value !== undefined) this.#broken.delete(view.name);
      return value;
    } catch (error) {
      if (!this.#broken.has(view.name)) console.error(`view ${view.name}:`, error);
      this.#broken.add(view.name);
      return undefined;
    }
  }
}

/** What is open: a training, a saved run or a cell of a sweep; which layer of it is shown; its frames. */

import { Curve, numbered } from "./curve.js";
import { Refused } from "./link.js";

const TOGETHER = 300; // ms for which the first picture waits for the prediction, so that it has its colours at once

export class Session {
  #link;
  #player;
  #ears;
  #turn = 0;
  #layerTurn = 0;
  #next = null;
  #entering = Promise.resolve();

  /**
   * @param {object} state what the views draw, the settings, and the page's own part of the address
   * @param {import("./link.js").Link} link
   * @param {import("./player.js").Player} player
   * @param {object} ears `opened(opened)`, `layer(layer)` (null: being predicted), `fail(sentence, setting)`
   */
  constructor(state, link, player, ears) {
    this.#link = link;
    this.#player = player;
    this.#ears = ears;
    this.state = state;
    state.curve = new Curve();
  }

  /**
   * Opens what a message asks for (do: open, run or cell). The latest wins; what cannot be opened leaves all as it was.
   * @param {object} message
   * @param {{step?: number, play?: boolean, setting?: string|null}} [how]
   * @returns {Promise<boolean|null>} whether it is open now; null if something else was opened since
   */
  async enter(message, how = {}) {
    const turn = ++this.#turn;
    await this.#entering;
    if (turn !== this.#turn) return null;
    this.#player.hold();
    const answer = this.#link.request(message);
    this.#entering = answer.catch(() => {});
    try {
      await this.#show(await answer, message, how);
      return true;
    } catch (error) {
      this.#player.release();
      if (error instanceof Refused && turn === this.#turn) this.#ears.fail(error.message, how.setting ?? null);
      else if (!(error instanceof Refused) && this.#link.open) throw error;
      return turn === this.#turn ? false : null;
    }
  }

  async #show(opened, message, how) {
    const { state } = this;
    Object.assign(state, { opened, source: message, layer: null, frame: null, hover: null, pinned: null });
    if (opened.settings) state.settings = opened.settings;
    state.curve.clear();
    state.curve.add(opened.arrays.curve);
    state.spectra = null;
    this.#ears.opened(opened);
    const names = opened.layers.map((layer) => layer.name);
    const name = names.includes(state.own.layer) ? state.own.layer : opened.first;
    const predicted = this.chooseLayer(name, state.own.view ?? null);
    await Promise.race([predicted, new Promise((done) => setTimeout(done, TOGETHER))]);
    if (state.opened === opened) this.#player.begin(opened, how.step ?? 0, how.play ?? this.#player.going);
  }

  /** How the units of a layer can be cut out: as kernels or filters, where it is a convolution. */
  views(name) {
    return this.state.opened.layers.find((layer) => layer.name === name)?.views ?? [];
  }

  /** Shows a layer. Frames show it once its prediction is ready. */
  async chooseLayer(name, view) {
    const turn = ++this.#layerTurn;
    const { key } = this.state.opened;
    this.state.layerName = name;
    this.#ears.layer(this.state.layer);
    try {
      const layer = await this.#link.request({ do: "layer", layer: name, view: this.views(name).includes(view) ? view : null });
      if (turn !== this.#layerTurn || key !== this.state.opened.key) return;
      this.#next = { ...layer, kind: layer.forecast };
      if (!this.state.frame) this.suit(layer);
      this.#player.settle();
    } catch (error) {
      if (error instanceof Refused && turn === this.#layerTurn) this.#ears.fail(error.message, null);
      else if (this.#link.open) throw error;
    }
  }

  /** Whether a frame belongs to the prediction that is shown, or to the one that comes next. */
  suits({ prediction }) {
    return !this.state.layer || [this.state.layer.prediction, this.#next?.prediction].includes(prediction);
  }

  /** A layer is shown from the first frame on that belongs to its prediction: both are drawn in one plane. */
  suit({ prediction }) {
    if (this.#next?.prediction !== prediction) return;
    this.state.layer = this.#next;
    this.#next = null;
    this.state.curve.replace(this.state.layer.arrays.curve);
    this.#spectra(this.state.layer)?.replace(this.state.layer.arrays.spectra);
    this.#ears.layer(this.state.layer);
  }

  /** Takes a frame in: its new rows of the curves. A frame of what was open before is told by its key. */
  take(frame) {
    if (frame.key !== this.state.opened.key) return;
    this.state.curve.add(frame.arrays.curve);
    this.#spectra(frame)?.add(frame.arrays.spectra);
  }

  /** The singular values of attention over the steps, for rows as a message has them; another block has other ones. */
  #spectra({ shapes }) {
    const width = shapes.spectra?.[1];
    if (!width) return null;
    if (this.state.spectra?.columns.length !== width) this.state.spectra = new Curve(numbered(width));
    return this.state.spectra;
  }

  /** After the connection came back: the same once more, at the same step. */
  again() {
    const { source, frame } = this.state;
    this.#entering = Promise.resolve();
    return this.enter(source, { step: this.#player.wish ?? frame?.step ?? 0 });
  }
}

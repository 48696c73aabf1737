/** The websocket to the server: requests with ids, binary answers, coming back after a loss. */

const TYPES = {
  float32: Float32Array,
  float64: Float64Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
};
const SLOW = 400; // ms after which the page shows that it waits
const PATIENCE = [300, 600, 1200, 2400, 5000, 8000]; // ms between attempts to connect again
const FINAL = new Set([4401, 4403, 4429]); // token missing, origin, too many pages: trying again would not help

/** The server could not do what was asked; its sentence is the message. */
export class Refused extends Error {}

/** The connection ended before the answer came. */
export class Lost extends Error {}

const padded = (bytes) => Math.ceil(bytes / 8) * 8;

/**
 * One binary message. The arrays are views into it, not copies.
 * @param {ArrayBuffer} buffer
 */
export function decode(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const arrays = {};
  const shapes = {};
  let at = padded(4 + size);
  for (const { name, type, shape } of header.arrays ?? []) {
    const length = shape.reduce((product, side) => product * side, 1);
    arrays[name] = new TYPES[type](buffer, at, length);
    shapes[name] = shape;
    at = padded(at + arrays[name].byteLength);
  }
  return { ...header, arrays, shapes };
}

/**
 * @typedef {Object} Ears what the page does when the link has something to say
 * @property {(hello: object) => void} hello connected, for the first time or again
 * @property {(wait: number) => void} lost the connection ended; tried again in `wait` ms
 * @property {(sentence: string) => void} refused the server does not want this page
 * @property {(kind: string|null) => void} slow the kind of request whose answer takes long, or null
 */
export class Link {
  #url;
  #ears;
  #socket = null;
  #next = 1;
  #attempts = 0;
  /** @type {Map<number, {message: object, resolve: Function, reject: Function, timer: number, slow: boolean}>} */
  #waiting = new Map();

  /**
   * @param {string} url
   * @param {Ears} ears
   */
  constructor(url, ears) {
    this.#url = url;
    this.#ears = ears;
    this.connect();
  }

  get open() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  connect() {
    const socket = new WebSocket(this.#url);
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", (event) => this.#hear(event.data));
    socket.addEventListener("close", (event) => this.#close(socket, event));
    this.#socket = socket;
  }

  /**
   * @param {object} message without an id
   * @returns {Promise<object>} the decoded answer; rejects with Refused or Lost
   */
  request(message) {
    if (!this.open) return Promise.reject(new Lost("The playground is not connected."));
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const entry = { message, resolve, reject, slow: false, timer: 0 };
      entry.timer = setTimeout(() => {
        entry.slow = true;
        this.#tellSlow();
      }, SLOW);
      this.#waiting.set(id, entry);
      this.#socket.send(JSON.stringify({ id, ...message }));
    });
  }

  #hear(data) {
    const answer = decode(data);
    if (answer.kind === "hello") {
      this.#attempts = 0;
      this.#ears.hello(answer);
      return;
    }
    const entry = this.#waiting.get(answer.id);
    if (!entry) return;
    this.#waiting.delete(answer.id);
    this.#rest(entry);
    if (answer.kind === "error") entry.reject(new Refused(answer.sentence));
    else entry.resolve(answer);
  }

  #rest(entry) {
    clearTimeout(entry.timer);
    if (entry.slow) this.#tellSlow();
  }

  #tellSlow() {
    let kind = null;
    for (const entry of this.#waiting.values()) if (entry.slow) kind ??= entry.message.do;
    this.#ears.slow(kind);
  }

  #close(socket, event) {
    if (socket !== this.#socket) return;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const entry of waiting) {
      this.#rest(entry);
      entry.reject(new Lost("The connection was lost."));
    }
    if (FINAL.has(event.code)) {
      this.#ears.refused(event.reason || "The server does not accept this page.");
      return;
    }
    const wait = PATIENCE[Math.min(this.#attempts++, PATIENCE.length - 1)];
    this.#ears.lost(wait);
    setTimeout(() => this.connect(), wait);
  }
}

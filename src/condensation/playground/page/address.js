/** The address of the page: what differs from the defaults, and where the page stands. */

import { throttle } from "./dom.js";

/** What the page itself keeps in the address; everything else is a setting. */
export const OWN = ["step", "speed", "scene", "theme", "layer", "view", "head", "run", "sweep", "cell"];

/**
 * @param {string} [hash]
 * @returns {{settings: Object<string, string>, own: Object<string, string>}}
 */
export function read(hash = location.hash) {
  const settings = {};
  const own = {};
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    (OWN.includes(name) ? own : settings)[name] = value;
  }
  return { settings, own };
}

/** Percent-encodes what an address needs and leaves commas, semicolons and the like readable. */
const encode = (text) =>
  encodeURIComponent(text).replace(/%(2C|3B|2F|28|29|2A|3A|40)/g, decodeURIComponent).replace(/%20/g, "+");

/**
 * @param {Object<string, string>|null} settings null where the controls cannot express what is shown
 * @param {Object<string, string>} defaults
 * @param {Object<string, string|number|null|undefined>} own
 * @returns {string} with the leading #, or "" where all is as by default
 */
export function format(settings, defaults, own) {
  const parts = [];
  for (const [name, value] of Object.entries(settings ?? {})) {
    if (String(value) !== String(defaults[name])) parts.push(`${name}=${encode(String(value))}`);
  }
  for (const name of OWN) {
    if (own[name] !== undefined && own[name] !== null && own[name] !== "") {
      parts.push(`${name}=${encode(String(own[name]))}`);
    }
  }
  return parts.length ? `#${parts.join("&")}` : "";
}

/**
 * A writer that replaces the address at most twice a second.
 * @param {() => string} current what the hash should be now
 */
export function keeper(current) {
  return throttle(() => {
    const hash = current();
    if (hash !== location.hash) history.replaceState(null, "", location.pathname + location.search + hash);
  }, 500);
}

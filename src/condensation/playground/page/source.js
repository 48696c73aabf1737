/** Where the page has its messages from: a server, or a recording that stands in the page itself. */

import { find } from "./dom.js";
import { Link } from "./link.js";
import { Recorded } from "./recorded.js";

/**
 * Both have `open` and `request(message)`, and tell the same ears.
 * @param {import("./link.js").Ears} ears
 */
export function connect(ears) {
  const recording = find("recording");
  if (recording) return new Recorded(recording.textContent, ears);
  const url = new URL("live", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  return new Link(url.href, ears);
}

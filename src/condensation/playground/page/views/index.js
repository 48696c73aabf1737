/** All pictures of the page, in the order in which they are shown. The map of a sweep stands apart. */

import { view as attention } from "./attention.js";
import { view as cosine } from "./cosine.js";
import { view as field } from "./field.js";
import { view as kernels } from "./kernels.js";
import { view as lines } from "./lines.js";
import { view as loss } from "./loss.js";
import { view as orientation } from "./orientation.js";
import { view as output } from "./output.js";

export { map } from "./map.js";

export const VIEWS = [attention, field, orientation, cosine, loss, lines, output, kernels];

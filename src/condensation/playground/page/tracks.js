/** The arrays of many frames, as a recording keeps them: small whole numbers, byte by byte (see `_tracks.py`). */

const WIDTH = 4; // bytes of a number
const COSINE = 127; // of a cosine of 1
const TYPES = { int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array, int32: Int32Array };

/** Whole numbers from their bytes; their signs stand in the lowest bit. */
function joined(bytes) {
  const count = bytes.length / WIDTH;
  const whole = new Int32Array(count);
  for (let k = 0; k < count; k++) {
    let folded = 0;
    for (let byte = 0; byte < WIDTH; byte++) folded |= bytes[byte * count + k] << (8 * byte);
    whole[k] = (folded >>> 1) ^ -(folded & 1);
  }
  return whole;
}

/** Sums along one axis, in place. */
function sum(whole, shape, axis) {
  const stride = shape.slice(axis + 1).reduce((product, side) => product * side, 1);
  const block = stride * shape[axis];
  for (let k = 0; k < whole.length; k++) if (k % block >= stride) whole[k] += whole[k - stride];
}

/**
 * The values of a track at all moments.
 * @param {{type: string, shape: number[], rows: number[], orders: number[], drop?: number, scales?: number[]}} track
 * @param {Uint8Array} bytes
 */
export function decodeTrack(track, bytes) {
  const whole = joined(bytes);
  const shape = [Math.max(...track.rows) + 1, ...track.shape];
  track.orders.forEach((order, axis) => {
    for (let k = 0; k < order; k++) sum(whole, shape, axis);
  });
  if (track.drop !== undefined) {
    for (let k = 0; k < whole.length; k++) whole[k] <<= track.drop;
    return new Float32Array(whole.buffer);
  }
  if (!track.scales) return TYPES[track.type].from(whole);
  const size = whole.length / shape[0];
  return Float32Array.from(whole, (value, k) => value * track.scales[Math.floor(k / size)]);
}

/** Adds what is computed from the weights: their place in the plane of the picture, their amplitudes, their cosines. */
export function derive({ arrays, shapes }, basis) {
  const { w } = arrays;
  const [units, inputs] = shapes.w;
  const add = (name, array, shape) => {
    arrays[name] = array;
    shapes[name] = shape;
  };
  const xy = new Float32Array(2 * units);
  const [angle, amplitude] = [new Float32Array(units), new Float32Array(units)];
  const turned = new Float64Array(units * inputs);
  for (let unit = 0; unit < units; unit++) {
    let [x, y, square] = [0, 0, 0];
    for (let k = 0; k < inputs; k++) {
      const value = w[unit * inputs + k];
      x += value * basis[k];
      y += value * basis[inputs + k];
      square += value * value;
    }
    xy.set([x, y], 2 * unit);
    angle[unit] = Math.atan2(y, x);
    amplitude[unit] = Math.sqrt(square);
    for (let k = 0; k < inputs && square > 0; k++) turned[unit * inputs + k] = w[unit * inputs + k] / Math.sqrt(square);
  }
  const cos = new Int8Array(units * units);
  for (let one = 0; one < units; one++) {
    for (let other = 0; other <= one; other++) {
      let product = 0;
      for (let k = 0; k < inputs; k++) product += turned[one * inputs + k] * turned[other * inputs + k];
      cos[one * units + other] = cos[other * units + one] = Math.round(COSINE * Math.min(1, Math.max(-1, product)));
    }
  }
  add("xy", xy, [units, 2]);
  add("angle", angle, [units]);
  add("amplitude", amplitude, [units]);
  add("cos", cos, [units, units]);
}

// How points look: sizes by how many there are, and a byte of colour and a byte of state for each.

import { STATE } from "./shaders.js";

const SMALLEST = 2.5, LARGEST = 14;

// The diameter of a point in pixels; it grows a little as one comes nearer.
export function pointSize(count, zoom) {
  const alone = Math.min(9, 150 / Math.sqrt(count));
  return Math.min(LARGEST, Math.max(SMALLEST, alone) * zoom ** 0.35);
}

// `highlighted` is the number of the only colour that is not dimmed; null for all.
export function statesOf(cloud, colours, selected, suggested, highlighted) {
  const styles = new Uint8Array(2 * cloud.ids.length);
  for (let row = 0; row < cloud.ids.length; row++) {
    styles[2 * row] = colours[row];
    styles[2 * row + 1] = highlighted !== null && colours[row] !== highlighted ? STATE.dimmed : 0;
  }
  for (const row of suggested) styles[2 * row + 1] |= STATE.suggested;
  for (const id of selected) {
    const row = cloud.rowOf.get(id);
    if (row !== undefined) styles[2 * row + 1] |= STATE.selected;
  }
  return styles;
}

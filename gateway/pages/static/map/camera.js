// Where a panel looks: the middle of the view in map coordinates (-1..1), and the zoom (1 shows all points). No drawing.

const MARGIN = 0.9; // Share of the panel that the whole map takes at zoom 1.
const MAX_ZOOM = 200;
const LEAST_SPAN = 0.05; // Of a cloud of one point.

export class Camera {
  #box = [-1, -1, 1, 1];

  constructor() {
    this.width = this.height = 1;
    this.showAll();
  }

  // The points that are there: what `showAll` shows.
  fit(places) {
    const box = [1, 1, -1, -1];
    for (let i = 0; i < places.length; i += 2) {
      box[0] = Math.min(box[0], places[i]), box[1] = Math.min(box[1], places[i + 1]);
      box[2] = Math.max(box[2], places[i]), box[3] = Math.max(box[3], places[i + 1]);
    }
    const isShown = !this.isMoved;
    if (places.length) this.#box = box;
    if (isShown) this.showAll();
  }

  showAll() {
    const [left, bottom, right, top] = this.#box;
    this.x = (left + right) / 2;
    this.y = (bottom + top) / 2;
    this.zoom = 1;
  }

  lookAt(x, y, zoom) {
    this.zoom = zoom;
    this.#look(x, y);
  }

  resize(width, height) {
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
  }

  get isMoved() {
    const [left, bottom, right, top] = this.#box;
    return this.zoom !== 1 || this.x !== (left + right) / 2 || this.y !== (bottom + top) / 2;
  }

  // Pixels of one map unit.
  get scale() {
    const [left, bottom, right, top] = this.#box;
    const across = Math.max(right - left, LEAST_SPAN), up = Math.max(top - bottom, LEAST_SPAN);
    return Math.min(this.width / across, this.height / up) * MARGIN * this.zoom;
  }

  toScreen(x, y) {
    return [this.width / 2 + (x - this.x) * this.scale, this.height / 2 - (y - this.y) * this.scale];
  }

  toMap(left, top) {
    return [this.x + (left - this.width / 2) / this.scale, this.y - (top - this.height / 2) / this.scale];
  }

  pan(dx, dy) {
    this.#look(this.x - dx / this.scale, this.y + dy / this.scale);
  }

  // Zooms so that the point under (left, top) stays; returns whether anything changed.
  zoomAt(factor, left = this.width / 2, top = this.height / 2) {
    const zoom = Math.min(MAX_ZOOM, Math.max(1, this.zoom * factor));
    if (zoom === this.zoom) return false;
    const [x, y] = this.toMap(left, top);
    this.zoom = zoom;
    const [newX, newY] = this.toMap(left, top);
    if (zoom === 1) this.showAll();
    else this.#look(this.x + x - newX, this.y + y - newY);
    return true;
  }

  // The box that is in view: [left, bottom, right, top] in map coordinates.
  get view() {
    const [left, top] = this.toMap(0, 0);
    const [right, bottom] = this.toMap(this.width, this.height);
    return [left, bottom, right, top];
  }

  #look(x, y) {
    // The middle stays among the points, so that they can't be lost.
    const [left, bottom, right, top] = this.#box;
    this.x = Math.min(right, Math.max(left, x));
    this.y = Math.min(top, Math.max(bottom, y));
  }
}

// Where a panel looks: the middle of the view in map coordinates (-1..1), and the zoom (1 shows all). No drawing.

const MARGIN = 0.9; // Share of the panel that the whole map takes at zoom 1.
const MAX_ZOOM = 200;
const MAX_OFF = 1.1; // The middle stays near the map, so that it can't be lost.

export class Camera {
  constructor() {
    this.width = this.height = 1;
    this.showAll();
  }

  showAll() {
    this.x = this.y = 0;
    this.zoom = 1;
  }

  resize(width, height) {
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
  }

  get isMoved() {
    return this.zoom !== 1 || this.x !== 0 || this.y !== 0;
  }

  // Pixels of one map unit.
  get scale() {
    return (Math.min(this.width, this.height) / 2) * MARGIN * this.zoom;
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
    this.x = Math.min(MAX_OFF, Math.max(-MAX_OFF, x));
    this.y = Math.min(MAX_OFF, Math.max(-MAX_OFF, y));
  }
}

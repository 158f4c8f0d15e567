// Where points are: the camera of a panel, a grid that finds points, and those inside a line. No drawing.

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

// Finds points: a uniform grid over -1..1, some two points a cell, built once for each set of places.
export class Grid {
  constructor(places) {
    this.places = places;
    const count = places.length / 2;
    this.side = Math.max(1, Math.min(512, Math.ceil(Math.sqrt(count / 2))));
    this.starts = new Uint32Array(this.side * this.side + 1);
    this.points = new Uint32Array(count);
    const cells = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      cells[i] = this.#row(places[2 * i + 1]) * this.side + this.#row(places[2 * i]);
      this.starts[cells[i] + 1]++;
    }
    for (let cell = 0; cell < this.side * this.side; cell++) this.starts[cell + 1] += this.starts[cell];
    const next = this.starts.slice();
    for (let i = 0; i < count; i++) this.points[next[cells[i]]++] = i;
  }

  #row(value) {
    return Math.min(this.side - 1, Math.max(0, Math.floor(((value + 1) / 2) * this.side)));
  }

  // Calls `take(point, x, y)` for each point of a box.
  within([left, bottom, right, top], take) {
    const { places, side, starts, points } = this;
    const last = this.#row(right);
    for (let row = this.#row(bottom); row <= this.#row(top); row++) {
      for (let at = starts[row * side + this.#row(left)]; at < starts[row * side + last + 1]; at++) {
        const x = places[2 * points[at]], y = places[2 * points[at] + 1];
        if (x >= left && x <= right && y >= bottom && y <= top) take(points[at], x, y);
      }
    }
  }

  // The point nearest to a place, at most `reach` away; -1 for none.
  nearest(x, y, reach) {
    let found = -1, best = reach * reach;
    this.within([x - reach, y - reach, x + reach, y + reach], (point, px, py) => {
      const far = (px - x) ** 2 + (py - y) ** 2;
      if (far <= best) [found, best] = [point, far];
    });
    return found;
  }
}

// Points inside a line that was drawn around them: even-odd, over the cells of the grid that its box touches.
export function pointsInside(grid, line) {
  if (line.length < 3) return [];
  const xs = line.map(([x]) => x), ys = line.map(([, y]) => y);
  const found = [];
  grid.within([Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)], (point, x, y) => {
    if (isInside(line, x, y)) found.push(point);
  });
  return found;
}

export function isInside(line, x, y) {
  let inside = false;
  for (let i = 0, before = line.length - 1; i < line.length; before = i++) {
    const [ax, ay] = line[i], [bx, by] = line[before];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

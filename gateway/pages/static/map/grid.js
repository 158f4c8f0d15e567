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

// One cloud: its points, camera, and what pointers and keys do there. `map` has renderer, selection, look (colours and
// theme), isDrawing(), viewChanged(), drawn().

import { Camera } from "./camera.js";
import { buildFrame, describe } from "./frame.js";
import { listen } from "./gestures.js";
import { Grid } from "./grid.js";
import { listenToKeys } from "./keyboard.js";
import { pointsInside } from "./lasso.js";
import { drawLabels, drawLine } from "./overlay.js";
import { rgb } from "./palette.js";
import { pointSize, statesOf } from "./styles.js";
import { Tooltip } from "./tooltip.js";

const REACH_PIXELS = 12;

export class Panel {
  camera = new Camera();
  labels = [];
  #line = [];
  #frame = 0;

  constructor(cloud, number, map) {
    this.map = map;
    this.frame = buildFrame(cloud, number, (factor) => this.#zoom(factor));
    this.element = this.frame.element;
    this.canvas = this.frame.canvas;
    this.target = this.canvas.getContext("2d");
    this.tooltip = new Tooltip(this.element);
    listen(this.canvas, this);
    listenToKeys(this.canvas, this);
    this.update(cloud);
    new ResizeObserver(() => this.#resize()).observe(this.canvas);
  }

  // Takes the same cloud again, with other points; where one looks stays.
  update(cloud) {
    this.cloud = cloud;
    this.grid = new Grid(cloud.places);
    this.camera.fit(cloud.places);
    if (this.mesh) this.map.renderer.remove(this.mesh);
    this.mesh = this.map.renderer.add(cloud.places, new Uint8Array(2 * cloud.ids.length));
    describe(this.frame, cloud);
  }

  remove() {
    cancelAnimationFrame(this.#frame);
    this.map.renderer.remove(this.mesh);
    this.element.remove();
  }

  // Colours and states of all points, after either changed. `suggested` has rows.
  restyle(colours, suggested, highlighted) {
    this.map.renderer.restyle(this.mesh, statesOf(this.cloud, colours, this.map.selection.ids, suggested, highlighted));
    this.invalidate();
  }

  invalidate() {
    this.#frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.#frame = 0;
    if (!this.canvas.width || !this.cloud.ids.length) return;
    const { theme, palette } = this.map.look;
    const ratio = this.canvas.width / this.camera.width;
    const size = pointSize(this.cloud.ids.length, this.camera.zoom);
    this.map.renderer.draw(this.mesh, this.camera, { size, palette, mark: rgb(theme.mark), ratio }, this.target);
    this.target.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawLabels(this.target, this.labels, this.camera, theme, getComputedStyle(this.element).backgroundColor);
    drawLine(this.target, this.#line, theme);
    this.target.resetTransform();
    this.map.drawn();
  }

  lookAt(row) {
    this.camera.lookAt(this.cloud.places[2 * row], this.cloud.places[2 * row + 1], 3);
    this.moved();
  }

  isDrawing() {
    return this.map.isDrawing();
  }

  moved() {
    this.tooltip.hide();
    this.canvas.classList.toggle("moved", this.camera.isMoved);
    this.invalidate();
    this.map.viewChanged();
  }

  hover(left, top, reach = REACH_PIXELS) {
    const row = this.#rowAt(left, top, reach);
    if (row < 0) return this.leave();
    const [x, y] = this.camera.toScreen(this.cloud.places[2 * row], this.cloud.places[2 * row + 1]);
    this.tooltip.show(this.cloud, row, this.canvas.offsetLeft + x, this.canvas.offsetTop + y);
  }

  leave() {
    this.tooltip.hide();
  }

  showMiddle() {
    this.hover(this.camera.width / 2, this.camera.height / 2, Infinity);
  }

  click(left, top, adds, reach = REACH_PIXELS) {
    this.#line = [];
    const row = this.#rowAt(left, top, reach);
    if (row < 0) return this.invalidate();
    const id = this.cloud.ids[row];
    if (adds) this.map.selection.toggle(id);
    else this.map.selection.replace([id]);
  }

  // A line in pixels; when it is done, what is inside is selected.
  lasso(line, adds, isDone) {
    this.#line = isDone ? [] : line;
    this.tooltip.hide();
    this.invalidate();
    if (!isDone) return;
    const inside = pointsInside(this.grid, line.map(([left, top]) => this.camera.toMap(left, top)));
    const ids = inside.map((row) => this.cloud.ids[row]);
    if (adds) this.map.selection.add(ids);
    else this.map.selection.replace(ids);
  }

  clear() {
    this.map.selection.replace([]);
  }

  // The rows that can be seen now.
  inView() {
    const rows = [];
    this.grid.within(this.camera.view, (row) => rows.push(row));
    return rows;
  }

  #rowAt(left, top, reach) {
    const [x, y] = this.camera.toMap(left, top);
    return this.grid.nearest(x, y, Math.min(4, reach / this.camera.scale));
  }

  #zoom(factor) {
    if (factor) this.camera.zoomAt(factor);
    else this.camera.showAll();
    this.moved();
  }

  #resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const { clientWidth: width, clientHeight: height } = this.canvas;
    this.camera.resize(width, height);
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.draw();
    this.map.viewChanged();
  }
}

// One cloud: its points, camera, and what pointers and keys do there. `map` has renderer, selection, look (colours and
// theme), isDrawing(), viewChanged(), drawn().

import { pointSize, statesOf } from "./canvas.js";
import { Camera, Grid, pointsInside } from "./geometry.js";
import { listen, listenToKeys } from "./gestures.js";
import { shownTime } from "../times.js";

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
    this.drawBy(this.map.renderer, new Uint8Array(2 * cloud.ids.length));
    describe(this.frame, cloud);
  }

  drawBy(renderer, styles = this.mesh.styles) {
    if (this.mesh) this.renderer.remove(this.mesh);
    this.renderer = renderer;
    this.mesh = renderer.add(this.cloud.places, styles);
    this.invalidate();
  }

  remove() {
    cancelAnimationFrame(this.#frame);
    this.renderer.remove(this.mesh);
    this.element.remove();
  }

  // Colours and states of all points, after either changed. `suggested` has rows.
  restyle(colours, suggested, highlighted) {
    this.renderer.restyle(this.mesh, statesOf(this.cloud, colours, this.map.selection.ids, suggested, highlighted));
    this.invalidate();
  }

  invalidate() {
    this.#frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.#frame = 0;
    if (!this.canvas.width || !this.cloud.ids.length) return;
    const { theme, colours } = this.map.look;
    const ratio = this.canvas.width / this.camera.width;
    const size = pointSize(this.cloud.ids.length, this.camera.zoom);
    this.renderer.draw(this.mesh, this.camera, { size, colours, mark: theme.mark, ratio }, this.target);
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

// The elements of a panel: its heading, zoom buttons and canvas. No behaviour but the buttons'.
const BUTTONS = [["+", "Zoom in", 1.5], ["−", "Zoom out", 1 / 1.5], ["Show all", "Show all", 0]];

export function buildFrame(cloud, number, zoom) {
  const element = make("section", "cloud");
  const header = element.appendChild(make("header"));
  const title = header.appendChild(make("h2"));
  const name = title.appendChild(make("span", `mode ${cloud.hue}`, cloud.mode));
  name.id = `cloud-${number}`;
  element.setAttribute("aria-labelledby", name.id);
  const count = header.appendChild(make("small"));
  count.id = `cloud-${number}-count`;
  const buttons = header.appendChild(make("div", "zoom"));
  for (const [text, label, factor] of BUTTONS) {
    const button = buttons.appendChild(make("button", "quiet", text));
    button.type = "button";
    button.setAttribute("aria-label", `${label}: ${cloud.mode}`);
    button.addEventListener("click", () => zoom(factor));
  }
  const canvas = element.appendChild(make("canvas"));
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-describedby", count.id);
  const empty = element.appendChild(make("p", "empty", "No memory of this mode has a vector yet."));
  return { element, count, canvas, empty };
}

export function describe(frame, cloud) {
  const points = cloud.ids.length === 1 ? "1 memory" : `${cloud.ids.length.toLocaleString("en")} memories`;
  const notes = [points];
  if (!cloud.settled) notes.push("being laid out");
  if (cloud.left_out) notes.push(`${cloud.left_out.toLocaleString("en")} left out`);
  frame.count.textContent = notes.join(" · ");
  frame.canvas.setAttribute("aria-label", `Map of the mode ${cloud.mode}, ${points}. The table below has those in view.`);
  frame.canvas.hidden = !cloud.ids.length;
  frame.empty.hidden = cloud.ids.length > 0;
}

function make(tag, classes = "", text = "") {
  const element = document.createElement(tag);
  element.className = classes;
  element.textContent = text;
  return element;
}

// What is drawn over the points of a panel: the lasso's line, and names of suggested modes at their middle.
const FONT = "600 13px Figtree, system-ui, sans-serif";
const HALF_HEIGHT = 10;
const STEP = 6;

export function drawLine(target, line, theme) {
  if (line.length < 2) return;
  target.beginPath();
  line.forEach(([left, top], at) => (at ? target.lineTo(left, top) : target.moveTo(left, top)));
  target.closePath();
  target.globalAlpha = 0.12;
  target.fillStyle = target.strokeStyle = theme.mark;
  target.fill();
  target.globalAlpha = 1;
  target.lineWidth = 1.5;
  target.setLineDash([5, 4]);
  target.stroke();
  target.setLineDash([]);
}

// `labels` are {name, x, y} in map coordinates; `ground` is the colour behind the text. Labels don't cover each other.
export function drawLabels(target, labels, camera, theme, ground) {
  target.font = FONT;
  target.textAlign = "center";
  target.textBaseline = "middle";
  const boxes = [];
  for (const { name, x, y } of labels) {
    const [left, wanted] = camera.toScreen(x, y);
    const half = target.measureText(name).width / 2 + 7;
    const at = Math.min(camera.width - half - 4, Math.max(half + 4, left));
    const top = freeTop(boxes, at, wanted, half);
    boxes.push({ at, top, half });
    target.beginPath();
    target.roundRect(at - half, top - HALF_HEIGHT, 2 * half, 2 * HALF_HEIGHT, 5);
    target.fillStyle = ground;
    target.globalAlpha = 0.85;
    target.fill();
    target.globalAlpha = 1;
    target.strokeStyle = target.fillStyle = theme.mark;
    target.lineWidth = 1;
    target.stroke();
    target.fillText(name, at, top + 0.5);
  }
}

// The nearest height at which a label covers none of the others.
function freeTop(boxes, at, wanted, half) {
  for (let step = 0; ; step++) {
    const top = wanted + Math.ceil(step / 2) * (step % 2 ? STEP : -STEP);
    const isFree = boxes.every((one) => Math.abs(one.top - top) >= 2 * HALF_HEIGHT || Math.abs(one.at - at) >= one.half + half);
    if (isFree) return top;
  }
}

// The middle of some rows of a cloud: medians, so that a few far points don't pull it into nothing.
export function middleOf(cloud, rows) {
  const median = (axis) => rows.map((row) => cloud.places[2 * row + axis]).sort((a, b) => a - b)[rows.length >> 1];
  return { x: median(0), y: median(1) };
}

// The text beside a point: what it says, when, and in which conversation.
const GAP = 14;

export class Tooltip {
  constructor(panel) {
    this.element = document.createElement("div");
    this.element.className = "tooltip";
    this.element.setAttribute("role", "status");
    this.element.hidden = true;
    this.text = this.element.appendChild(document.createElement("div"));
    this.more = this.element.appendChild(document.createElement("small"));
    panel.append(this.element);
  }

  show(cloud, row, left, top) {
    this.text.textContent = cloud.text[row];
    this.more.textContent = [timeOf(cloud, row), conversationOf(cloud, row), typeOf(cloud, row)].filter(Boolean).join(" · ");
    this.element.hidden = false;
    const { offsetWidth: width, offsetHeight: height, offsetParent: parent } = this.element;
    const beside = left + GAP + width > parent.clientWidth ? Math.max(0, left - GAP - width) : left + GAP;
    const below = top + GAP + height > parent.clientHeight ? Math.max(0, top - GAP - height) : top + GAP;
    this.element.style.left = `${beside}px`;
    this.element.style.top = `${below}px`;
  }

  hide() {
    this.element.hidden = true;
  }
}

export function timeOf(cloud, row) {
  return shownTime(new Date(cloud.at[row] * 1000));
}

export function conversationOf(cloud, row) {
  return cloud.conversation.names[cloud.conversation.of[row]];
}

export function typeOf(cloud, row) {
  return cloud.type.names[cloud.type.of[row]];
}

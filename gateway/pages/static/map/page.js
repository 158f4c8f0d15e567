// The page of the map: its controls, its status, and what connects map, table, form and suggestions.

import { CanvasRenderer, onTheme, shapeOf } from "./canvas.js";
import { PointMap } from "./map.js";
import { conversationOf, timeOf, typeOf } from "./panel.js";
import { follow, MOST } from "./points.js";

const FIRST_LOOK_MS = 300;
const VIEW_PAUSE_MS = 150; // The table follows the map when it rests.

const root = document.querySelector("[data-map]");

function start() {
  const part = (name) => root.querySelector(`[data-map-${name}]`);
  const form = document.querySelector("[data-map-form]");
  const legend = new Legend(part("legend"), () => (map.restyle(), map.viewChanged()));
  let resting, isFast, table, ringed = root.dataset.ringed, comeCloser;
  const isCloser = new Promise((come) => (comeCloser = come));
  const map = new PointMap(part("clouds"), legend, new CanvasRenderer(), {
    viewChanged() {
      clearTimeout(resting);
      resting = setTimeout(() => table?.refresh(), VIEW_PAUSE_MS);
      if (map.isClose) comeCloser();
    },
    drawn() {
      mark("map:drawn");
      if (!isFast) isFast = setTimeout(drawFast, FIRST_LOOK_MS);
    },
  });
  connectControls(map, part);
  onTheme(() => map.restyle());
  const limits = { firstPoints: Number(root.dataset.firstPoints), maxPoints: Number(root.dataset.maxPoints) };
  follow(root.dataset.points, limits, shown, (error) => say(`${error.message} Trying again …`), closer);

  async function closer(clouds) {
    if (!ringed) await isCloser;
    say(notes(clouds, "are being loaded").join(" "));
  }

  function shown(clouds, hasRest) {
    mark("map:points");
    part("waiting")?.remove();
    map.show(clouds.filter((cloud) => cloud.ids.length || cloud.left_out || "one" in root.dataset));
    say(notes(clouds, hasRest && "zoom").join(" "));
    if (ringed && map.ring(ringed)) ringed = null;
    if (table) return;
    table = new Table(form, map, root.dataset.memory);
    sendSelection(form, map);
    const suggestions = document.querySelector("[data-map-suggestions]");
    followSuggestions(suggestions, (found) => map.suggest(found), (ids) => {
      map.selection.replace(ids);
      root.scrollIntoView({ block: "start" });
    });
    // Only now: the search for groups takes the worker longer than the points, and htmx listens once the page is parsed.
    const search = () => suggestions?.dispatchEvent(new Event("points"));
    document.readyState === "complete" ? search() : addEventListener("load", search);
  }

  // WebGL takes a tenth of a second to start, in which nothing else is drawn.
  async function drawFast() {
    const { Renderer } = await import("./webgl.js");
    const renderer = Renderer.create(() => map.redraw());
    if (renderer) map.drawBy(renderer);
  }

  function say(text) {
    if (part("status").textContent !== text) part("status").textContent = text;
  }
}

function connectControls(map, part) {
  const lasso = part("lasso"), colour = part("colour");
  map.isDrawing = () => "drawing" in root.dataset;
  lasso.addEventListener("click", () => {
    const isDrawing = root.toggleAttribute("data-drawing");
    lasso.setAttribute("aria-pressed", String(isDrawing));
  });
  part("clear").addEventListener("click", () => map.selection.replace([]));
  map.selection.addEventListener("change", () => showSelection(map, part));
  map.colour = colour.value;
  colour.addEventListener("change", () => {
    map.colour = colour.value;
    map.legend.highlighted = null;
    const address = new URL(location.href);
    address.searchParams.set("colour", colour.value);
    history.replaceState(null, "", address);
    map.restyle();
  });
}

// Above the map: how much is selected and the way to its table; of a single memory the way to its page.
function showSelection(map, part) {
  const count = map.selection.ids.size;
  const [only] = count === 1 ? map.selection.ids : [];
  const point = only && map.find(only);
  part("clear").disabled = !count;
  part("go").hidden = !count;
  part("go").textContent = `${count.toLocaleString("en")} selected: list, move or declare a mode`;
  part("picked").hidden = !point;
  if (!point) return;
  part("picked").href = root.dataset.memory.replace("MEMORY-ID", encodeURIComponent(only));
  part("picked").textContent = point.cloud.text[point.row] || "(no text)";
}

function notes(clouds, rest) {
  const sum = (of) => clouds.reduce((total, cloud) => total + of(cloud), 0);
  const drawn = sum((cloud) => cloud.ids.length), out = sum((cloud) => cloud.left_out);
  const said = [`${drawn.toLocaleString("en")} memories on the map.`];
  if (rest) said.push(rest === "zoom" ? `Zoom in for the other ${out.toLocaleString("en")}.` : `The other ${out.toLocaleString("en")} ${rest}.`);
  else if (out) said.push(`${out.toLocaleString("en")} not drawn: they have no vector yet, or are older than the last ${MOST.toLocaleString("en")}.`);
  if (clouds.some((cloud) => !cloud.settled)) said.push("The map is being laid out; points will still move.");
  return said;
}

function mark(name) {
  if (!performance.getEntriesByName(name).length) performance.mark(name);
}

// The form below the table: what is sent is what is selected, and its buttons say how much that is.
export function sendSelection(form, map) {
  const { selection } = map;
  const buttons = [...form.querySelectorAll("[data-map-act]")].map((button) => [button, button.textContent]);
  const actions = form.querySelector("[data-map-actions]");
  const name = form.querySelector("[data-map-name]");

  function show() {
    const count = selection.ids.size;
    if (actions) {
      actions.hidden = count === 0;
      actions.dataset.ready = "";
    }
    for (const [button, text] of buttons) {
      button.disabled = count === 0;
      button.textContent = count ? `${text} ${count === 1 ? "1 memory" : `${count.toLocaleString("en")} memories`}` : text;
    }
  }

  form.addEventListener("submit", (event) => {
    form.querySelector("[data-map-ids]").value = byMode(map, selection.ids);
    if (!event.submitter?.matches("[data-map-declare]") || name.value.trim()) return;
    event.preventDefault();
    name.setCustomValidity("Name the mode");
    name.reportValidity();
  });
  name?.addEventListener("input", () => name.setCustomValidity(""));
  selection.addEventListener("change", show);
  show();
}

// Ids behind their mode, so that a move can be taken back.
function byMode(map, ids) {
  const modes = new Map();
  for (const id of ids) {
    const mode = map.find(id)?.cloud.mode ?? "";
    if (!modes.has(mode)) modes.set(mode, []);
    modes.get(mode).push(id);
  }
  return [...modes].map(([mode, of]) => `${mode}= ${of.join(" ")}`).join(" ");
}

// Suggested modes, as they stand on the page once they are loaded: their names and memories, and a button to select them.
export function followSuggestions(container, changed, select) {
  if (!container) return;
  const read = () => changed([...container.querySelectorAll("[data-suggested]")].map(suggestion));
  new MutationObserver(read).observe(container, { childList: true, subtree: true });
  container.addEventListener("click", (event) => {
    if (event.target.closest("[data-show-suggested]")) select(suggestion(event.target.closest("[data-suggested]")).ids);
  });
  read();
}

function suggestion(card) {
  return { name: card.dataset.suggested, ids: card.querySelector("[name=memory_ids]").value.split(" ").slice(1) };
}

// The points as a table: those in view, or those that are selected; page by page, newest first.
const PAGE_ROWS = matchMedia("(max-width: 40rem)").matches ? 10 : 25;

export class Table {
  #what = "view";
  #first = 0;
  #isOwnChange = false;

  // `map` has selection, inView() and find(id), both of {cloud, row}; `address` has MEMORY-ID in place of an id.
  constructor(form, map, address) {
    this.form = form;
    this.map = map;
    this.address = address;
    this.body = this.#part("table");
    this.title = document.querySelector("[data-map-table-title]");
    for (const button of form.querySelectorAll("[data-map-rows]")) {
      button.addEventListener("click", () => this.show(button.dataset.mapRows));
    }
    for (const button of form.querySelectorAll("[data-map-page]")) {
      button.addEventListener("click", () => this.#turn(Number(button.dataset.mapPage)));
    }
    this.#part("select-view").addEventListener("click", () => map.selection.add(map.inView().map(idOf)));
    this.body.addEventListener("change", (event) => this.#tick(event.target));
    map.selection.addEventListener("change", () => this.#selected());
  }

  show(what) {
    this.#what = what;
    this.#first = 0;
    this.refresh();
  }

  // The view or the points changed.
  refresh() {
    const points = this.#what === "view" ? this.map.inView() : [...this.map.selection.ids].map(this.map.find).filter(Boolean);
    points.sort((a, b) => b.cloud.at[b.row] - a.cloud.at[a.row]);
    if (this.#first >= points.length) this.#first = 0;
    const page = points.slice(this.#first, this.#first + PAGE_ROWS);
    this.body.replaceChildren(...(page.length ? page.map((point) => this.#row(point)) : [this.#nothing()]));
    this.title.textContent = this.#what === "view" ? "Memories in view" : "Selected memories";
    const last = Math.min(points.length, this.#first + PAGE_ROWS);
    this.#part("range").textContent = points.length ? `${this.#first + 1} to ${last} of ${points.length.toLocaleString("en")}` : "";
    this.form.querySelector("[data-map-page='-1']").disabled = this.#first === 0;
    this.form.querySelector("[data-map-page='1']").disabled = last >= points.length;
    this.#press();
  }

  #turn(pages) {
    this.#first = Math.max(0, this.#first + pages * PAGE_ROWS);
    this.refresh();
  }

  // A row that is unticked stays until the rows change, so that the keyboard keeps its place.
  #tick(box) {
    this.#isOwnChange = true;
    this.map.selection.toggle(box.value);
    this.#isOwnChange = false;
  }

  #selected() {
    const count = this.map.selection.ids.size;
    this.#part("count").textContent = count.toLocaleString("en");
    if (!this.#isOwnChange) return this.show(count ? "selected" : "view");
    this.#press();
  }

  #press() {
    for (const button of this.form.querySelectorAll("[data-map-rows]")) {
      button.setAttribute("aria-pressed", String(button.dataset.mapRows === this.#what));
    }
  }

  #row({ cloud, row }) {
    const line = document.createElement("tr");
    const box = cell(line).appendChild(document.createElement("input"));
    box.type = "checkbox";
    box.value = cloud.ids[row];
    box.checked = this.map.selection.ids.has(cloud.ids[row]);
    box.setAttribute("aria-label", `Select: ${cloud.text[row]}`);
    const link = cell(line).appendChild(document.createElement("a"));
    link.href = this.address.replace("MEMORY-ID", encodeURIComponent(cloud.ids[row]));
    link.textContent = cloud.text[row] || "(no text)";
    cell(line, timeOf(cloud, row));
    cell(line, conversationOf(cloud, row));
    cell(line, typeOf(cloud, row));
    const mode = cell(line).appendChild(document.createElement("span"));
    mode.className = `mode ${cloud.hue}`;
    mode.textContent = cloud.mode;
    return line;
  }

  #nothing() {
    const line = document.createElement("tr");
    const only = cell(line, "No point is in view: show all, or zoom out.");
    only.colSpan = 6;
    only.className = "empty";
    return line;
  }

  #part(name) {
    return this.form.querySelector(`[data-map-${name}]`);
  }
}

function cell(line, text = "") {
  const one = line.appendChild(document.createElement("td"));
  one.textContent = text;
  return one;
}

function idOf({ cloud, row }) {
  return cloud.ids[row];
}

// What the colours mean, as buttons: a pressed one dims all other points.
export class Legend {
  constructor(list, changed) {
    this.list = list;
    this.highlighted = null;
    list.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const number = Number(button.dataset.number);
      this.highlighted = this.highlighted === number ? null : number;
      this.#press();
      changed();
    });
  }

  show(entries, colours) {
    if (this.highlighted !== null && !entries.some((entry, at) => (entry.number ?? at) === this.highlighted)) this.highlighted = null;
    const numberOf = (entry, at) => entry.number ?? at;
    this.list.replaceChildren(...entries.map((entry, at) => item(entry, numberOf(entry, at), colours[numberOf(entry, at)])));
    this.#press();
  }

  #press() {
    for (const button of this.list.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.number) === this.highlighted));
    }
  }
}

function item({ label, count }, number, colour) {
  const entry = document.createElement("li");
  const button = entry.appendChild(document.createElement("button"));
  button.type = "button";
  button.dataset.number = number;
  button.title = label;
  const swatch = button.appendChild(document.createElement("span"));
  swatch.className = `swatch shape-${shapeOf(number)}`;
  swatch.style.backgroundColor = colour;
  const name = button.appendChild(document.createElement("span"));
  name.className = "name";
  name.textContent = label;
  button.appendChild(document.createElement("small")).textContent = count.toLocaleString("en");
  return entry;
}

if (root) start();

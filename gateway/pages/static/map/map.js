// The map of a page: clouds in, a panel for each; colours, selection and suggestions over all of them.

import { coloursOf, currentTheme } from "./canvas.js";
import { colouring, withGroups } from "./groups.js";
import { middleOf, Panel } from "./panel.js";
import { keyOf } from "./points.js";

const CLOSE = 2; // The zoom from which all points are wanted.

export class PointMap {
  selection = new Selection();
  clouds = [];
  look = {};
  colour = "group";
  #panels = new Map();
  #suggestions = [];
  #colours = new Map();
  #made = 0;

  // `on` has viewChanged() and drawn().
  constructor(holder, legend, renderer, on) {
    this.holder = holder;
    this.legend = legend;
    this.renderer = renderer;
    this.on = on;
    this.selection.addEventListener("change", () => this.restyle());
  }

  isDrawing = () => false;
  viewChanged = () => this.on.viewChanged();
  drawn = () => this.on.drawn();

  show(clouds) {
    this.clouds = withGroups(clouds);
    const keys = new Set(clouds.map(keyOf));
    for (const [key, panel] of this.#panels) if (!keys.has(key)) panel.remove(), this.#panels.delete(key);
    for (const cloud of clouds) this.#place(cloud);
    this.selection.keep((id) => this.find(id));
    this.suggest(this.#suggestions);
    this.viewChanged();
  }

  suggest(suggestions) {
    this.#suggestions = suggestions;
    this.restyle();
  }

  restyle() {
    const theme = currentTheme();
    const { byAge, entries, of } = colouring(this.colour, this.clouds);
    const colours = coloursOf(theme, byAge);
    this.look = { theme, colours };
    this.legend.show(entries, colours);
    this.#colours = new Map(this.clouds.map((cloud) => [cloud, of(cloud)]));
    for (const panel of this.#panels.values()) {
      const groups = this.#suggestions.map(({ name, ids }) => [name, rowsOf(panel.cloud, ids)]);
      const named = this.colour === "group" ? [...namedGroups(panel.cloud), ...groups] : groups;
      panel.labels = named.filter(([, rows]) => rows.length).map(([name, rows]) => ({ name, ...middleOf(panel.cloud, rows) }));
      panel.restyle(this.#colours.get(panel.cloud), groups.flatMap(([, rows]) => rows), this.legend.highlighted);
    }
  }

  drawBy(renderer) {
    this.renderer = renderer;
    for (const panel of this.#panels.values()) panel.drawBy(renderer);
  }

  redraw() {
    for (const panel of this.#panels.values()) panel.invalidate();
  }

  find = (id) => {
    const cloud = this.clouds.find((one) => one.rowOf.has(id));
    return cloud && { cloud, row: cloud.rowOf.get(id) };
  };

  // Selects a memory, and looks at it; returns whether it is there.
  ring(id) {
    const point = this.find(id);
    if (!point) return false;
    this.selection.replace([id]);
    this.#panels.get(keyOf(point.cloud))?.lookAt(point.row);
    return true;
  }

  // Whether single points are looked at.
  get isClose() {
    return [...this.#panels.values()].some(({ camera }) => camera.zoom >= CLOSE);
  }

  // The points that can be seen and are not dimmed.
  inView() {
    const { highlighted } = this.legend;
    const shown = ({ cloud, row }) => highlighted === null || this.#colours.get(cloud)[row] === highlighted;
    const seen = (panel) => panel.inView().map((row) => ({ cloud: panel.cloud, row }));
    return [...this.#panels.values()].flatMap(seen).filter(shown);
  }

  #place(cloud) {
    const known = this.#panels.get(keyOf(cloud));
    if (known) return known.update(cloud);
    const panel = new Panel(cloud, this.#made++, this);
    this.#panels.set(keyOf(cloud), panel);
    this.holder.append(panel.element);
  }
}

function namedGroups({ group }) {
  const rows = group.names.map(() => []);
  group.of.forEach((number, row) => rows[number].push(row));
  return group.names.map((name, number) => [name, rows[number]]).slice(1);
}

function rowsOf(cloud, ids) {
  return ids.map((id) => cloud.rowOf.get(id)).filter((row) => row !== undefined);
}

// Which memories are selected, by id, over all panels. Fires "change".
export class Selection extends EventTarget {
  ids = new Set();

  replace(ids) {
    this.ids = new Set(ids);
    this.#changed();
  }

  add(ids) {
    for (const id of ids) this.ids.add(id);
    this.#changed();
  }

  toggle(id) {
    if (!this.ids.delete(id)) this.ids.add(id);
    this.#changed();
  }

  // Leaves out what is no longer on the map.
  keep(exists) {
    const kept = [...this.ids].filter(exists);
    if (kept.length !== this.ids.size) this.replace(kept);
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

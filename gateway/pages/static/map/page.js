// The page of the map: its controls, its status, and what connects map, table, form and suggestions.

import { sendSelection } from "./actions.js";
import { Legend } from "./legend.js";
import { PointMap } from "./map.js";
import { onTheme } from "./palette.js";
import { follow, MOST } from "./points.js";
import { Renderer } from "./renderer.js";
import { followSuggestions } from "./suggestions.js";
import { Table } from "./table.js";

const VIEW_PAUSE_MS = 150; // The table follows the map when it rests.

const root = document.querySelector("[data-map]");
if (root) start();

function start() {
  const part = (name) => root.querySelector(`[data-map-${name}]`);
  const form = document.querySelector("[data-map-form]");
  const renderer = Renderer.create(() => map.redraw());
  const legend = new Legend(part("legend"), () => (map.restyle(), map.viewChanged()));
  let resting, table, ringed = root.dataset.ringed, comeCloser;
  const isCloser = new Promise((come) => (comeCloser = come));
  const map = new PointMap(part("clouds"), legend, renderer, {
    viewChanged() {
      clearTimeout(resting);
      resting = setTimeout(() => table?.refresh(), VIEW_PAUSE_MS);
      if (map.isClose) comeCloser();
    },
    drawn: () => mark("map:drawn"),
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
    say([renderer ? "" : "WebGL2 is missing, so this browser can't draw the map. The table lists its points.", ...notes(clouds, hasRest && "zoom")].join(" "));
    if (ringed && map.ring(ringed)) ringed = null;
    if (table) return;
    table = new Table(form, map, root.dataset.memory);
    table.refresh();
    sendSelection(form, map);
    const suggestions = document.querySelector("[data-map-suggestions]");
    followSuggestions(suggestions, (found) => map.suggest(found), (ids) => {
      map.selection.replace(ids);
      root.scrollIntoView({ block: "start" });
    });
    // Only now: the search for groups takes the worker longer than the points.
    suggestions?.dispatchEvent(new Event("points"));
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

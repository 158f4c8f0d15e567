// The points as a table: those in view, or those that are selected; page by page, newest first.

import { conversationOf, timeOf, typeOf } from "./tooltip.js";

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

// What the colours mean, as buttons: a pressed one dims all other points.

import { shapeOf } from "./shaders.js";

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

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

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

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

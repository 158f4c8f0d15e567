// Sets the chosen theme before the first paint, without a choice the system's holds; and says that scripts run.
(() => {
  document.documentElement.classList.add("scripted");
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
})();

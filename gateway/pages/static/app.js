// What every page does: times in the viewer's zone, pickers that submit, the theme, boxes that select all rows.

const SHOWN = { dateStyle: "medium", timeStyle: "short" };

export function showTimes(root) {
  const format = new Intl.DateTimeFormat(undefined, SHOWN);
  for (const element of root.querySelectorAll("time[datetime]:not([data-shown])")) {
    element.title = element.dateTime;
    element.textContent = format.format(new Date(element.dateTime));
    element.dataset.shown = "";
  }
}

function submitOnChange(event) {
  const form = event.target.closest("form[data-submit-on-change]");
  if (form && event.target.matches("select")) form.requestSubmit();
}

function switchTheme(event) {
  if (!event.target.closest("[data-theme-switch]")) return;
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

function leaveEmptyOut(event) {
  const form = event.target;
  if (form.method !== "get") return;
  for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
}

// A page that the browser brings back from its history has its fields again.
function enableFields() {
  for (const field of document.querySelectorAll("form[method=get] :disabled")) field.disabled = false;
}

function selectAll(event) {
  if (!event.target.matches("[data-select-all]")) return;
  const name = event.target.dataset.selectAll;
  const boxes = event.target.form.querySelectorAll(`input[type=checkbox][name="${name}"]`);
  for (const box of boxes) box.checked = event.target.checked;
}

function countSelected() {
  for (const place of document.querySelectorAll("[data-selected-count]")) {
    const ticked = document.querySelectorAll(`input[name="${place.dataset.selectedCount}"]:checked`).length;
    place.textContent = ` ${ticked.toLocaleString("en")}`;
  }
}

// Where the pages' names are wider than the screen, the page that is shown is among those that can be seen.
function showPlace() {
  const pages = document.querySelector(".pages"), here = pages?.querySelector("[aria-current]");
  if (here) pages.scrollLeft = here.offsetLeft - (pages.clientWidth - here.offsetWidth) / 2;
}

document.addEventListener("change", submitOnChange);
document.addEventListener("change", selectAll);
document.addEventListener("change", countSelected);
document.addEventListener("click", switchTheme);
document.addEventListener("submit", leaveEmptyOut);
addEventListener("pageshow", enableFields);
addEventListener("pageshow", countSelected);
new MutationObserver(() => showTimes(document)).observe(document.body, { childList: true, subtree: true });
showTimes(document);
showPlace();

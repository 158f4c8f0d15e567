// What every page does: times as the reader says them, pickers that submit, the theme, boxes that select all rows, copying,
// the keys `/` and Ctrl-K, and counts of what needs attention in the navigation.

import "./files.js";
import "./panel.js";
import { shownTime } from "./times.js";

const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

export function showTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([data-shown])")) {
    const time = new Date(element.dateTime);
    if (isNaN(time)) continue;
    element.title = FULL.format(time);
    element.textContent = shownTime(time);
    element.dataset.shown = "";
  }
}

// On the keyboard every arrow changes a select: it is sent once the choice is left, or on Enter.
let byKey = false;
function submitOnChange(event) {
  const form = event.target.closest("form[data-submit-on-change]");
  if (!form || !event.target.matches("select")) return;
  if (byKey) form.dataset.changed = "";
  else form.requestSubmit();
}
function submitChanged(event) {
  const form = event.target.closest?.("form[data-changed]");
  if (form && (event.type === "focusout" || event.key === "Enter")) form.requestSubmit();
}

const THEMES = ["system", "light", "dark"];
function showTheme() {
  const name = localStorage.getItem("theme") ?? "system";
  for (const place of document.querySelectorAll("[data-theme-name]")) place.textContent = name;
  for (const button of document.querySelectorAll("[data-theme-switch]")) button.title = `Theme: ${name}`;
}
function switchTheme() {
  const next = THEMES[(THEMES.indexOf(localStorage.getItem("theme") ?? "system") + 1) % THEMES.length];
  if (next === "system") localStorage.removeItem("theme"), delete document.documentElement.dataset.theme;
  else localStorage.setItem("theme", next), (document.documentElement.dataset.theme = next);
  showTheme();
}

async function copy(button) {
  await navigator.clipboard.writeText(button.closest(".copyable").querySelector("pre").textContent);
  button.firstChild.textContent = "Copied";
  setTimeout(() => (button.firstChild.textContent = "Copy"), 2000);
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
  for (const box of document.querySelectorAll(`main input[type=checkbox][name="${name}"]`)) box.checked = event.target.checked;
}

function countSelected() {
  for (const place of document.querySelectorAll("[data-selected-count]")) {
    const ticked = document.querySelectorAll(`input[name="${place.dataset.selectedCount}"]:checked`).length;
    place.textContent = ` ${ticked.toLocaleString("en")}`;
  }
}

// The part about what needs attention has the counts; the navigation shows them.
function showBadges() {
  for (const badge of document.querySelectorAll("[data-badge]")) {
    const count = document.querySelector(`#attention [data-count="${badge.dataset.badge}"]`)?.dataset.number ?? "";
    badge.hidden = !count;
    if (badge.textContent !== count) badge.textContent = count;
  }
}

function openPalette() {
  const dialog = document.createElement("dialog");
  dialog.className = "palette";
  dialog.setAttribute("aria-label", "Go to");
  const input = dialog.appendChild(document.createElement("input"));
  input.placeholder = "Go to a page, or ask";
  input.setAttribute("aria-label", input.placeholder);
  const list = dialog.appendChild(document.createElement("ul"));
  const pages = [...document.querySelectorAll(".side li a")].map((link) => [link.childNodes[1].textContent, link.href]);
  const show = () => {
    const text = input.value.trim();
    const asking = document.querySelector(".asking");
    const found = pages.filter(([name]) => name.toLowerCase().includes(text.toLowerCase()));
    if (text && asking) {
      const address = new URL(asking.action);
      for (const [name, value] of new FormData(asking)) address.searchParams.set(name, value);
      address.searchParams.set("q", text);
      found.push([`Ask: ${text}`, address.href]);
    }
    list.replaceChildren(...found.map(([name, href]) => {
      const item = document.createElement("li");
      const link = item.appendChild(document.createElement("a"));
      link.href = href;
      link.textContent = name;
      return item;
    }));
  };
  input.addEventListener("input", show);
  dialog.addEventListener("keydown", (event) => {
    const links = [input, ...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    if (event.key === "Enter" && at === 0) links[1]?.click();
    else if (event.key === "ArrowDown") links[Math.min(links.length - 1, at + 1)].focus();
    else if (event.key === "ArrowUp") links[Math.max(0, at - 1)].focus();
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  show();
  dialog.showModal();
}

function press(event) {
  byKey = event.target.matches?.("select") && event.key !== "Enter";
  submitChanged(event);
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !document.querySelector("dialog.palette")) {
    event.preventDefault();
    openPalette();
  } else if (event.key === "/" && !event.target.closest("input, textarea, select, [contenteditable]")) {
    const asking = document.querySelector("[data-ask]");
    if (asking) event.preventDefault(), asking.focus();
  }
}

document.addEventListener("keydown", press);
document.addEventListener("pointerdown", () => (byKey = false));
document.addEventListener("focusout", submitChanged);
document.addEventListener("change", submitOnChange);
document.addEventListener("change", selectAll);
document.addEventListener("change", countSelected);
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-switch]")) switchTheme();
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
});
document.addEventListener("submit", leaveEmptyOut);
addEventListener("pageshow", enableFields);
addEventListener("pageshow", countSelected);
new MutationObserver(() => (showTimes(document), showBadges())).observe(document.body, { childList: true, subtree: true });
showTimes(document);
showTheme();
// A form that was refused is not left closed, and a notice goes by itself; one that can be undone stays.
for (let place = document.querySelector("[aria-invalid]"); place; place = place.parentElement) if (place.matches("details")) place.open = true;
document.querySelector("[aria-invalid]")?.focus();
const toast = document.querySelector(".toast:not(:has(form))");
if (toast) setTimeout(() => toast.remove(), 8000);

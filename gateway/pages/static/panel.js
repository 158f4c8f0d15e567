// A memory opens beside the page that links to it; its address is the memory's own, and Back closes it. Links and forms in
// the panel stay in it. Without scripts, and with a new tab, it is a page.

const MEMORY = /^\/admin\/memories\/[^/]+$/;
let panel = null;
let opener = null;

async function load(request, isNew) {
  const answer = await fetch(request);
  const address = new URL(answer.url);
  if (!MEMORY.test(address.pathname)) return location.assign(address);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const content = page.querySelector("main");
  content.querySelectorAll(".pickers, #attention, script").forEach((one) => one.remove());
  if (isNew) history.pushState({ panel: true }, "", address);
  show(content, page.title);
}

function show(content, title) {
  if (!panel) {
    panel = document.createElement("aside");
    panel.className = "panel";
    panel.tabIndex = -1;
    panel.setAttribute("aria-label", "Memory");
    document.body.append(panel);
  }
  const header = document.createElement("header");
  const whole = header.appendChild(document.createElement("a"));
  whole.href = location.href;
  whole.dataset.whole = "";
  whole.textContent = "Open as a page";
  const close = header.appendChild(document.createElement("button"));
  close.className = "quiet";
  close.textContent = "Close";
  close.addEventListener("click", () => history.back());
  panel.replaceChildren(header, ...content.childNodes);
  panel.querySelectorAll("[id]").forEach((one) => one.id === "error" && one.removeAttribute("id"));
  document.title = title;
  panel.scrollTop = 0;
  panel.focus();
}

function hide() {
  panel?.remove();
  panel = null;
  // After the browser has restored its own place.
  setTimeout(() => opener?.focus());
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const address = new URL(link.href);
  const isMemory = address.origin === location.origin && MEMORY.test(address.pathname) && !address.hash;
  // A page of a memory stays one: its links to other memories lead on.
  if (!isMemory || "whole" in link.dataset || (!panel && MEMORY.test(location.pathname))) return;
  event.preventDefault();
  if (!panel) opener = link;
  load(link.href, true).catch(() => location.assign(link.href));
});

document.addEventListener("submit", (event) => {
  if (!panel?.contains(event.target) || event.target.method !== "post") return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(event.target, event.submitter));
  const action = event.target.action;
  load(new Request(action, { method: "POST", body }), false).catch(() => location.assign(action));
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && panel && !document.querySelector("dialog[open]")) history.back();
});

addEventListener("popstate", (event) => {
  if (event.state?.panel) return load(location.href, false);
  if (panel) return hide();
});

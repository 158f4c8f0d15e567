// Colours by theme: each with a contrast of at least 3 : 1 to the panel's ground. The last one is for all others.

import { COLOURS } from "./shaders.js";

export { NAMED } from "./shaders.js";

const LIGHT = {
  names: ["#1f6fb4", "#bf4d00", "#1f7a45", "#8444b8", "#b3262b", "#7a6000", "#b8327f", "#00757d", "#4f5fd6", "#5f7300", "#8a5a3c"],
  other: "#717a84",
  ages: ["#b8762b", "#b95f45", "#a94a6e", "#8b4093", "#6841a3", "#44439b", "#1d3f86"],
  mark: "#1c2024",
};
const DARK = {
  names: ["#6cb2f2", "#ff9a5c", "#6fd394", "#c79bf2", "#ff8f8a", "#e0c04c", "#f58fc8", "#4fd0d6", "#a3adff", "#b9cf52", "#d9a98a"],
  other: "#8d97a3",
  ages: ["#f2c98a", "#f2a582", "#ea8fa8", "#d48bd6", "#b294f0", "#93a4f7", "#86c5ff"],
  mark: "#ffffff",
};

export const AGES = LIGHT.ages.length;

export function currentTheme() {
  const chosen = document.documentElement.dataset.theme;
  const isDark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  return isDark ? DARK : LIGHT;
}

// Calls back when the theme changes, by the button or by the system.
export function onTheme(changed) {
  new MutationObserver(changed).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

// The CSS colours of a legend: of ages, or of names with one for the rest.
export function coloursOf(theme, byAge) {
  return byAge ? theme.ages : [...theme.names, theme.other];
}

export function uniformOf(colours) {
  const values = new Float32Array(COLOURS * 3);
  colours.slice(0, COLOURS).forEach((colour, at) => values.set(rgb(colour), 3 * at));
  return values;
}

export function rgb(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
}

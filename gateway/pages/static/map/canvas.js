// How points look, and the renderer of the first picture. Sizes depend on how many there are; each point has a byte of
// colour and a byte of state.

export const COLOURS = 16;
export const NAMED = 11; // Colours of names; the next one is for all others, and always round.
export const SHAPES = 4; // They repeat, so that similar colours differ in shape.
export const STATE = { selected: 1, suggested: 2, dimmed: 4 };
const SMALLEST = 2.5, LARGEST = 14;

// The diameter of a point in pixels; it grows a little as one comes nearer.
export function pointSize(count, zoom) {
  const alone = Math.min(9, 150 / Math.sqrt(count));
  return Math.min(LARGEST, Math.max(SMALLEST, alone) * zoom ** 0.35);
}

// `highlighted` is the number of the only colour that is not dimmed; null for all.
export function statesOf(cloud, colours, selected, suggested, highlighted) {
  const styles = new Uint8Array(2 * cloud.ids.length);
  for (let row = 0; row < cloud.ids.length; row++) {
    styles[2 * row] = colours[row];
    styles[2 * row + 1] = highlighted !== null && colours[row] !== highlighted ? STATE.dimmed : 0;
  }
  for (const row of suggested) styles[2 * row + 1] |= STATE.suggested;
  for (const id of selected) {
    const row = cloud.rowOf.get(id);
    if (row !== undefined) styles[2 * row + 1] |= STATE.selected;
  }
  return styles;
}

// Colours by theme: each with a contrast of at least 3 : 1 to the panel's ground. The last one is for all others.
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

export function shapeOf(number) {
  return number < NAMED ? number % SHAPES : 0;
}

// Outlines of the shapes 1 to 3 (square, diamond, triangle) around a point of radius 1; as in the shader of webgl.js.
const OUTLINES = [
  null,
  [-0.87, -0.87, 0.87, -0.87, 0.87, 0.87, -0.87, 0.87],
  [0, -1, 1, 0, 0, 1, -1, 0],
  [-1, -0.83, 1, -0.83, 1, -0.17, 0.36, 1, -0.36, 1, -1, -0.17],
];
const BATCH = 500; // Shapes of one path: longer ones take more than linear time.

// Draws points with a 2D context: at once, while WebGL starts, and where it is missing. Has the methods of webgl.js.
export class CanvasRenderer {
  add(places, styles) {
    return { places, styles };
  }

  restyle(mesh, styles) {
    mesh.styles = styles;
  }

  remove() {}

  draw({ places, styles }, camera, { size, colours, mark, ratio }, target) {
    const { width, height } = target.canvas, scale = camera.scale * ratio, edge = size * ratio;
    target.clearRect(0, 0, width, height);
    const byStyle = new Map();
    for (let at = 0; at < places.length; at += 2) {
      const x = width / 2 + (places[at] - camera.x) * scale, y = height / 2 - (places[at + 1] - camera.y) * scale;
      if (x < -edge || y < -edge || x > width + edge || y > height + edge) continue;
      const style = (styles[at + 1] << 8) | styles[at];
      byStyle.get(style)?.push(x, y) ?? byStyle.set(style, [x, y]);
    }
    for (const [style, places] of [...byStyle].sort(([a], [b]) => a - b)) {
      const state = style >> 8, isMarked = state & (STATE.selected | STATE.suggested);
      const radius = (edge / 2) * (isMarked ? 1.7 : 1);
      target.fillStyle = colours[style & 255];
      target.globalAlpha = state & STATE.dimmed ? 0.12 : 0.85;
      drawShapes(target, places, radius * (isMarked ? 0.59 : 1), shapeOf(style & 255), "fill");
      if (!isMarked) continue;
      target.strokeStyle = mark;
      target.globalAlpha = state & STATE.selected ? 1 : 0.6;
      target.lineWidth = radius * (state & STATE.selected ? 0.3 : 0.14);
      drawShapes(target, places, radius - target.lineWidth / 2, 0, "stroke");
    }
    target.globalAlpha = 1;
  }
}

function drawShapes(target, places, radius, shape, drawn) {
  for (let start = 0; start < places.length; start += 2 * BATCH) {
    target.beginPath();
    for (let at = start; at < Math.min(start + 2 * BATCH, places.length); at += 2) {
      const x = places[at], y = places[at + 1], outline = OUTLINES[shape];
      if (!outline) target.moveTo(x + radius, y), target.arc(x, y, radius, 0, 7);
      for (let corner = 0; outline && corner < outline.length; corner += 2) {
        const to = [x + outline[corner] * radius, y + outline[corner + 1] * radius];
        corner ? target.lineTo(...to) : target.moveTo(...to);
      }
      target.closePath();
    }
    target[drawn]();
  }
}

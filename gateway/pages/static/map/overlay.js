// What is drawn over the points of a panel: the lasso's line, and names of suggested modes at their middle.

const FONT = "600 13px Figtree, system-ui, sans-serif";
const HALF_HEIGHT = 10;
const STEP = 6;

export function drawLine(target, line, theme) {
  if (line.length < 2) return;
  target.beginPath();
  line.forEach(([left, top], at) => (at ? target.lineTo(left, top) : target.moveTo(left, top)));
  target.closePath();
  target.globalAlpha = 0.12;
  target.fillStyle = target.strokeStyle = theme.mark;
  target.fill();
  target.globalAlpha = 1;
  target.lineWidth = 1.5;
  target.setLineDash([5, 4]);
  target.stroke();
  target.setLineDash([]);
}

// `labels` are {name, x, y} in map coordinates; `ground` is the colour behind the text. Labels don't cover each other.
export function drawLabels(target, labels, camera, theme, ground) {
  target.font = FONT;
  target.textAlign = "center";
  target.textBaseline = "middle";
  const boxes = [];
  for (const { name, x, y } of labels) {
    const [left, wanted] = camera.toScreen(x, y);
    const half = target.measureText(name).width / 2 + 7;
    const at = Math.min(camera.width - half - 4, Math.max(half + 4, left));
    const top = freeTop(boxes, at, wanted, half);
    boxes.push({ at, top, half });
    target.beginPath();
    target.roundRect(at - half, top - HALF_HEIGHT, 2 * half, 2 * HALF_HEIGHT, 5);
    target.fillStyle = ground;
    target.globalAlpha = 0.85;
    target.fill();
    target.globalAlpha = 1;
    target.strokeStyle = target.fillStyle = theme.mark;
    target.lineWidth = 1;
    target.stroke();
    target.fillText(name, at, top + 0.5);
  }
}

// The nearest height at which a label covers none of the others.
function freeTop(boxes, at, wanted, half) {
  for (let step = 0; ; step++) {
    const top = wanted + Math.ceil(step / 2) * (step % 2 ? STEP : -STEP);
    const isFree = boxes.every((one) => Math.abs(one.top - top) >= 2 * HALF_HEIGHT || Math.abs(one.at - at) >= one.half + half);
    if (isFree) return top;
  }
}

// The middle of some rows of a cloud: medians, so that a few far points don't pull it into nothing.
export function middleOf(cloud, rows) {
  const median = (axis) => rows.map((row) => cloud.places[2 * row + axis]).sort((a, b) => a - b)[rows.length >> 1];
  return { x: median(0), y: median(1) };
}

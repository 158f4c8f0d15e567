// Keys on a focused canvas. The point nearest to the middle is the one that Enter takes.

const STEP = 0.15; // Of the panel's smaller side.
const ZOOM = 1.4;

const ARROWS = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

export function listenToKeys(canvas, panel) {
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !press(event, panel)) return;
    event.preventDefault();
    panel.moved();
    panel.showMiddle();
  });
  canvas.addEventListener("focus", () => canvas.matches(":focus-visible") && panel.showMiddle());
  canvas.addEventListener("blur", () => panel.leave());
}

function press({ key, shiftKey }, panel) {
  const { camera } = panel;
  if (key in ARROWS) {
    const step = STEP * Math.min(camera.width, camera.height);
    camera.pan(ARROWS[key][0] * step, ARROWS[key][1] * step);
  } else if (key === "+" || key === "=") camera.zoomAt(ZOOM);
  else if (key === "-" || key === "_") camera.zoomAt(1 / ZOOM);
  else if (key === "0") camera.showAll();
  else if (key === "Enter" || key === " ") panel.click(camera.width / 2, camera.height / 2, shiftKey, Infinity);
  else if (key === "Escape") panel.clear();
  else return false;
  return true;
}

// What pointers, wheel and keys do on a canvas.

// Pointers and wheel on a canvas: drag to pan, pinch and wheel to zoom, a line for the lasso, hover and click.
// `panel` has camera, moved(), hover(left, top), leave(), click(left, top, adds), lasso(line, adds, isDone), isDrawing().
const CLICK_PIXELS = 5;
const WHEEL_STEP = 0.0015;

export function listen(canvas, panel) {
  const pointers = new Map();
  let line = null, travelled = 0;

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, at(event));
    travelled = 0;
    line = pointers.size === 1 && (panel.isDrawing() || event.shiftKey) ? [at(event)] : null;
  });

  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return event.pointerType === "mouse" && panel.hover(...at(event));
    const now = at(event);
    travelled += distance(before, now);
    if (line) {
      line.push(now);
      panel.lasso(line, event.shiftKey, false);
    } else if (pointers.size === 2) pinch(event.pointerId, now);
    else if (travelled > CLICK_PIXELS) panel.camera.pan(now[0] - before[0], now[1] - before[1]), panel.moved();
    pointers.set(event.pointerId, now);
  });

  const lift = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    const adds = event.shiftKey || event.ctrlKey || event.metaKey;
    if (travelled <= CLICK_PIXELS && event.type === "pointerup") panel.click(...at(event), adds);
    else if (line) panel.lasso(line, adds && panel.isDrawing(), true);
    line = null;
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", (event) => {
    if (line) panel.lasso([], true, true);
    line = null;
    lift(event);
  });
  canvas.addEventListener("pointerleave", () => panel.leave());

  // A wheel that can't zoom any further scrolls the page.
  canvas.addEventListener("wheel", (event) => {
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const factor = Math.exp(-event.deltaY * lines * WHEEL_STEP * (event.ctrlKey ? 5 : 1));
    if (!panel.camera.zoomAt(factor, ...at(event))) return;
    event.preventDefault();
    panel.moved();
  }, { passive: false });

  function pinch(moving, now) {
    const [other] = [...pointers].filter(([id]) => id !== moving).map(([, place]) => place);
    const before = pointers.get(moving);
    const middle = [(now[0] + other[0]) / 2, (now[1] + other[1]) / 2];
    panel.camera.pan((now[0] - before[0]) / 2, (now[1] - before[1]) / 2);
    panel.camera.zoomAt(distance(now, other) / Math.max(1, distance(before, other)), ...middle);
    panel.moved();
  }

  function at(event) {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
}

function distance([ax, ay], [bx, by]) {
  return Math.hypot(ax - bx, ay - by);
}

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

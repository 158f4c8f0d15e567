"""The map's page with many points, in Chromium by software: time to the first draw, and frames while it is moved.

Enters: the address of a running gateway that has a user with memories; its points are replaced by synthetic ones.
Leaves: milliseconds, printed. `python -m bench.map_page http://127.0.0.1:8080 --user ana --points 50000`.
"""

import argparse
import statistics
import time

import numpy as np
from playwright.sync_api import Page, sync_playwright

ARGUMENTS = ("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
DRAG_STEPS = 120

SYNTHETIC = """(() => {
  const number = NUMBER, groups = 60, load = window.fetch;
  let state = 7;
  const draw = () => (state = (state * 16807) % 2147483647) / 2147483647;
  const near = () => (draw() + draw() + draw() - 1.5) * 0.15;
  window.fetch = async (address, how) => {
    if (!String(address).includes("/map/points")) return load(address, how);
    const rows = [...Array(number).keys()], of = rows.map((row) => row % groups);
    const middles = [...Array(groups)].map(() => [draw() * 1.6 - 0.8, draw() * 1.6 - 0.8]);
    const cloud = {
      mode: "synthetic", hue: "hue-1", space: "0", method: "neighbour_graph", made_at: null, settled: true, left_out: 0,
      ids: rows.map((row) => `memory-${row}`), text: rows.map((row) => `Memory ${row}, as long as a text begins.`),
      x: of.map((one) => middles[one][0] + near()), y: of.map((one) => middles[one][1] + near()),
      at: rows.map((row) => 1770000000 + 60 * row), type: { names: ["episodic"], of: rows.map(() => 0) },
      conversation: { names: middles.map((_, one) => `conversation-${one}`), of },
    };
    return new Response(JSON.stringify({ clouds: [cloud] }), { headers: { "Content-Type": "application/json" } });
  };
})();"""
"""Answers the request for points in the page: megabytes through the browser's debugging protocol stall frames."""

RECORD = """() => {
  window.frames_ms = [];
  let last = performance.now();
  const next = () => {
    const now = performance.now();
    frames_ms.push(now - last);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""


def measure(page: Page, address: str, points: int) -> dict[str, float]:
    """Load the page once, drag its map around, and return milliseconds by name."""
    page.add_init_script(SYNTHETIC.replace("NUMBER", str(points)))
    page.goto(address)
    marks: dict[str, float] = {}
    while "map:drawn" not in marks:
        time.sleep(0.05)
        marks = dict(page.evaluate("performance.getEntriesByType('mark').map(one => [one.name, one.startTime])"))
    time.sleep(2)
    box = page.locator("canvas").first.bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*middle)
    page.mouse.down()
    page.evaluate(RECORD)
    for step in range(DRAG_STEPS):
        angle = step / 10
        page.mouse.move(middle[0] + 100 * np.sin(angle), middle[1] + 60 * np.cos(angle) - 60)
    frames = page.evaluate("frames_ms.slice(1)")
    page.mouse.up()
    return {
        "points received to first draw": marks["map:drawn"] - marks["map:points"],
        "navigation to first draw": marks["map:drawn"],
        "frames while moving": len(frames),
        "frame, median": statistics.median(frames),
        "frame, 95th percentile": float(np.percentile(frames, 95)),
        "frame, longest": max(frames),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--user", default="demo")
    parser.add_argument("--points", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        for _ in range(given.rounds):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            found = measure(page, f"{given.url}/admin/map?user={given.user}&mode=general", given.points)
            print({name: round(value, 1) for name, value in found.items()})
            page.close()
        browser.close()


if __name__ == "__main__":
    main()

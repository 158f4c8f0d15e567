"""The map's page with many points, in Chromium by software: time to the first draw, and frames while it is moved.

Enters: the address of a running gateway that has a user with memories; its points are replaced by synthetic ones.
Leaves: milliseconds, printed. `python -m bench.map_page http://127.0.0.1:8080 --user ana --points 50000`.
"""

import argparse
import json
import statistics
import time

import numpy as np
from playwright.sync_api import Page, Route, sync_playwright

ARGUMENTS = ("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
CLUSTERS = 60
DRAG_STEPS = 120

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


def synthetic_points(number: int) -> str:
    """Return an answer of the page's points with one cloud of clusters."""
    draws = np.random.default_rng(1)
    of = draws.integers(CLUSTERS, size=number)
    centres = draws.uniform(-0.8, 0.8, (CLUSTERS, 2))
    places = np.clip(centres[of] + 0.07 * draws.standard_normal((number, 2)), -1, 1).round(5)
    cloud = {
        "mode": "synthetic", "hue": "hue-1", "space": "0", "method": "neighbour_graph", "made_at": None,
        "settled": True, "left_out": 0,
        "ids": [f"memory-{row}" for row in range(number)],
        "x": places[:, 0].tolist(),
        "y": places[:, 1].tolist(),
        "at": (1_770_000_000 + 60 * np.arange(number)).tolist(),
        "text": [f"Memory {row} of conversation {one}, as long as a text begins." for row, one in enumerate(of)],
        "conversation": {"names": [f"conversation-{one}" for one in range(CLUSTERS)], "of": of.tolist()},
        "type": {"names": ["episodic"], "of": [0] * number},
    }  # fmt: skip
    return json.dumps({"clouds": [cloud]})


def measure(page: Page, address: str, points: str) -> dict[str, float]:
    """Load the page once, drag its map around, and return milliseconds by name."""

    def answer(route: Route) -> None:
        route.fulfill(body=points, content_type="application/json")

    page.route("**/admin/map/points*", answer)
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
    points = synthetic_points(given.points)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        for _ in range(given.rounds):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            found = measure(page, f"{given.url}/admin/map?user={given.user}&mode=general", points)
            print({name: round(value, 1) for name, value in found.items()})
            page.close()
        browser.close()


if __name__ == "__main__":
    main()

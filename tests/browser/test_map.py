"""The map in a browser: points are drawn, seen by hand and by keyboard, selected, moved and declared as a mode."""

import random
import re
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect

from tests.worlds.browser import System

CheckAccessibility = Callable[[Page], None]

USER = "/v1/users/demo"
MODES = ("atlas", "atlas-moved", "atlas-declared")
PROJECT = "mapped"
TOPICS = ("Simmer the soup with thyme and leek, batch {}.", "Rebase the branch before build number {}.")
TURNS = 16

DRAWN = """canvas => {
  const { width, height } = canvas;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  let drawn = 0;
  for (let at = 3; at < pixels.length; at += 4) drawn += pixels[at] > 100;
  return drawn;
}"""
"""Counts the pixels of a canvas that are not empty."""

FOUND = """async ([base, places, line]) => {
  const { Grid, pointsInside } = await import(base + "geometry.js");
  const grid = new Grid(Float32Array.from(places));
  return [pointsInside(grid, line).sort((a, b) => a - b), grid.nearest(0.1, 0.1, 2), grid.nearest(0.1, 0.1, 1e-9)];
}"""
"""Returns what the grid finds in a lasso, and nearest to a place."""


class Place(NamedTuple):
    """A point on the page: its memory, its text, and where it is in pixels of its canvas."""

    memory_id: str
    text: str
    left: float
    top: float


@pytest.fixture(scope="module")
def atlas(system: System) -> Iterator[httpx.Client]:
    """Modes of these tests with two topics in the first; a client of the gateway."""
    with httpx.Client(base_url=system.url, timeout=30, headers={"Prefer": "wait=30"}) as http:
        for mode in MODES[:2]:
            http.put(f"{USER}/modes/{mode}", json={"embedder": "general"}).raise_for_status()
        turns = [
            {
                "turn_id": str(uuid4()),
                "conversation_id": f"atlas-{number % 2}",
                "role": "user",
                "content": TOPICS[number % 2].format(number),
                "project_id": PROJECT,
                "mode": MODES[0],
                "occurred_at": f"2026-02-{number + 1:02}T10:00:00Z",
            }
            for number in range(TURNS)
        ]
        http.post(f"{USER}/turns", json={"turns": turns}).raise_for_status()
        wait_for_points(http, MODES[0], TURNS)
        yield http
        for mode in MODES:
            http.delete(f"{USER}/modes/{mode}", params={"memories": "forget"})


def wait_for_points(http: httpx.Client, mode: str, number: int) -> list[dict[str, Any]]:
    """Wait until a cloud has this many points and is settled; return them."""
    for _ in range(100):
        [cloud] = http.get(f"{USER}/map", params={"mode": mode, "project_id": "*"}).json()["clouds"]
        if cloud["settled"] and len(cloud["points"]) == number:
            points: list[dict[str, Any]] = cloud["points"]
            return points
        time.sleep(0.2)
    raise AssertionError(f"{mode} has no settled cloud of {number}")


def open_map(page: Page, **query: str) -> Locator:
    """Open the page and return its first canvas, as soon as points are drawn there."""
    page.goto("/admin/map?" + urlencode({"user": "demo", **query}))
    canvas = page.locator("canvas").first
    canvas.wait_for()
    wait_until(lambda: drawn(canvas) > 0)
    return canvas


def drawn(canvas: Locator) -> int:
    return int(canvas.evaluate(DRAWN))


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait without evaluating strings in the page, which its policy refuses."""
    for _ in range(100):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within five seconds")


def places_of(canvas: Locator, points: list[dict[str, Any]]) -> list[Place]:
    box = canvas.bounding_box()
    assert box is not None
    xs, ys = [point["x"] for point in points], [point["y"] for point in points]
    across, up = max(xs) - min(xs), max(ys) - min(ys)
    scale = min(box["width"] / max(across, 0.05), box["height"] / max(up, 0.05)) * 0.9
    x, y = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2
    middle = box["width"] / 2, box["height"] / 2
    return [
        Place(
            point["memory_id"],
            point["text"],
            middle[0] + (point["x"] - x) * scale,
            middle[1] - (point["y"] - y) * scale,
        )
        for point in points
    ]


def test_points_are_seen_selected_and_moved(
    page: Page, system: System, atlas: httpx.Client, check_accessibility: CheckAccessibility
) -> None:
    canvas = open_map(page, mode=MODES[0], project=PROJECT)
    places = places_of(canvas, wait_for_points(atlas, MODES[0], TURNS))
    canvas.hover(position={"x": places[0].left, "y": places[0].top})
    expect(page.locator(".tooltip")).to_contain_text("atlas-")
    canvas.click(position={"x": places[0].left, "y": places[0].top})
    expect(page.get_by_role("link", name="1 selected")).to_be_visible()
    expect(page.locator("[data-map-picked]")).to_have_attribute(
        "href", f"/admin/memories/{places[0].memory_id}?user=demo&project={PROJECT}&mode={MODES[0]}"
    )
    check_accessibility(page)
    draw_around(page, canvas, places)
    expect(page.get_by_role("link", name=f"{TURNS} selected")).to_be_visible()
    expect(page.get_by_role("heading", name="Selected memories")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(TURNS)
    page.get_by_label("Move to").select_option(MODES[1])
    page.get_by_role("button", name=f"Move {TURNS} memories", exact=True).click()
    expect(page.get_by_role("status").first).to_have_text(f"Moved {TURNS} memories to {MODES[1]}.")
    moved = system.command("get_memory", {"memory_id": places[0].memory_id}, PROJECT)
    assert moved["mode"] == MODES[1]
    assert moved["mode_source"] == "caller"
    wait_for_points(atlas, MODES[1], TURNS)
    wait_until(lambda: drawn(page.locator("canvas").first) > 0)


def draw_around(page: Page, canvas: Locator, places: list[Place]) -> None:
    """Draw a line around all points with the lasso."""
    box = canvas.bounding_box()
    assert box is not None
    xs, ys = [place.left for place in places], [place.top for place in places]
    left, right, top, bottom = min(xs) - 9, max(xs) + 9, min(ys) - 9, max(ys) + 9
    page.get_by_role("button", name="Select with a lasso").click()
    page.mouse.move(box["x"] + left, box["y"] + top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top)):
        page.mouse.move(box["x"] + x, box["y"] + y, steps=3)
    page.mouse.up()


def test_keyboard_and_table_do_what_the_pointer_does(page: Page, system: System, atlas: httpx.Client) -> None:
    points = wait_for_points(atlas, MODES[1], TURNS)
    canvas = open_map(page, mode=MODES[1], project=PROJECT)
    before = canvas.evaluate("one => one.toDataURL()")
    canvas.focus()
    for key in ("+", "+", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
    wait_until(lambda: canvas.evaluate("one => one.toDataURL()") != before)
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="1 selected")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="1 selected")).to_be_hidden()
    page.keyboard.press("0")
    expect(page.locator("tbody tr")).to_have_count(TURNS)
    boxes = page.locator("tbody").get_by_role("checkbox")
    boxes.nth(0).press("Space")
    boxes.nth(1).press("Space")
    page.get_by_label("or to a new mode").fill(MODES[2])
    page.get_by_role("button", name="Declare and move 2 memories").click()
    expect(page.get_by_role("status").first).to_have_text(f"Moved 2 memories to {MODES[2]}.")
    newest = max(points, key=lambda each: str(each["occurred_at"]))["memory_id"]
    assert system.command("get_memory", {"memory_id": newest}, PROJECT)["mode"] == MODES[2]
    wait_for_points(atlas, MODES[2], 2)


def test_each_mode_is_a_cloud_of_its_own_and_colours_are_in_the_address(page: Page, atlas: httpx.Client) -> None:
    canvas = open_map(page)
    modes = page.locator(".cloud h2").all_text_contents()
    assert len(modes) == len(set(modes)) >= 2
    light = canvas.evaluate("one => one.toDataURL()")
    page.locator("[data-map-colour]").select_option("age")
    expect(page).to_have_url("/admin/map?user=demo&colour=age")
    wait_until(lambda: canvas.evaluate("one => one.toDataURL()") != light)
    page.get_by_role("list", name="Colours").get_by_role("button").first.click()
    pressed = page.locator(".legend button[aria-pressed=true]")
    expect(pressed).to_have_count(1)
    expect(page.locator("[data-map-range]")).to_contain_text(f"of {pressed.locator('small').inner_text()}")


MANY = 45_000
"""Two answers of the gateway, and a part of a third."""


def answer_with_many(page: Page) -> list[dict[str, str]]:
    """Have a map of `MANY` memories answered; return the list of the requests for its points."""
    numbers = random.Random(7)
    places = [(numbers.gauss(number % 5 / 3 - 0.6, 0.1), numbers.gauss(0, 0.2)) for number in range(MANY)]
    asked: list[dict[str, str]] = []

    def answer(route: Route) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(route.request.url).query).items()}
        asked.append(query)
        route.fulfill(json={"clouds": [answered(places, query)]})

    page.route("**/map/points?*", answer)
    return asked


def test_a_map_of_many_memories_is_read_whole_once_somebody_looks_closer(page: Page, atlas: httpx.Client) -> None:
    asked = answer_with_many(page)
    open_map(page, mode=MODES[1], project=PROJECT)
    status = page.locator("[data-map-status]")
    expect(status).to_have_text("20,000 memories on the map. Zoom in for the other 25,000.", timeout=60_000)
    assert [query.get("limit") for query in asked] == ["1000", None]
    zoom = page.get_by_role("button", name="Zoom in")
    zoom.click()
    zoom.click()
    expect(status).to_have_text(f"{MANY:,} memories on the map.", timeout=60_000)
    assert "until" not in asked[2]
    assert "since" not in asked[-1]


def test_a_memory_that_is_in_no_sample_is_marked_all_the_same(page: Page, atlas: httpx.Client) -> None:
    asked = answer_with_many(page)
    sampled = set(answered([(0.0, 0.0)] * MANY, {})["ids"])
    missing = next(name for name in (f"m{row}" for row in range(MANY)) if name not in sampled)
    open_map(page, mode=MODES[1], project=PROJECT, memory=missing)
    expect(page.locator("[data-map-picked]")).to_have_attribute("href", re.compile(f"/{missing}\\?"), timeout=60_000)
    assert len(asked) > 2


def answered(places: list[tuple[float, float]], query: dict[str, str]) -> dict[str, Any]:
    """Return a cloud as the gateway does, of memories a minute apart: at most 20,000 of the span, a sample of all."""
    begin = 1_700_000_000
    since, until = (
        round((datetime.fromisoformat(query[name]).timestamp() - begin) / 60) if name in query else end
        for name, end in (("since", 0), ("until", MANY))
    )
    limit = int(query.get("limit", 20_000))
    rows = list(range(since, until))
    shown = rows if len(rows) <= limit else sorted(random.Random(1).sample(rows, limit))
    return {
        "mode": MODES[0],
        "space": "5b2f",
        "method": "neighbour_graph",
        "made_at": "2026-03-01T09:30:05Z",
        "settled": True,
        "left_out": len(rows) - len(shown),
        "hue": "hue-1",
        "ids": [f"m{row}" for row in shown],
        "x": [places[row][0] for row in shown],
        "y": [places[row][1] for row in shown],
        "at": [begin + 60 * row for row in shown],
        "text": [TOPICS[row % 2].format(row) for row in shown],
        "conversation": {"names": ["a", "b"], "of": [row % 2 for row in shown]},
        "type": {"names": ["episodic"], "of": [0] * len(shown)},
    }


def test_without_webgl_points_are_drawn_and_selected(context: BrowserContext, page: Page, atlas: httpx.Client) -> None:
    context.add_init_script(
        "const get = HTMLCanvasElement.prototype.getContext;"
        "HTMLCanvasElement.prototype.getContext = function (kind, ...more) {"
        " return kind === 'webgl2' ? null : get.call(this, kind, ...more); };"
    )
    open_map(page)
    page.get_by_role("button", name="Select all in view").click()
    expect(page.get_by_role("button", name="Declare and move ")).to_be_enabled()


def test_grid_and_lasso_find_what_a_search_of_all_points_finds(page: Page, atlas: httpx.Client) -> None:
    open_map(page)
    base = page.locator("script[src*='map/page.js']").get_attribute("src")
    assert base is not None
    numbers = random.Random(7)
    places = [numbers.uniform(-1, 1) for _ in range(6_000)]
    triangle = [[-0.9, -0.9], [0.8, -0.2], [0.1, 0.9]]
    inside, near, none = page.evaluate(FOUND, [base.removesuffix("page.js"), places, triangle])
    points = list(zip(places[::2], places[1::2], strict=True))
    assert inside == [number for number, point in enumerate(points) if is_left_of_all(point, triangle)]
    assert near == min(range(len(points)), key=lambda each: (points[each][0] - 0.1) ** 2 + (points[each][1] - 0.1) ** 2)
    assert none == -1


def is_left_of_all(point: tuple[float, float], corners: list[list[float]]) -> bool:
    """Whether a point is inside a convex line that runs against the clock."""
    edges = zip(corners, [*corners[1:], corners[0]], strict=True)
    return all((bx - ax) * (point[1] - ay) - (by - ay) * (point[0] - ax) > 0 for (ax, ay), (bx, by) in edges)

"""Where things are on a page: what lies over something else, what is empty. In numbers: fonts do not matter."""

from __future__ import annotations

import re
from io import BytesIO
from itertools import combinations
from typing import Any

import numpy as np
from PIL import Image

TEXTS = """place => [...document.querySelectorAll(`${place} text`)].map((text) => {
  const { left, right, top, bottom } = text.getBoundingClientRect();
  return { words: text.textContent, kind: text.getAttribute('class'), left, right, top, bottom };
}).filter((text) => text.right > text.left)"""
LINES = """place => [...document.querySelectorAll(`${place} polyline`)].map((line) => {
  const points = line.getAttribute('points').split(' ').map((point) => point.split(',').map(Number));
  const [across, heights] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const drawn = getComputedStyle(line);
  return { kind: line.getAttribute('class'), points: points.length, rise: Math.max(...heights) - Math.min(...heights),
    colour: drawn.stroke, width: parseFloat(drawn.strokeWidth), left: Math.min(...across), right: Math.max(...across) };
})"""
ROUNDING = 2.0
"""Pixels by which boxes of letters may touch: they are higher than what is drawn of the letters."""


def overlaps(page: Any, place: str) -> list[tuple[str, str]]:
    """The texts of a chart that lie over each other."""
    found = page.evaluate(TEXTS, place)
    assert found, f"there is no text in {place}"
    return [
        (one["words"], other["words"])
        for one, other in combinations(found, 2)
        if min(one["right"], other["right"]) - max(one["left"], other["left"]) > ROUNDING
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > ROUNDING
    ]


def outside(page: Any, place: str) -> list[str]:
    """The texts of a chart that stick out of it to the side, or out of the screen."""
    box = page.locator(place).bounding_box()
    screen = page.evaluate("() => document.documentElement.clientWidth")
    right = min(box["x"] + box["width"], screen) + ROUNDING
    found = page.evaluate(TEXTS, place)
    return [each["words"] for each in found if each["left"] < box["x"] - ROUNDING or each["right"] > right]


def repeated(page: Any, place: str) -> list[str]:
    """The words that stand at two heights of one axis: rounded so far that they say nothing."""
    words = page.locator(f"{place} text.tick:not(.x)").all_text_contents()
    return sorted({each for each in words if words.count(each) > 1})


def lines(page: Any, place: str) -> dict[str, Any]:
    """The lines of a chart by their kind; each has points, a colour and a width, or the chart is as good as empty."""
    found = {each["kind"].split()[-1]: each for each in page.evaluate(LINES, place)}
    for each in found.values():
        assert each["points"] > 10, each
        assert each["colour"] != "none", each
        assert each["width"] >= 1, each
        assert each["right"] - each["left"] > 100, each
    return found


def bars(page: Any, place: str) -> list[int]:
    """What the bars of a chart stand for, by their heights and the scale of the axis."""
    script = """place => {
      const chart = document.querySelector(place);
      const read = (text) => [Number(text.getAttribute('y')), Number(text.textContent.replaceAll(',', ''))];
      const ticks = [...chart.querySelectorAll('text.tick:not(.x)')].map(read);
      const [[low, zero], [high, top]] = [ticks[0], ticks.at(-1)];
      const one = (low - high) / (top - zero);
      return [...chart.querySelectorAll('rect.bar')].map((bar) => Math.round(bar.getAttribute('height') / one));
    }"""
    found: list[int] = page.evaluate(script, place)
    return found


def column(page: Any, place: str, number: int) -> list[str]:
    """The texts of a column of a table; the first is the one of the rows' heads."""
    rows = page.locator(f"{place} tbody tr").evaluate_all(
        "(rows, number) => rows.map((row) => row.cells[number].textContent)", number
    )
    return [str(each) for each in rows]


def middle(box: Any) -> float:
    return float(box["x"] + box["width"] / 2)


NEAR = 60
"""How far a pixel may be from the colour of a line, as edges of lines are mixed with what is behind them."""


def painted(page: Any, place: str, shape: str) -> float:
    """How many columns of pixels of a chart hold the colour of one of its shapes, as a share of the chart's width."""
    said = page.locator(f"{place} {shape}").first.evaluate(
        "shape => { const { stroke, fill } = getComputedStyle(shape); return stroke === 'none' ? fill : stroke; }"
    )
    colour = [int(number) for number in re.findall(r"\d+", said)[:3]]
    picture = Image.open(BytesIO(page.locator(place).screenshot())).convert("RGB")
    found = np.abs(np.asarray(picture, dtype=np.int64) - colour).max(axis=2) < NEAR
    return float(found.any(axis=0).mean())

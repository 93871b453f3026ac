"""The README's picture: it shows what is computed, with room between its words."""

from __future__ import annotations

import itertools
import re
import runpy
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

REPOSITORY = Path(__file__).resolve().parents[3]
SPACE = "{http://www.w3.org/2000/svg}"


def panels_of(figure: Figure) -> list[Any]:
    return [axes for axes in figure.axes if axes.axison]


def texts_of(figure: Figure) -> Iterator[Any]:
    """Every text that is seen."""
    yield from figure.texts
    for legend in figure.legends:
        yield from legend.get_texts()
    for axes in panels_of(figure):
        yield from (axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label, *axes.texts)
        shown = [(axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())]
        for axis, (low, high) in shown:
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            yield from (tick.label1 for tick in ticks if tick.label1.get_visible())


def words_of(figure: Figure) -> str:
    return " ".join(" ".join(text.get_text() for text in texts_of(figure)).split())


def check_room(figure: Figure) -> None:
    """No text overlaps another or leaves the figure."""
    figure.draw_without_rendering()
    edges = figure.bbox
    found = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure) if text.get_text()]
    for words, box in found:
        inside = box.x0 >= edges.x0 and box.x1 <= edges.x1 and box.y0 >= edges.y0 and box.y1 <= edges.y1
        assert inside, words
    for (words, box), (others, other) in itertools.combinations(found, 2):
        across = min(box.x1, other.x1) - max(box.x0, other.x0)
        up = min(box.y1, other.y1) - max(box.y0, other.y0)
        assert across <= 0.5 or up <= 0.5, (words, others)


def test_room_is_looked_at() -> None:
    crowded = Figure()
    for _ in range(2):
        crowded.text(0.5, 0.5, "the same place")
    with pytest.raises(AssertionError, match="the same place"):
        check_room(crowded)
    outside = Figure()
    outside.text(0.99, 0.5, "too far right")
    with pytest.raises(AssertionError, match="too far right"):
        check_room(outside)


def read_lines(text: str) -> tuple[str, str, dict[str, Any]]:
    """Title, description, and the points of each line in a picture."""
    root = ElementTree.fromstring(text)
    lines = {}
    for name in ("line-D55E00", "line-0072B2"):
        (group,) = [each for each in root.iter(f"{SPACE}g") if each.get("id", "").endswith(f"-{name}")]
        (path,) = group.iter(f"{SPACE}path")
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.attrib["d"])]
        lines[name] = np.array(numbers).reshape(-1, 2)
    words = [root.findtext(f"{SPACE}{name}") for name in ("title", "desc")]
    return str(words[0]), str(words[1]), lines


@pytest.mark.slow
def test_picture_of_the_readme_is_the_one_that_is_computed() -> None:
    tool = runpy.run_path(str(REPOSITORY / "tools" / "make_picture.py"))
    curve = tool["compute_curve"]()
    drawn, kept = tool["make_svg"](curve), (REPOSITORY / "docs" / "pictures" / "risk.svg").read_text(encoding="utf-8")
    assert drawn == tool["make_svg"](curve)
    (title, words, lines), (kept_title, kept_words, kept_lines) = read_lines(drawn), read_lines(kept)
    assert (title, words) == (kept_title, kept_words)
    for name, points in lines.items():
        assert points == pytest.approx(kept_lines[name], abs=0.5)  # points of print; fonts may move the axes a little
    figure = curve.plot()
    check_room(figure)
    words = words_of(figure)
    assert "At epsilon 1, 40.6% are inferred, and 6.9% are revealed because of their own record" in words
    beside = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    for share in ("6.9%", "40.6%", "11.9%", "46.9%", "no noise"):
        assert share in words
        assert share in beside

"""Refusals on the page name its boxes: no option, no argument."""

from __future__ import annotations

import re

import pytest

from cellrisk.counts.count_tables import refuse_count_names, say_none
from cellrisk.errors import CellriskError
from cellrisk.publish.releasing.domain import LEAVE_OUT, refuse_observed
from cellrisk.show.wording.choice import INSTEAD
from cellrisk.web.boxes import name_boxes


def said(ask: object) -> str:
    with pytest.raises(CellriskError) as refusal:
        ask()  # type: ignore[operator]
    return str(refusal.value)


LINES = {
    "counts": lambda: said(lambda: refuse_count_names(["region", "count"])),
    "no counts": lambda: say_none("--count", ["none"]),
    "labels": lambda: str(refuse_observed(["job"])),
    "outside": lambda: LEAVE_OUT,
}


@pytest.mark.parametrize("name", LINES)
def test_no_option_and_no_argument_is_left(name: str) -> None:
    line = LINES[name]()
    assert re.search(r"--[a-z]|\w=", line)  # there is something to be said otherwise
    assert not re.search(r"--[a-z]|\w=|Python", name_boxes(line)), name_boxes(line)


def test_the_limit_to_use_instead_is_named_by_its_box() -> None:
    assert "(max-caused)" in INSTEAD
    assert "instead (“Because of their own record”), which leaves chance out" in name_boxes(INSTEAD)


def test_options_of_the_server_stay() -> None:
    line = "the server has no folder to read from; start it with --folder, or upload the file"
    assert name_boxes(line) == line

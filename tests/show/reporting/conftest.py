"""A table, its report and the page of it, made once for all tests."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import cellrisk as cr
from cellrisk.show.reporting import Report, report
from tests.show.reporting.reading import Reader, tabulated


@pytest.fixture(scope="session")
def table() -> cr.FrequencyTable:
    return tabulated()


@pytest.fixture(scope="session")
def chosen(table: cr.FrequencyTable) -> Report:
    return report(
        table, max_risk=0.3, max_tvd=0.5, releases=2, top=4, organisation="Office", preparation=["as it came"]
    )


@pytest.fixture(scope="session")
def page(chosen: Report) -> Reader:
    return Reader(chosen.html)


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time, and says nothing where words and numbers are looked at."""
    import cellrisk.show.pictures as pictures

    for name in ("draw_curve", "draw_icons", "draw_sizes", "draw_together"):
        monkeypatch.setattr(pictures, name, lambda *_: SimpleNamespace(texts=[], axes=[]))
    monkeypatch.setattr(pictures, "to_svg", lambda _: "<svg></svg>")

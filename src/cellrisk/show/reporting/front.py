"""The three figures to decide by, as the first page of a report on one table shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cellrisk.show.reporting.blocks import TableBlock
from cellrisk.system.text import number_of, percent

if TYPE_CHECKING:
    from cellrisk.risk.figures import DecisionFigures
    from cellrisk.risk.perturbed import PerturbedFigures

CAUSED, AT_ALL, CEILING = (
    "Given away because of their own record",
    "Given away at all",
    "Nobody is right more often than",
)
HEADER = ("Sensitive attribute", CAUSED, AT_ALL, "An attacker is sure of, and right", CEILING)
CAPTION = "Three figures to decide by"


def figures_table(figures: Iterable[DecisionFigures]) -> TableBlock:
    """The three figures for each sensitive attribute, with what each is the answer to."""
    return _make_table([tuple(_figures_row(each)) for each in figures])


def perturbed_figures_table(figures: Iterable[PerturbedFigures]) -> TableBlock:
    """The same of a perturbed table: its ceiling is one over known counts, and caused may be negative."""
    return _make_table([tuple(_perturbed_row(each)) for each in figures])


def _make_table(rows: Sequence[tuple[str, ...]]) -> TableBlock:
    return TableBlock(CAPTION, HEADER, tuple(rows), texts=tuple(range(len(HEADER))))


def _figures_row(figures: DecisionFigures) -> Iterator[str]:
    caused = figures.caused
    yield figures.sensitive
    interval = f"; {caused.low:,} to {caused.high:,}" if caused.low is not None else ""
    yield say_number(caused.people, caused.share, interval)
    yield say_number(caused.exposed, caused.exposed / caused.records)
    yield _say_sure(figures.certainty)
    success, prior = figures.ceiling.times
    yield f"{success} in 100, instead of {prior}"


def _perturbed_row(figures: PerturbedFigures) -> Iterator[str]:
    a, b = figures.worst_counts
    yield figures.sensitive
    yield say_number(figures.caused, figures.caused / figures.records)
    yield say_number(figures.people.mean, figures.people.mean / figures.records)
    yield _say_sure(figures.certainty)
    yield f"{100 * figures.ceiling:.4g} in 100, instead of 50, where {a:,} and {b:,} others are known"


def say_number(people: float, share: float, interval: str = "") -> str:
    """A number of people with its share of all, and an interval where there is one."""
    sign = "-" if share < 0 else ""
    return f"{number_of(round(people), 'person', 'people')} ({sign}{percent(abs(share))}{interval})"


def _say_sure(certainty: Sequence[Any]) -> str:
    """The people of whom an attacker is sure, by the highest certainty that was asked for."""
    if not certainty:
        return "not computed"
    return f"{certainty[-1].people}, with {100 * certainty[-1].certainty:g}% certainty"

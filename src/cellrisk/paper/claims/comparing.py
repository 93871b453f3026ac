"""Paper beside ours: what a statement is judged from, and how numbers are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cellrisk.paper.bundles import Bundle
from cellrisk.paper.experiments import BANKRUPTCY, SUBSET
from cellrisk.paper.panels import AGREES, DIFFERS, ON_CONDITION, Boxes, Statement
from cellrisk.paper.sheets import ADULT_DEFINED, ADULT_PUBLISHED

PLAINLY_DIFFERENT = "The numbers differ at the paper's number of digits."


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was computed, for the claims to look at."""

    bundles: Mapping[str, Bundle]
    boxes: tuple[Boxes, ...] = ()

    @property
    def has_bankruptcy(self) -> bool:
        return BANKRUPTCY in self.bundles

    @property
    def rows(self) -> Bundle:
        """Adult as published: rows taken for cells."""
        return self.bundles[ADULT_PUBLISHED]

    @property
    def adult(self) -> Bundle:
        """Adult as defined."""
        return self.bundles[ADULT_DEFINED]

    @property
    def bankruptcy(self) -> Bundle:
        return self.bundles[BANKRUPTCY]

    @property
    def subset(self) -> Bundle:
        return self.bundles[SUBSET]

    @property
    def homogeneous(self) -> list[Bundle]:
        """The experiments in which the paper has homogeneous cells only."""
        return [self.rows, self.bankruptcy] if self.has_bankruptcy else [self.rows]

    @property
    def published(self) -> list[Bundle]:
        """The experiments as the paper has them."""
        return [*self.homogeneous, self.subset] if self.has_bankruptcy else [self.rows]

    @property
    def compared(self) -> list[Bundle]:
        """The experiments by the paper's own definition of a cell."""
        return [bundle for label, bundle in self.bundles.items() if label != ADULT_PUBLISHED]


def same(paper: str, ours: float) -> bool:
    """Whether two numbers agree at the paper's number of digits.

    >>> same("0.69", 54 / 78), same("5,974", 5009), same("3.6e-05", 1 / 27504)
    (True, False, True)
    """
    return shown_like(paper, ours) == paper


def shown_like(paper: str, ours: float) -> str:
    """Our number with the paper's number of digits.

    >>> shown_like("5,974", 5009), shown_like("0.69", 0.6923), shown_like("4e-03", 0.004)
    ('5,009', '0.69', '4e-03')
    """
    mantissa, power, _ = paper.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return f"{ours:.{decimals}e}" if power else f"{ours:,.{decimals}f}"


def compare(
    place: str, claim: str, paper: str, ours: float, *, shown: str = "", otherwise: str = "", note: str = ""
) -> Statement:
    """A number of the paper beside ours. ``otherwise`` says why they differ, ``note`` what to add where they agree."""
    agrees = same(paper, ours)
    text = shown or (f"{ours:.4g}" if "." in paper or "e" in paper else f"{ours:,.0f}")
    why = note if agrees else otherwise or PLAINLY_DIFFERENT
    return Statement(place, claim, paper, text, AGREES if agrees else DIFFERS, why)


def judge(
    place: str, claim: str, paper: str, ours: str, *, holds: bool, partly: bool = False, why: str = "", note: str = ""
) -> Statement:
    """A claim in words: it holds, it holds in part (on a condition), or it does not."""
    verdict = AGREES if holds else ON_CONDITION if partly else DIFFERS
    return Statement(place, claim, paper, ours, verdict, note if holds else why or PLAINLY_DIFFERENT)


def span(values: Iterable[float], digits: int = 3) -> str:
    """The least and the greatest of some numbers.

    >>> span([0.5, 0.25, 0.4]), span([0.25, 0.2500001])
    ('0.250 to 0.500', '0.250')
    """
    found = sorted(values)
    low, high = (f"{value:.{digits}f}" for value in (found[0], found[-1]))
    return low if low == high else f"{low} to {high}"

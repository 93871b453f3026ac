"""`explain`: who is at risk in a table at one setting of a mechanism, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.methods import read_method
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.explanation.remedies import (
    AS_GIVEN,
    Coarsening,
    Groups,
    OtherSetting,
    Remedies,
    Removal,
    try_settings,
)
from cellrisk.risk.explanation.risky_cells import CausedBySize, CausedCell, CellRisks, CellSteps, LevelRisk, RiskyCell
from cellrisk.risk.measures import FORMS, WEIGHTS
from cellrisk.system.checks import require_whole_number
from cellrisk.system.results import Result
from cellrisk.system.text import CURATOR_NOTE, about_people, aligned, make_sentence, number_of, of_people, percent
from cellrisk.system.words import Form, MechanismName, Neighbours, Weights, require_word

if TYPE_CHECKING:
    import pandas as pd

    from cellrisk.counts.table import FrequencyTable

LEVELS_PRINTED, VALUES_PRINTED = 10, 6
HARDLY = 0.05
"""Fewer people than this are hardly anybody."""
KEYS_NOTE = "The values that describe cells and people are raw data: do not publish them."


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """The answer of `explain`. Prints as a headline and tables."""

    picture = "draw_explanation"

    sensitive: str
    mechanism: Mechanism | None
    """None where the table is published with a perturbation."""
    form: str
    weights: str
    records: int
    cells: int
    baseline: float
    """The local risk with all quasi-identifiers as they are."""
    people: float
    """Expected number of people whose value is read off the release correctly."""
    raw_share: float
    """The share of people whose value the raw table reveals."""
    riskiest: tuple[RiskyCell, ...]
    """The cells by risk, then by records, both descending, then in the order of their keys."""
    by_level: tuple[LevelRisk, ...]
    """Each value that occurs, in the order of the quasi-identifiers and of their values."""
    without: tuple[Removal, ...]
    coarser: tuple[Coarsening, ...]
    caused: float = 0.0
    """Expected number of people given away only because of their own record."""
    caused_cells: tuple[CausedCell, ...] = ()
    """The cells with most of these people first; of two with as many, the smaller, then in the order of their keys."""
    caused_by_size: tuple[CausedBySize, ...] = ()
    """The people given away because of their own record, and the people exposed, by the size of their cell."""
    settings: tuple[OtherSetting, ...] = ()
    """Caused and exposed with a smaller epsilon, and with small counts suppressed."""
    perturbation: Perturbation | None = None
    steps: CellSteps | None = None
    """The cell with most people given away because of their own record, step by step, where there is a perturbation."""

    def __post_init__(self) -> None:
        if not (self.riskiest and self.by_level and self.without):
            raise InvalidInput("an explanation needs a cell, a value and a quasi-identifier at least")
        if (self.mechanism is None) == (self.perturbation is None):
            raise InvalidInput("an explanation is of a mechanism or of a perturbation")

    @property
    def most_raising(self) -> str | None:
        """The quasi-identifier whose removal lowers the risk most; None where none does."""
        best = self._best_removal
        return best.quasi_identifier if best else None

    @property
    def headline(self) -> str:
        """What a curator can repeat: whom the riskiest cells hold, who is given away because of their own record, and
        what would lower the risk most."""
        return f"{self._say_who()} {self._say_caused()} {self._say_what_helps()}"

    def _numbers(self) -> pd.DataFrame:
        """One row a number. The parts are "table", "cell", "level", "without", "coarser", "caused_cell", "size" and
        "setting", and ``row`` numbers the things in a part; ``label`` is a key, a value, or a way of merging values."""
        import pandas as pd

        parts: dict[str, tuple[Any, ...]] = {
            "cell": self.riskiest,
            "level": self.by_level,
            "without": self.without,
            "coarser": self.coarser,
            "caused_cell": self.caused_cells,
            "size": self.caused_by_size,
            "setting": self.settings,
        }
        rows: list[tuple[Any, ...]]
        rows = [("table", 1, None, None, statistic, float(value)) for statistic, value in self._totals.items()]
        for part, entries in parts.items():
            for number, entry in enumerate(entries, start=1):
                fields = vars(entry)
                label = _join(entry.key) if "key" in fields else fields.get("label", fields.get("how"))
                rows += [
                    (part, number, fields.get("quasi_identifier"), label, statistic, float(value))
                    for statistic, value in fields.items()
                    if isinstance(value, int | float)
                ]
        return pd.DataFrame(rows, columns=["part", "row", "quasi_identifier", "label", "statistic", "value"])

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk explain --json`` prints."""
        return {
            "sensitive": self.sensitive,
            "mechanism": None if self.mechanism is None else self.mechanism.to_dict(),
            **({} if self.perturbation is None else {"perturbation": self.perturbation.to_dict()}),
            **({} if self.steps is None else {"steps": asdict(self.steps)}),
            "form": self.form,
            "weights": self.weights,
            "table": self._totals,
            "riskiest": [asdict(cell) for cell in self.riskiest],
            "by_level": [asdict(level) for level in self.by_level],
            "without": [asdict(removal) for removal in self.without],
            "most_raising": self.most_raising,
            "coarser": [asdict(coarsening) for coarsening in self.coarser],
            "caused_cells": [asdict(cell) for cell in self.caused_cells],
            "caused_by_size": [asdict(size) for size in self.caused_by_size],
            "settings": [asdict(setting) for setting in self.settings],
            "headline": self.headline,
        }

    def _paragraphs(self) -> list[str]:
        about = (
            f"{self.sensitive}: {number_of(self.records, 'record')} in {number_of(self.cells, 'cell')}; "
            f"{self._describe_method()}\n"
            f"local risk, {self.form}, weights {self.weights}: {percent(self.baseline)}; people exposed on average: "
            f"{self.people:,.1f}, of them only because of their own record: {self.caused:,.1f}; exposed by the raw "
            f"table: {percent(self.raw_share)}"
        )
        tables = [
            _show_cells("Riskiest cells", self.riskiest, "risk", (percent(cell.risk) for cell in self.riskiest)),
            _show_levels(self.by_level),
            _show_removals(self.without),
        ]
        if self.coarser:
            tables.append(_show_coarsenings(self.coarser))
        tables += [_show_sizes(self.caused_by_size), _show_caused_levels(self.by_level)]
        if self.caused_cells:
            amounts = (f"{cell.caused:.3f}" for cell in self.caused_cells)
            title = "Cells with most people exposed only because of their own record"
            tables.append(_show_cells(title, self.caused_cells, "caused", amounts))
        if self.mechanism is not None:
            tables.append(_show_settings(self.mechanism, self.caused, self.people, self.settings))
        if self.steps is not None:
            tables.insert(0, _show_steps(self.steps))
        return [about, *tables, f"{CURATOR_NOTE}\n{KEYS_NOTE}"]

    def _describe_method(self) -> str:
        """How the table would be published."""
        if self.perturbation is not None:
            return self.perturbation.describe()
        made = self._made
        suppressed = "" if made.threshold == 0.5 else f", counts below {made.threshold:g} suppressed"
        return f"{made.name}, noise scale {made.scale:.4g}{suppressed}"

    @property
    def _made(self) -> Mechanism:
        """The mechanism, where it is one."""
        if self.mechanism is None:
            raise InvalidInput("a perturbation has no epsilon")
        return self.mechanism

    @property
    def _totals(self) -> dict[str, float]:
        return {
            "records": self.records,
            "cells": self.cells,
            "risk": self.baseline,
            "people": self.people,
            "caused": self.caused,
            "raw_share": self.raw_share,
        }

    @property
    def _best_removal(self) -> Removal | None:
        best = min(self.without, key=lambda removal: removal.change)
        return best if best.change < 0 else None

    def _say_who(self) -> str:
        at = f"At {self._made.guarantee}" if self.perturbation is None else f"With {self.perturbation.name}"
        held, exposed = sum(cell.records for cell in self.riskiest), sum(cell.people for cell in self.riskiest)
        many = len(self.riskiest)
        which = f"the {many:,} riskiest cells hold" if many > 1 else "the riskiest cell holds"
        return (
            f"{at}, {which} {number_of(held, 'person')}; "
            f"{exposed:,.{0 if exposed >= 10 else 1}f} of them would be exposed on average."
        )

    def _say_caused(self) -> str:
        """How many are given away because of their own record, and how many there would be after two changes."""
        people = make_sentence(of_people(abs(self.caused), self.records), "")
        if self.caused <= -HARDLY:  # a perturbation that hides people behind each other
            return f"{people} more would be exposed without their own record."
        told = f"{people} would be exposed only because of their own record"
        halved = [setting for setting in self.settings if setting.epsilon < self._made.epsilon][:1]
        after = [f"{about_people(setting.caused)} at half the epsilon" for setting in halved]
        merged = min(self.coarser, key=lambda coarsening: coarsening.caused, default=None)
        if merged is not None and merged.caused < self.caused:
            after.append(f"{about_people(merged.caused)} after {merged.describe_with_name()}")
        return f"{told}; it would be {', and '.join(after)}." if after else f"{told}."

    def _say_what_helps(self) -> str:
        best = self._best_removal
        if best is None:
            return f"Dropping any one quasi-identifier would not lower the risk of {percent(self.baseline)}."
        name = best.quasi_identifier
        change = f"Dropping '{name}' would lower the risk most, from {percent(self.baseline)} to {percent(best.risk)}"
        ways = [coarsening for coarsening in self.coarser if coarsening.quasi_identifier == name]
        ways.sort(key=lambda coarsening: coarsening.how != AS_GIVEN)
        return f"{change}; {ways[0].describe()} would give {percent(ways[0].risk)}." if ways else f"{change}."


def explain(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    perturbation: str | Perturbation | None = None,
    sensitive: str | None = None,
    form: Form = "tight",
    weights: Weights = "records",
    top: int = 20,
    merge: Mapping[str, Groups] | None = None,
) -> Explanation:
    """Who is at risk if this table is published through this mechanism, and what would help?

    The risk is the local one, exact for this very table: sum over labels k present of s(n_k) prod_{j != k} q(n_j), in
    the ``form`` and with the ``weights`` of `assess`. It is told for the ``top`` riskiest cells, for the people who
    share a value, for the table without each quasi-identifier, and with coarser ones. Beside it stand the people given
    away only because of their own record (caused): in which cells they are, and how many there would be after each of
    these changes, with a smaller epsilon, and with small counts suppressed.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.
    perturbation
        In the place of a mechanism, as in `assess_perturbation`; one cell is then told step by step.
    sensitive
        Which sensitive attribute; may be left out where the table has one.
    form, weights
        As in `assess`.
    top
        How many of the riskiest cells are told.
    merge
        A further way to make values one: {"quasi-identifier": {"new value": ["old value", "old value"]}}.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "education", "sex"], "income", bins={"age": 5})
    >>> found = explain(table, cr.Laplace(epsilon=1.0))
    >>> found.most_raising, round(found.baseline, 6)
    ('age', 0.075976)
    """
    require_table(table)
    beside = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "threshold": threshold}
    made = read_method(mechanism, perturbation, beside)
    perturbed = made if isinstance(made, Perturbation) else None
    require_word("form", form, FORMS)
    require_word("weights", weights, WEIGHTS)
    top = require_whole_number("top", top, 1)
    chosen = {} if merge is None else merge
    _check_merge(chosen)
    cells = table.cells(sensitive)
    if perturbed is not None:
        perturbed.check_reach(int(cells.count.max()))
    channel = made.channel
    remedies = Remedies(cells, channel, form, weights)
    given = [remedies.merge(name, groups) for name, groups in chosen.items()]
    coarser: list[Coarsening] = []
    for name in cells.names:
        coarser += remedies.coarsen(name)
        coarser += [coarsening for coarsening in given if coarsening.quasi_identifier == name]
    risks = CellRisks(cells, channel, form)
    return Explanation(
        sensitive=cells.sensitive,
        mechanism=None if isinstance(made, Perturbation) else made,
        form=form,
        weights=weights,
        records=int(cells.sizes.sum()),
        cells=cells.n_cells,
        baseline=remedies.baseline,
        people=float(risks.people.sum()),
        raw_share=float(risks.exposed.sum() / cells.sizes.sum()),
        riskiest=tuple(risks.riskiest(top)),
        by_level=tuple(risks.by_level(weights)),
        without=tuple(remedies.drop(name) for name in cells.names),
        coarser=tuple(coarser),
        caused=remedies.caused,
        caused_cells=tuple(risks.most_caused(top)),
        caused_by_size=tuple(risks.caused_by_size()),
        settings=() if isinstance(made, Perturbation) else tuple(try_settings(cells.profiles(), made)),
        perturbation=perturbed,
        steps=None if perturbed is None else risks.walk_through(perturbed),
    )


def _check_merge(merge: Any) -> None:
    """Refuses what is no mapping of mappings of lists, or has a new value that is no text."""
    if not isinstance(merge, Mapping) or not all(map(_are_groups, merge.values())):
        raise InvalidInput(
            "merge must say which values of a quasi-identifier become one",
            got=f"a {type(merge).__name__}",
            allowed='{"quasi-identifier": {"new value": ["old value", "old value"]}}',
        )


def _are_groups(given: object) -> bool:
    return isinstance(given, Mapping) and all(
        isinstance(new, str) and isinstance(old, Sequence) and not isinstance(old, str) for new, old in given.items()
    )


def _join(key: Mapping[str, str]) -> str:
    return "; ".join(f"{name}={label}" for name, label in key.items())


def _points(change: float) -> str:
    """A change of a share in percentage points, with its sign."""
    text = f"{100 * change:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def _show_cells(title: str, cells: Sequence[RiskyCell | CausedCell], column: str, amounts: Iterable[str]) -> str:
    """Cells with their keys, and in one column what they are listed for."""
    names = list(cells[0].key)
    rows = [
        [*cell.key.values(), f"{cell.records:,}", f"{cell.levels:,}", amount, f"{cell.people:,.1f}"]
        for cell, amount in zip(cells, amounts, strict=True)
    ]
    return f"{title}\n{aligned([*names, 'records', 'levels', column, 'people exposed'], rows, left=len(names))}"


def _show_steps(steps: CellSteps) -> str:
    """One cell: what each of its counts may be published as, and what follows."""
    rows = [
        [
            step.label,
            f"{step.count:,}",
            ", ".join(f"{value:,}: {percent(chance)}" for value, chance in step.published[:VALUES_PRINTED])
            + (", ..." if len(step.published) > VALUES_PRINTED else ""),
            percent(step.vanishes),
            percent(step.alone),
            f"{step.people:,.2f}",
            percent(step.alone_without),
        ]
        for step in steps.labels
    ]
    header = ["value", "count", "published as", "vanishes", "shown alone", "people", "with one record less"]
    return (
        f"One cell step by step, that with most people given away because of their own record: {_join(steps.key)}\n"
        "A value is shown alone where its own count does not vanish, and all others do: the product of these chances\n"
        f"{aligned(header, rows, left=1)}"
    )


def _show_levels(levels: Sequence[LevelRisk]) -> str:
    shown = sorted(levels, key=lambda level: (-level.risk, -level.people))[:LEVELS_PRINTED]
    rows = [
        [
            level.quasi_identifier,
            level.label,
            f"{level.cells:,}",
            f"{level.records:,}",
            percent(level.risk),
            f"{level.people:,.1f}",
            percent(level.raw_share),
        ]
        for level in shown
    ]
    header = ["quasi-identifier", "value", "cells", "records", "risk", "people exposed", "raw"]
    return f"Riskiest values, {len(shown):,} of {len(levels):,}\n{aligned(header, rows, left=2)}"


def _show_removals(removals: Sequence[Removal]) -> str:
    rows = [
        [
            removal.quasi_identifier,
            f"{removal.cells:,}",
            percent(removal.risk),
            _points(removal.change),
            f"{removal.caused:,.1f}",
        ]
        for removal in removals
    ]
    header = ["without", "cells", "risk", "change (points)", "caused"]
    return f"Without a quasi-identifier\n{aligned(header, rows)}"


def _show_coarsenings(coarsenings: Sequence[Coarsening]) -> str:
    rows = [
        [
            coarsening.quasi_identifier,
            coarsening.how,
            f"{coarsening.labels:,} of {coarsening.labels_before:,}",
            f"{coarsening.cells:,}",
            percent(coarsening.risk),
            _points(coarsening.change),
            f"{coarsening.caused:,.1f}",
        ]
        for coarsening in coarsenings
    ]
    header = ["quasi-identifier", "merged", "values", "cells", "risk", "change (points)", "caused"]
    return f"With coarser quasi-identifiers\n{aligned(header, rows, left=2)}"


def _show_sizes(sizes: Sequence[CausedBySize]) -> str:
    rows = [
        [each.size, f"{each.cells:,}", f"{each.records:,}", f"{each.caused:,.1f}", f"{each.people:,.1f}"]
        for each in sizes
    ]
    table = aligned(["records in the cell", "cells", "records", "caused", "people exposed"], rows)
    return f"Who is exposed only because of their own record (caused), by the size of their cell\n{table}"


def _show_caused_levels(levels: Sequence[LevelRisk]) -> str:
    shown = sorted(levels, key=lambda level: (-level.caused, level.records))[:LEVELS_PRINTED]
    rows = [
        [
            level.quasi_identifier,
            level.label,
            f"{level.records:,}",
            f"{level.caused:,.1f}",
            percent(level.caused / level.records),
        ]
        for level in shown
    ]
    header = ["quasi-identifier", "value", "records", "caused", "share"]
    title = "Values with most people exposed only because of their own record"
    return f"{title}, {len(shown):,} of {len(levels):,}\n{aligned(header, rows, left=2)}"


def _show_settings(mechanism: Mechanism, caused: float, people: float, settings: Sequence[OtherSetting]) -> str:
    as_it_is = OtherSetting(mechanism.epsilon, mechanism.threshold, caused, people)
    rows = [
        [f"{each.epsilon:g}", f"{each.threshold:g}", f"{each.caused:,.1f}", f"{each.people:,.1f}"]
        for each in (as_it_is, *settings)
    ]
    return f"With another setting\n{aligned(['epsilon', 'threshold', 'caused', 'people exposed'], rows, left=0)}"

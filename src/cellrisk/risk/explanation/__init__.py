"""`explain`: who is at risk in a table at one setting of a mechanism, and what would help."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.counts.table import require_table
from cellrisk.errors import InvalidInput
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism, read_method
from cellrisk.noise.perturbations import Perturbation
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, CountPrior
from cellrisk.risk.explanation.remedies import Change, Groups, Outcome, Remedies
from cellrisk.risk.explanation.risky_cells import CellRisks, LevelRisk, RiskyCell, attack_cells
from cellrisk.risk.measures import FORMS, WEIGHTS
from cellrisk.system.checks import require_whole_number
from cellrisk.system.choices import Form, MechanismName, Neighbours, Weights, require_word
from cellrisk.system.results import Result

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

PARTS = ("riskiest", "by_level", "without", "coarser", "caused_cells", "settings")


@dataclass(frozen=True, repr=False)
class Explanation(Result):
    """The answer of `explain`. Prints as a headline and tables."""

    wording = "explanation"

    sensitive: str
    method: Mechanism | Perturbation
    form: str
    weights: str
    records: int
    now: Outcome
    """What is revealed in the table as it is."""
    raw_share: float
    """The share of people whose value is revealed without noise."""
    riskiest: tuple[RiskyCell, ...]
    """The cells by risk, then by records, both descending, then in the order of their keys."""
    by_level: tuple[LevelRisk, ...]
    """Each value that occurs, in the order of the quasi-identifiers and of their values."""
    without: tuple[Change, ...]
    coarser: tuple[Change, ...]
    caused_cells: tuple[RiskyCell, ...] = ()
    """The cells with most people revealed because of their own record first; of two with as many, the smaller."""
    settings: tuple[Change, ...] = ()
    """With a smaller epsilon, and with small counts suppressed."""

    @property
    def what_would_help(self) -> tuple[Change, ...]:
        """Every change that was tried, by the share of a category revealed because of their own record, ascending.

        Of tables that are too large for that, by the people whom homogeneity so reveals.
        """
        changes = (*self.without, *self.coarser, *self.settings)
        return tuple(sorted(changes, key=lambda way: way.caused if way.largest_own is None else way.largest_own))

    @property
    def most_raising(self) -> str | None:
        """The quasi-identifier whose removal lowers the risk most; None if none does."""
        best = min(self.without, key=lambda removal: removal.change)
        return best.quasi_identifier if best.change < 0 else None

    def _numbers(self) -> list[dict[str, Any]]:
        """One row for each number: ``row`` numbers the things in a part, ``label`` is a key, a value, or a way of
        merging."""
        rows = []
        for part, entries in {"table": (self.now,), **{part: getattr(self, part) for part in PARTS}}.items():
            for number, entry in enumerate(entries, start=1):
                fields = vars(entry)
                label = fields.get("label", fields.get("how"))
                if "key" in fields:
                    label = "; ".join(f"{name}={value}" for name, value in entry.key.items())
                start = {"part": part, "row": number, "quasi_identifier": fields.get("quasi_identifier")}
                rows += [
                    {**start, "label": label, "statistic": statistic, "value": float(value)}
                    for statistic, value in fields.items()
                    if isinstance(value, int | float)
                ]
        return rows

    def to_dict(self) -> dict[str, Any]:
        """What ``cellrisk explain --json`` prints."""
        kind = "perturbation" if isinstance(self.method, Perturbation) else "mechanism"
        return {
            "sensitive": self.sensitive,
            kind: self.method.to_dict(),
            "form": self.form,
            "weights": self.weights,
            "table": {"records": self.records, "raw_share": self.raw_share, **asdict(self.now)},
            **{part: [asdict(entry) for entry in getattr(self, part)] for part in PARTS},
            "what_would_help": [asdict(way) for way in self.what_would_help],
            "most_raising": self.most_raising,
            "headline": self.headline,
        }


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
    certainty: float = USUAL_CERTAINTY,
    belief: str | CountPrior = USUAL_BELIEF,
    harmful: str | Sequence[str] | None = None,
    unions: str | Sequence[str | Sequence[str]] | None = None,
) -> Explanation:
    """Return who is at risk if this table is published through this mechanism, and what would help.

    The risk is the local one, exact for this table: sum over labels k present of s(n_k) prod_{j != k} q(n_j), in the
    ``form`` and with the ``weights`` of `assess`. It is given for the ``top`` riskiest cells, for the people who share
    a value, for the table without each quasi-identifier, and with coarser ones. Beside it are the people revealed
    because of their own record (caused): in which cells they are, and how many there would be after each of these
    changes, with a smaller epsilon, and with small counts suppressed.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism
        An object, such as `Geometric`, or its name, with ``epsilon`` beside it.
    epsilon, delta, neighbours, threshold
        Those of a mechanism that is named.
    perturbation
        Instead of a mechanism, as in `assess_perturbation`.
    sensitive
        Which sensitive attribute; may be left out if the table has one.
    form, weights
        As in `assess`.
    top
        How many of the riskiest cells are listed.
    merge
        A further way to make values one: {"quasi-identifier": {"new value": ["old value", "old value"]}}.
    certainty, belief, harmful, unions
        Those of the informed attacker, as in `assess`.

    >>> import cellrisk as cr
    >>> table = cr.tabulate(cr.datasets.adult_as_published(), ["age", "education", "sex"], "income", bins={"age": 5})
    >>> found = explain(table, cr.Laplace(epsilon=1.0))
    >>> found.most_raising, round(found.now.risk, 6)
    ('age', 0.075976)
    """
    require_table(table, single="explanations")
    beside = {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "threshold": threshold}
    method = read_method(mechanism, perturbation, beside)
    method = method if isinstance(method, Perturbation) else method.with_unit(table.unit)
    require_word("form", form, FORMS)
    require_word("weights", weights, WEIGHTS)
    top = require_whole_number("top", top, 1)
    merge = {} if merge is None else merge
    groups = merge.values() if isinstance(merge, Mapping) else [None]
    named = [named for group in groups for named in (group.items() if isinstance(group, Mapping) else [(None, None)])]
    if not all(isinstance(new, str) and isinstance(old, Sequence) and not isinstance(old, str) for new, old in named):
        allowed = '{"quasi-identifier": {"new value": ["old value", "old value"]}}'
        what, got = "must say which values of a quasi-identifier become one", f"a {type(merge).__name__}"
        raise InvalidInput(what, option="merge", got=got, allowed=allowed, code="merge")
    cells = table.cells(sensitive)
    if isinstance(method, Perturbation):
        method.check_reach(int(cells.count.max()))
    attacker = Attacker.of(certainty, belief, harmful, unions)
    attacker.check([table.attribute(cells.sensitive)])
    remedies = Remedies(cells, method.channel, form, weights, attacker)
    for name in merge:
        cells.place(name)  # refuses unknown names
    coarser = [change for name in cells.names for change in remedies.coarsen(name, merge.get(name))]
    risks, attacked = CellRisks(cells, method.channel, form), attack_cells(cells, method.channel, attacker)
    return Explanation(
        sensitive=cells.sensitive,
        method=method,
        form=form,
        weights=weights,
        records=int(cells.sizes.sum()),
        now=remedies.now,
        raw_share=table.attribute(sensitive).exposed_share,
        riskiest=tuple(risks.riskiest(top)),
        by_level=tuple(risks.by_level(weights, attacked)),
        without=tuple(remedies.drop(name) for name in cells.names),
        coarser=tuple(coarser),
        caused_cells=tuple(risks.most_caused(top)),
        settings=() if isinstance(method, Perturbation) else tuple(remedies.try_settings(method)),
    )

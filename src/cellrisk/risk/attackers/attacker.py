"""The attackers: how sure the informed one must be, what it believes, and which values count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from cellrisk.errors import InvalidInput
from cellrisk.noise.channel import CountChannel
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.attackers.figures import AttackTable
from cellrisk.risk.ceilings import total_variation
from cellrisk.risk.certainty import (
    USUAL_BELIEF,
    USUAL_CERTAINTY,
    CountPrior,
    read_belief,
    read_certainties,
    why_unknown,
)
from cellrisk.risk.certainty.count_priors import NegativeBinomial
from cellrisk.system.checks import read_list, read_texts

if TYPE_CHECKING:
    from cellrisk.counts.table import Attribute

UNKNOWN = {"fix": "write the values as they are in the data", "code": "unknown-value"}


@dataclass(frozen=True)
class Attacker:
    """The informed attacker: which certainties count, the prior, and the values that somebody named.

    An attribute that has none of the named values is assessed as usual.

    >>> attacker = Attacker.of(0.95, "negbin", "ill", ["ill+dead", ("well", "ill")])
    >>> attacker.find_named(["dead", "ill", "well"])
    ((1,), ((0, 1), (1, 2)))
    """

    certainties: tuple[float, ...] = (USUAL_CERTAINTY,)
    belief: str | CountPrior | Mapping[str, str | CountPrior] = USUAL_BELIEF
    """One belief, or one for each sensitive attribute by name."""
    harmful: tuple[str, ...] = ()
    """Values of which it counts whether they are learnt; empty for all."""
    unions: tuple[str | tuple[str, ...], ...] = ()
    """Sets of values that are also assessed as one: a tuple of values, or a text with + between them."""

    @staticmethod
    def of(
        certainty: float | Sequence[float] = USUAL_CERTAINTY,
        belief: Any = USUAL_BELIEF,
        harmful: str | Sequence[str] | None = None,
        unions: str | Sequence[str | Sequence[str]] | None = None,
    ) -> Attacker:
        """Read certainties and values as a user gives them: one, or a list."""
        listed = [harmful] if isinstance(harmful, str) else harmful or ()
        sets = [unions] if isinstance(unions, str) else read_list("unions", unions or (), "values")
        read = (text if isinstance(text, str) else read_texts("unions", text, "values") for text in sets)
        return Attacker(read_certainties(certainty), belief, read_texts("harmful", listed, "values"), tuple(read))

    def to_dict(self) -> dict[str, Any]:
        """Return what a limit on what is learnt depends on, in JSON."""
        words: dict[str, Any] = {"certainty": self.certainties[-1], "belief": self.belief}
        named = {"harmful": list(self.harmful), "unions": list(self.unions)}
        return {**words, **{name: values for name, values in named.items() if values}}

    def find_named(self, labels: Sequence[str]) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        """Return the places of the harmful values among these, and of the values of each union that is of these."""
        harmful = tuple(k for k, label in enumerate(labels) if label in self.harmful)
        return harmful, tuple(places for union in self.unions if (places := _find_union(labels, union)))

    def check(self, attributes: Sequence[Attribute]) -> None:
        """Refuse values that no attribute has, unions of one value or of all, and beliefs that do not fit."""
        known = [attribute.levels.labels for attribute in attributes]
        for name in self.harmful:
            if not any(name in labels for labels in known):
                raise InvalidInput("must be values of a sensitive attribute", option="harmful", got=name, **UNKNOWN)
        for union in self.unions:
            if not any(_find_union(labels, union) for labels in known):
                what = "must be two or more values of a sensitive attribute, and not all of them"
                got = union if isinstance(union, str) else "+".join(union)
                raise InvalidInput(what, option="unions", got=got, **UNKNOWN)
        for attribute in attributes:
            if why_unknown(attribute) is None and self.belief != USUAL_BELIEF:
                self.believe(attribute)

    def believe(self, attribute: Attribute) -> CountPrior:
        """Return the prior for one sensitive attribute."""
        given = self.belief.get(attribute.name, USUAL_BELIEF) if isinstance(self.belief, Mapping) else self.belief
        return read_belief(given, attribute.levels, attribute.profiles.n_cells)

    def tables(self, attribute: Attribute, channel: CountChannel | None) -> tuple[AttackTable, ...]:
        """Return the table of attacks for each certainty; none if the categories of the groups are not kept."""
        if attribute.vectors is None or (attribute.several and attribute.people is None):
            return ()
        believed, (harmful, unions) = self.believe(attribute), self.find_named(attribute.levels.labels)
        prior = believed if isinstance(believed, NegativeBinomial) else None
        how = {"channel": channel, "prior": prior, "harmful": harmful, "unions": unions if prior else ()}
        if attribute.people is not None:
            from cellrisk.risk.attackers.persons import PersonTable

            make: Any = partial(PersonTable.of, attribute.people)
        else:
            make = partial(AttackTable, attribute.vectors)
        return tuple(make(certainty=tau, **how) for tau in self.certainties)


def _find_union(labels: Sequence[str], union: str | tuple[str, ...]) -> tuple[int, ...]:
    """Return the places of the values of a union; none if these labels do not have them, or have no others."""
    values = _split(labels, union) if isinstance(union, str) else list(union)
    places = sorted({labels.index(value) for value in values if value in labels})
    return tuple(places) if values and set(values) <= {*labels} and 1 < len(places) < len(labels) else ()


def _split(labels: Sequence[str], text: str) -> list[str]:
    """Split a text into labels, which may have a + in them, with + between them; empty if it is not made of them.

    >>> _split(["c", "c++", "java"], "c+++java")
    ['c++', 'java']
    """
    if text in labels:
        return [text]
    for label in labels:
        rest = _split(labels, text[len(label) + 1 :]) if text.startswith(f"{label}+") else []
        if rest:
            return [label, *rest]
    return []


@dataclass(frozen=True, eq=False)
class SettingFigures:
    """What the attacks on one sensitive attribute reveal at one setting, in a few numbers of expected people."""

    mechanism: Mechanism | None
    """None if the table is published without noise."""
    table: AttackTable

    @property
    def people(self) -> int:
        return self.table.n_people

    @property
    def own(self) -> float:
        """People revealed because of their own record, by the attack that reveals most of them."""
        return max(self.table.figures(name).own for name in self.table.names)

    @property
    def most(self) -> float | None:
        """The largest probability that one person's own record adds, of all attacks; None without noise."""
        return None if self.mechanism is None else max(self.table.figures(name).most for name in self.table.names)

    @property
    def advantage(self) -> float:
        """What one person's own record adds to any attack at most, as a probability."""
        return 1.0 if self.mechanism is None else total_variation(self.mechanism)

    @property
    def inferred(self) -> float | None:
        """People whose category the informed attacker infers; None without a prior."""
        return None if self.table.prior is None else self.table.figures("informed").revealed

    @property
    def learnt(self) -> list[float]:
        """People whose harmful values are learnt, if any are named; then of each union, those of whom it is learnt."""
        named = [*([()] if self.table.harmful else []), *self.table.unions] if self.table.prior else []
        return [self.table.figures("informed", union).learnt or 0.0 for union in named]


def find_setting_figures(
    attribute: Attribute, attacker: Attacker, mechanisms: Iterable[Mechanism]
) -> tuple[SettingFigures, ...]:
    """Return the figures at each setting and, last, without noise; none if the groups' categories are not kept."""
    rows: list[SettingFigures] = []
    for table in attacker.tables(attribute, None)[-1:]:
        for mechanism in chain(mechanisms, (None,)):
            rows.append(SettingFigures(mechanism, table if mechanism is None else table.under(mechanism.channel)))
            _ = rows[-1].own  # computed here, while mechanisms are drawn from a generator that reports progress
    return tuple(rows)

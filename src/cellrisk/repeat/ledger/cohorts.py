"""Cohorts: what each person has lost so far, and the limits that the next release must keep.

A person of a cohort is covered by the releases about it and about every cohort that contains it. Cohorts of which none
is part of the other share nobody, so their losses do not add up (parallel composition).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cellrisk.errors import InvalidInput, UnknownName, argument
from cellrisk.repeat.accounting.ceilings import find_ceiling
from cellrisk.repeat.accounting.composition import Composition, compose
from cellrisk.repeat.accounting.loss import Loss, require_alike
from cellrisk.repeat.ledger.entry import Cohort, Entry, Limit, Problem, check_cohort, fold
from cellrisk.risk.ceilings import Ceiling
from cellrisk.system.choices import CompositionMethod
from cellrisk.system.formatting import claim, number_of
from cellrisk.system.results import find_words

MOST_LISTED = 20


@dataclass(frozen=True)
class LedgerState:
    """The state of a ledger at one moment."""

    entries: tuple[Entry, ...]

    def __post_init__(self) -> None:
        """Refuse cohorts that were not declared in order: following them could lead in a circle."""
        for problem in find_undeclared(self.entries):
            raise InvalidInput(
                f"the ledger is damaged: entry {problem.entry} {problem.text}", fix="ledger verify shows more"
            )

    @cached_property
    def declared(self) -> dict[str, str | None]:
        """The cohorts, and what each is part of."""
        return {entry.cohort: entry.part_of for entry in self.entries if entry.kind == "cohort"}

    @cached_property
    def limits(self) -> dict[str, Limit]:
        """The limit of each cohort that has one: the last that was set."""
        return {entry.cohort: entry.limit for entry in self.entries if entry.limit is not None}

    def choose_cohort(self, named: str | None, new: bool = False) -> str:
        """The cohort that is named; if none is, the only one, or ``everyone`` if there is none."""
        if named is not None:
            return named
        known = list(self.declared)
        if len(known) > 1 or (new and known):
            raise InvalidInput(
                "no cohort was named", allowed=", ".join(known), fix=f"name it: {argument('cohort', known[0])}"
            )
        return known[0] if known else "everyone"

    def require(self, cohort: str) -> str:
        """Refuse a cohort that is not declared, and name those that are."""
        name = check_cohort(cohort)
        if name in self.declared:
            return name
        known = list(self.declared)
        near = [other for other in known if fold(other) == fold(name)] or difflib.get_close_matches(name, known)
        more = f" and {len(known) - MOST_LISTED:,} more" if len(known) > MOST_LISTED else ""
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise UnknownName(
            f"the ledger has no cohort '{name}'",
            allowed=", ".join(known[:MOST_LISTED]) + more if known else None,
            fix=f"{hint}{argument('new_cohort', True)} declares it: people that no other cohort covers",
            code="unknown-cohort",
        )

    def find_declaration(self, cohort: str, new: bool, part_of: str | None) -> Cohort | None:
        """The cohort that has to be declared before something is written about it; None if it is known."""
        name = check_cohort(cohort)
        if not new and part_of is not None:
            raise InvalidInput(
                f"{argument('part_of')} needs a new cohort", fix=f"also give {argument('new_cohort', True)}"
            )
        if not new and self.declared:
            self.require(name)
            return None
        for known in self.declared:
            if new and fold(known) == fold(name):
                raise InvalidInput(f"cohort '{known}' is known already", fix=f"leave {argument('new_cohort')} out")
        if part_of is not None:
            self.require(part_of)
        return Cohort(name, part_of)

    def path(self, cohort: str) -> Iterator[str]:
        """A cohort and those that contain it, from the inside out."""
        at: str | None = cohort
        while at is not None:
            yield at
            at = self.declared.get(at)

    def covering(self, cohort: str) -> tuple[Entry, ...]:
        """The entries about a cohort, and about all that contain it."""
        cohorts = set(self.path(self.require(cohort)))
        return tuple(entry for entry in self.entries if entry.cohort in cohorts)

    def losses(self, cohort: str) -> tuple[Loss, ...]:
        """What a person of a cohort has lost, who is in no cohort inside it."""
        return tuple(entry.loss for entry in self.covering(cohort) if entry.loss is not None)

    def cases(self, cohort: str) -> tuple[tuple[Loss, ...], ...]:
        """Return what people of a cohort have lost who are in no cohort inside theirs, each different case once."""
        return tuple(dict.fromkeys(self.losses(name) for name in self.innermost(Cohort(cohort)))) or ((),)

    def ceiling(self, cohort: str, *planned: Loss) -> tuple[Ceiling | None, str]:
        """Return the worst case for one record of a cohort after all its releases, and planned ones: the worst over it
        and the cohorts inside it; or None, and why it is not known."""
        found = [find_ceiling((*losses, *planned)) for losses in self.cases(cohort)]
        return max(found, key=lambda case: math.inf if case[0] is None else case[0].even_two)

    def innermost(self, cohort: Cohort) -> list[str]:
        """Return the cohorts inside one, or itself, that contain no other: their people have lost most. Of a cohort
        that is not declared yet, the one that contains it."""
        if cohort.name not in self.declared:
            return [] if cohort.part_of is None else [cohort.part_of]
        parents = set(self.declared.values())
        return [name for name in self.declared if name not in parents and cohort.name in self.path(name)]

    def spend(
        self, cohort: str, method: CompositionMethod = "tightest", delta: float | None = None, *planned: Loss
    ) -> Composition:
        """Return the most that a person of a cohort has lost, with planned releases: the worst over it and the cohorts
        inside it."""
        cases = (compose((*losses, *planned), method=method, delta=delta) for losses in self.cases(cohort))
        return max(cases, key=lambda composition: (composition.epsilon, composition.delta))

    def spend_by_limit(self, cohort: str) -> Composition | None:
        """Return the most that a person of a cohort has lost, composed as its own limit says; None for losses without
        a sum, such as a rho if no limit has a delta."""
        limit = self.limits.get(cohort)
        with suppress(InvalidInput):
            return self.spend(cohort) if limit is None else self.spend(cohort, limit.method, limit.delta or None)
        return None

    def say_total(self, cohort: Cohort, loss: Loss) -> str | None:
        """Say for the label of a release what it costs a person of its cohort at most, together with the releases that
        the ledger holds now; None if losses have no sum."""
        limit, names = self.limits.get(cohort.name), self.innermost(cohort)
        asked: Any = {} if limit is None else {"method": limit.method, "delta": limit.delta or None}
        cases = [(*self.losses(name), loss) for name in names] or [(loss,)]
        rhos = [Loss.join(losses).total_rho for losses in cases]
        try:
            composed = (compose(losses, **asked) for losses in cases)
            most = max(composed, key=lambda composition: (composition.epsilon, composition.delta))
            at_delta = f" at delta {claim(most.delta)}" if most.delta else ""
            how = f"{most.dp_definition} DP, by {most.chosen.method} composition"
            cost = f"epsilon {claim(most.epsilon)}{at_delta} ({how})"
        except InvalidInput:
            if None in rhos:
                return None
            cost = f"{claim(max(rho for rho in rhos if rho is not None))}-zCDP"
        covering = {entry.number for name in names for entry in self.covering(name) if entry.loss is not None}
        last = (self.entries[-1].number, self.entries[-1].digest) if self.entries else None
        return str(find_words("release").say_total(cost, len(covering), last))

    def admit(self, named: str | None, loss: Loss, new: bool, part_of: str | None) -> Cohort:
        """The cohort that a release is about. Refuse an unknown one, a loss that cannot be added to those of
        its people, and a release past a limit: of its cohort, of one that contains it, or of one inside it."""
        name = self.choose_cohort(named, new)
        cohort = self.find_declaration(name, new, part_of) or Cohort(name, self.declared.get(name))
        names = self.innermost(cohort)
        for name in names:
            require_alike((*self.losses(name), loss))
        limited = ((other, name) for name in names for other in self.path(name) if other in self.limits)
        for other, losses in dict.fromkeys((other, (*self.losses(name), loss)) for other, name in limited):
            _check(losses, self.limits[other], f"the release would exceed the limit of cohort '{other}'")
        return cohort

    def check_limit(self, limit: Limit) -> None:
        """Refuse a limit that is below what is spent, or that what is spent can never keep."""
        for losses in self.cases(limit.cohort):
            _check(losses, limit, f"cohort '{limit.cohort}' has spent more than that limit")


def find_undeclared(entries: Sequence[Entry]) -> Iterator[Problem]:
    """Entries about cohorts that were not declared before them, or that are declared again."""
    declared: set[str | None] = {None}
    for entry in entries:
        if entry.kind == "cohort":
            if entry.part_of not in declared:
                yield Problem(entry.number, "is about a cohort that is part of one never declared")
            if entry.cohort in declared:
                yield Problem(entry.number, "declares a cohort that was declared before it")
            declared.add(entry.cohort)
        elif entry.cohort not in declared:
            yield Problem(entry.number, "is about a cohort that was not declared before it")


def _check(losses: Sequence[Loss], limit: Limit, exceeded: str) -> None:
    weaker = sum(loss.dp_definition != "pure" for loss in losses)
    if weaker and not limit.delta:
        have = "has" if weaker == 1 else "have"
        raise InvalidInput(
            f"the limit of cohort '{limit.cohort}' cannot be kept: {weaker} of {number_of(len(losses), 'release')} "
            f"{have} a delta, and the limit has none",
            fix=f"set a limit with {argument('delta', 1e-6)}",
            code="no-delta",
        )
    if limit.method == "tightest":
        with suppress(InvalidInput, UnknownName):
            if compose(losses, method="basic", delta=limit.delta).epsilon <= limit.epsilon:
                return  # the tightest is not above any other, and this one costs nothing
    try:
        epsilon = compose(losses, method=limit.method, delta=limit.delta).epsilon
    except (InvalidInput, UnknownName) as refusal:
        reason = refusal.message
        raise InvalidInput(f"the limit of cohort '{limit.cohort}' cannot be kept: {reason}") from None
    if epsilon > limit.epsilon:
        raise InvalidInput(exceeded, got=f"epsilon {claim(epsilon)} in all", allowed=limit.describe(), code="limit")

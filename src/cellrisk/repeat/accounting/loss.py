"""`Loss`: what a release costs a person, as a tuple of events, which `compose` and ceilings interpret."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Any

from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.mechanisms import (
    MECHANISMS,
    NEIGHBOURS,
    DiscreteGaussian,
    Mechanism,
    gaussian_log_delta,
    zcdp_log_delta,
)
from cellrisk.noise.mechanisms import mechanism as make_mechanism
from cellrisk.system.checks import is_number, require_kind, require_number, require_whole_number, require_within
from cellrisk.system.choices import Neighbours, require_word
from cellrisk.system.formatting import claim

NOISE = ("laplace", "geometric", "gaussian", "discrete-gaussian")
KINDS = (*NOISE, "pure", "approximate", "zcdp")
MOST_EVENTS = 100_000
DIGITS = 100
STATED = 1e-9
"""By how much, relatively, noise may fall short of the guarantee that an event states: rounding alone."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """Noise on counts that one neighbouring step moves, or a guarantee about which nothing else is known.

    ``number`` counts, each moved by ``sensitivity``, have independent noise of the ``scale``: one for a record that is
    added or removed, two for one that is replaced. ``epsilon`` and ``delta`` are what all of it promises:
    epsilon-DP (``laplace``, ``geometric``, ``pure``) or (epsilon, delta)-DP (``gaussian``, ``discrete-gaussian``,
    ``approximate``); ``zcdp`` has a ``rho`` alone. ``mechanism`` says how the scale was found from them, and
    ``threshold`` below which counts were set to zero; both are no part of the loss.
    """

    kind: str
    epsilon: float | None = None
    delta: float = 0.0
    rho: float | None = None
    scale: float | None = None
    sensitivity: float = 1.0
    number: int = 1
    mechanism: str | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        require_word("kind of event", self.kind, KINDS)
        if self.kind == "zcdp":
            require_within("rho", self.rho, above=0)
            if self.epsilon is not None or self.delta:
                raise InvalidInput("zCDP states a rho alone", fix="leave epsilon and delta out", code="rho-alone")
        else:
            require_within("epsilon", self.epsilon, above=0)
            require_number("delta", self.delta)
            if self.rho is not None:
                raise InvalidInput("only zCDP has a rho", got=self.kind, fix="leave it out", code="no-rho")
            if self.kind in ("laplace", "geometric", "pure"):
                if self.delta != 0:
                    got = f"delta {self.delta}"
                    raise InvalidInput("pure DP has no delta", got=got, fix="leave it out", code="pure-delta")
            elif not 0 < self.delta < 1:
                what = f"{self.kind} needs a delta between 0 and 1, both excluded"
                raise InvalidInput(what, got=self.delta, code="delta-range")
        if self.kind not in NOISE:
            noise = self.scale, self.sensitivity, self.number, self.mechanism, self.threshold
            if noise != (None, 1.0, 1, None, None):
                raise InvalidInput("a guarantee alone has no noise", got=self.kind, code="no-noise")
            return
        require_within("scale", self.scale, above=0)
        require_within("sensitivity", self.sensitivity, above=0)
        require_whole_number("number", self.number, least=1, most=MOST_EVENTS)
        if self.mechanism is not None:
            require_word("mechanism", self.mechanism, tuple(MECHANISMS))
            require_number("threshold", self.threshold)
        epsilon, squares = float(self.epsilon or 0.0), self.number * self.ratio**2
        if self.kind in ("laplace", "geometric"):
            short = self.number * self.ratio > epsilon * (1.0 + STATED)
        elif squares and self.kind == "gaussian":
            short = gaussian_log_delta(1.0 / math.sqrt(squares), epsilon) > math.log(self.delta) + STATED
        else:
            short = squares > 0 and zcdp_log_delta(0.5 * squares, epsilon) > math.log(self.delta) + STATED
        if short:
            raise InvalidInput(
                "the noise of the event does not give the guarantee that it states",
                got=f"{self.kind}, scale {self.scale:g}",
                code="short-noise",
            )

    @staticmethod
    def of(mechanism: Mechanism) -> Event:
        """The event of one table released through a mechanism.

        If people have several records it is the guarantee alone: how they are spread over counts is not known.
        """
        if mechanism.unit.contributions > 1 and isinstance(mechanism, DiscreteGaussian):
            return Event(kind="zcdp", rho=mechanism.rho)
        if mechanism.unit.contributions > 1:
            kind = "pure" if mechanism.pure else "approximate"
            return Event(kind=kind, epsilon=float(mechanism.epsilon), delta=float(mechanism.delta))
        return Event(
            kind="gaussian" if mechanism.name.startswith("gaussian") else mechanism.name,
            epsilon=float(mechanism.epsilon),
            delta=float(mechanism.delta),
            scale=float(mechanism.scale),
            number=int(mechanism.l1),
            mechanism=mechanism.name,
            threshold=float(mechanism.threshold),
        )

    @property
    def ratio(self) -> float:
        """By how much a count moves, in scales of its noise."""
        return self.sensitivity / float(self.scale or math.inf)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values; what is as usual is left out."""
        written = ["kind", "rho"] if self.kind == "zcdp" else ["kind", "epsilon", "delta"]
        written += ["scale", "sensitivity", "number"] if self.kind in NOISE else []
        written += [] if self.mechanism is None else ["mechanism", "threshold"]
        return {name: getattr(self, name) for name in written}

    @staticmethod
    def from_dict(named: Mapping[str, Any]) -> Event:
        """The event that `to_dict` wrote."""
        strange = sorted(set(named) - {field.name for field in fields(Event)})
        if strange:
            raise InvalidInput("an event has no such field", got=repr(strange[0]), code="unknown-field")
        read: dict[str, Any] = {
            name: float(value) if name != "number" and is_number(value) else value for name, value in named.items()
        }
        return Event(**read)


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What a release costs a person at most: the events that one neighbouring step touches.

    One table is one event, a set of tables has one for each. ``Loss.of(mechanism)`` is that of a release; guarantees
    that another tool states are ``Loss.pure``, ``Loss.approximate`` and ``Loss.zcdp``.

    Parameters
    ----------
    events
        At least one.
    neighbours
        "add-remove" or "replace".
    unit
        What one neighbouring step adds, removes or replaces: a record, or a person with several.

    >>> Loss.of(make_mechanism("geometric", epsilon=0.5)).describe(), Loss.approximate(0.5, 1e-6).describe()
    ('0.5-DP', '(0.5, 1e-06)-DP')
    """

    events: tuple[Event, ...]
    neighbours: Neighbours = "add-remove"
    unit: Unit = Unit()  # noqa: RUF009 (it cannot be changed)

    def __post_init__(self) -> None:
        events = tuple(self.events)
        if not events or not all(isinstance(event, Event) for event in events):
            raise InvalidInput("a loss has events", fix="make it with Loss.of(mechanism)", code="no-events")
        require_whole_number("the number of events", len(events), least=1, most=MOST_EVENTS)
        object.__setattr__(self, "events", events)
        require_word("neighbours", self.neighbours, NEIGHBOURS)
        require_kind("unit", self.unit, Unit)

    @staticmethod
    def of(mechanism: Mechanism) -> Loss:
        """The loss of one release through a mechanism."""
        return Loss(events=(Event.of(mechanism),), neighbours=mechanism.neighbours, unit=mechanism.unit)

    @staticmethod
    def pure(epsilon: float, neighbours: Neighbours = "add-remove") -> Loss:
        """epsilon-DP, and nothing else is known.

        Parameters
        ----------
        epsilon
            What is promised.
        neighbours
            "add-remove" or "replace".
        """
        return Loss(events=(Event(kind="pure", epsilon=epsilon),), neighbours=neighbours)

    @staticmethod
    def approximate(epsilon: float, delta: float, neighbours: Neighbours = "add-remove") -> Loss:
        """(epsilon, delta)-DP, and nothing else is known. Probabilistic DP implies it at the same numbers.

        Parameters
        ----------
        epsilon, delta
            What is promised.
        neighbours
            "add-remove" or "replace".
        """
        return Loss(events=(Event(kind="approximate", epsilon=epsilon, delta=delta),), neighbours=neighbours)

    @staticmethod
    def zcdp(rho: float, neighbours: Neighbours = "add-remove") -> Loss:
        """rho-zCDP, and nothing else is known.

        Parameters
        ----------
        rho
            What is promised.
        neighbours
            "add-remove" or "replace".
        """
        return Loss(events=(Event(kind="zcdp", rho=rho),), neighbours=neighbours)

    @staticmethod
    def join(losses: Sequence[Loss]) -> Loss:
        """The loss of a person who is in all of several releases: all their events.

        >>> Loss.join([Loss.pure(0.5), Loss.pure(0.25)]).epsilon
        0.75
        """
        require_alike(losses)
        events = tuple(event for loss in losses for event in loss.events)
        return replace(losses[0], events=events, unit=widest(losses))

    @staticmethod
    def cover(losses: Sequence[Loss]) -> Loss:
        """One loss that is at least each of several, of releases that exclude each other: no person is in two of them.

        Of every kind of event, the largest of each loss are compared, then the next, and so on; the larger is kept.
        Where this states a larger epsilon than any of them, the guarantee alone is kept, as pure DP or zCDP.

        >>> Loss.cover([Loss.pure(0.5), Loss.join([Loss.pure(0.25), Loss.pure(0.25)])]).describe()
        '0.5-DP'
        """
        require_alike(losses)
        ranked: dict[tuple[str, float], list[Event]] = {}
        for loss in losses:
            seen: dict[str, int] = {}
            for event in sorted(loss.events, key=_size, reverse=True):
                rank = seen[event.kind] = seen.get(event.kind, 0) + 1
                ranked.setdefault((event.kind, rank), []).append(event)
        unit = widest(losses)
        covering = replace(losses[0], events=tuple(max(events, key=_size) for events in ranked.values()), unit=unit)
        if covering.dp_definition == "pure":
            most = max(loss.epsilon or 0.0 for loss in losses)
            above = (covering.epsilon or 0.0) > most * (1.0 + STATED)
            return replace(Loss.pure(most, covering.neighbours), unit=unit) if above else covering
        rhos = [loss.total_rho for loss in losses]
        if None in rhos:
            return covering
        most = max(rho for rho in rhos if rho is not None)
        if (covering.total_rho or 0.0) <= most * (1.0 + STATED):
            return covering
        return replace(Loss.zcdp(most, covering.neighbours), unit=unit)

    @property
    def dp_definition(self) -> str:
        """What is promised: "pure" DP, "approximate" DP, or "concentrated" DP where a rho has no epsilon of its own."""
        if any(event.kind == "zcdp" for event in self.events):
            return "concentrated"
        return "approximate" if any(event.delta for event in self.events) else "pure"

    @property
    def epsilon(self) -> float | None:
        """The sum of the events' epsilons; None where one has none."""
        stated = [event.epsilon for event in self.events if event.epsilon is not None]
        return add_up(stated) if len(stated) == len(self.events) else None

    @property
    def delta(self) -> float:
        """The sum of the events' deltas."""
        return add_up([event.delta for event in self.events])

    @property
    def rho(self) -> float | None:
        """What is stated as zCDP; None where an epsilon is."""
        return self.total_rho if self.dp_definition == "concentrated" else None

    @property
    def total_rho(self) -> float | None:
        """The rho of zCDP: the sum over all events; None where one has none (Bun and Steinke 2016)."""
        rhos = [_find_rho(event) for event in self.events]
        return None if None in rhos else math.fsum(rho for rho in rhos if rho is not None)

    @cached_property
    def mechanism(self) -> Mechanism | None:
        """The mechanism of a release of one table, if that is known."""
        event = self.events[0]
        if len(self.events) > 1 or event.mechanism is None:
            return None
        delta = event.delta or None
        asked: dict[str, Any] = {"epsilon": event.epsilon, "delta": delta, "threshold": event.threshold}
        made = make_mechanism(event.mechanism, neighbours=self.neighbours, **asked)  # type: ignore[arg-type]
        return made.with_unit(self.unit)

    def describe(self) -> str:
        """The loss in a few words."""
        rho = self.total_rho
        if self.dp_definition == "pure":
            return f"{claim(self.epsilon or 0.0)}-DP"
        if rho is not None and (self.dp_definition == "concentrated" or len(self.events) > 1):
            return f"{claim(rho)}-zCDP"
        return f"({claim(self.epsilon or 0.0)}, {claim(self.delta)})-DP"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values, from which `from_dict` makes the same loss again."""
        stated = {"dp_definition": self.dp_definition, "epsilon": self.epsilon, "delta": self.delta}
        stated |= {"rho": self.rho} if self.epsilon is None else {}
        events = [event.to_dict() for event in self.events]
        return {**stated, "neighbours": self.neighbours, "unit": self.unit.to_dict(), "events": events}

    @staticmethod
    def from_dict(named: Mapping[str, Any]) -> Loss:
        """The loss that `to_dict` wrote; refuses one whose events do not add up to what it states.

        >>> loss = Loss.of(make_mechanism("laplace", epsilon=0.1))
        >>> Loss.from_dict(loss.to_dict()) == loss
        True
        """
        events = tuple(Event.from_dict(event) for event in named["events"])
        loss = Loss(events=events, neighbours=named["neighbours"], unit=Unit.from_dict(named["unit"]))
        made, stated = loss.mechanism, loss.to_dict()
        if made is not None and not math.isclose(made.scale, float(events[0].scale or 0.0), rel_tol=STATED):
            raise InvalidInput("the scale is not that of the mechanism", got=events[0].mechanism, code="other-scale")
        for name in ("dp_definition", "epsilon", "delta", "rho"):
            value, own = named.get(name), stated.get(name)
            near = is_number(value) and is_number(own) and math.isclose(value, own, rel_tol=STATED)
            if not near and value != own:
                raise InvalidInput("the loss is not that of its events", got=name, code="other-loss")
        return loss


def require_alike(losses: Iterable[Loss]) -> None:
    """Refuse losses that cannot be added up: of other things, of other neighbours, or of another unit."""
    losses = tuple(losses)
    for loss in losses:
        if not isinstance(loss, Loss):
            raise InvalidInput(
                "only losses can be composed", got=type(loss).__name__, fix="make each with Loss.of", code="no-loss"
            )
    replaced = sum(loss.neighbours == "replace" for loss in losses)
    if 0 < replaced < len(losses):
        raise InvalidInput(
            "losses under different neighbours cannot be composed: a replaced record is one removed and one added",
            got=f"{replaced} of {len(losses)} under {argument('neighbours', 'replace')}",
            fix="state all under the same: epsilon-DP under add-remove is (2 epsilon)-DP under replace",
            code="mixed-neighbours",
        )
    if len({loss.unit.kind for loss in losses}) > 1:
        raise InvalidInput(
            "losses of records and of people cannot be composed",
            got=", ".join(sorted({loss.unit.kind for loss in losses})),
            fix="book those of one unit of privacy in a cohort",
            code="mixed-units",
        )


def widest(losses: Sequence[Loss]) -> Unit:
    """The unit of losses that are alike: that of the people with most records."""
    return max((loss.unit for loss in losses), key=lambda unit: unit.contributions)


def add_up(numbers: Sequence[float]) -> float:
    """The sum of numbers as they are written: three times 0.1 is 0.3, so that a limit of 0.3 is kept.

    >>> add_up([0.1, 0.1, 0.1]), 0.1 + 0.1 + 0.1
    (0.3, 0.30000000000000004)
    """
    with localcontext() as context:
        context.prec = DIGITS
        return float(sum((Decimal(repr(float(number))) for number in numbers), Decimal(0)))


def _size(event: Event) -> tuple[float, float]:
    """What orders events of one kind: a larger one has less noise, or promises less."""
    if event.kind in NOISE:
        return event.number * event.ratio**2, float(event.epsilon or 0.0)
    return float(event.rho or event.epsilon or 0.0), event.delta


def _find_rho(event: Event) -> float | None:
    """rho = number (sensitivity/scale)^2/2 for Gaussian noise, and epsilon^2/2 for pure DP on each count."""
    if event.kind == "zcdp":
        return event.rho
    if event.kind == "approximate":
        return None
    return 0.5 * event.number * (event.ratio if event.kind in NOISE else float(event.epsilon or 0.0)) ** 2

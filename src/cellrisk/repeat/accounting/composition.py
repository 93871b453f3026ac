"""What several releases cost together: every way of composing their losses, and the tightest that holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.repeat.accounting.ceilings import find_ceiling
from cellrisk.repeat.accounting.loss import FLAVOURS, Loss
from cellrisk.repeat.accounting.operators import COMPOSERS, OPERATORS, add_up
from cellrisk.repeat.accounting.pieces import GaussianPiece, kind_of
from cellrisk.system.checks import read_list, require_within
from cellrisk.system.results import Result
from cellrisk.system.text import aligned, claim, number_of
from cellrisk.system.words import Flavour, Operator, list_words, require_word

TARGETS: tuple[Flavour, ...] = list_words(Flavour)
TIE = 1e-9
"""Epsilons within this relative distance are the same: one operator's root of another's own formula differs by less."""
STRENGTH = {"pure": 3, "probabilistic": 2, "approximate": 1, "concentrated": 1}
DESCRIBED = {
    "basic": "Basic composition adds up epsilons and deltas.",
    "advanced": "Advanced composition (Kairouz, Oh, Viswanath 2015) bounds the sum of the privacy losses.",
    "zcdp": "Composition by zCDP adds up the rhos of all losses.",
    "rdp": "Composition by Renyi DP adds up the Renyi divergences of all losses.",
    "gaussian": "Gaussian noises compose exactly, to one Gaussian.",
    "pld": "The distributions of the privacy losses are convolved and rounded to the safe side.",
}
NEIGHBOURING = {
    "add-remove": "Tables are neighbours where one record is added or removed: one count changes by 1.",
    "replace": "Tables are neighbours where one record is replaced: two counts change by 1 each.",
}


@dataclass(frozen=True)
class Composed:
    """What one operator says: the releases together are (epsilon, delta)-DP of this flavour, or why it has no say."""

    operator: str
    flavour: str
    epsilon: float | None
    delta: float
    why: str = ""
    """Empty where the operator is valid; else one sentence, and epsilon is None."""


@dataclass(frozen=True, repr=False)
class Composition(Result):
    """The answer of `compose`. Operators are computed when they are looked at, and kept."""

    losses: tuple[Loss, ...]
    flavour: str
    delta: float
    operator: str = "tightest"
    """The one asked for."""
    _known: dict[str, Composed] = field(default_factory=dict, init=False, compare=False)

    @cached_property
    def composed(self) -> tuple[Composed, ...]:
        """Every operator at the same delta, in the order of OPERATORS."""
        return tuple(self._ask(operator) for operator in OPERATORS)

    @cached_property
    def chosen(self) -> Composed:
        """The operator asked for, or the one with the smallest epsilon; of equals, the first."""
        if self.operator != "tightest":
            found = self._ask(self.operator)
            if found.epsilon is None:
                raise InvalidInput(
                    f"{self.operator} composition has no answer for these losses: {found.why}",
                    fix="leave the operator out for the tightest that has one",
                )
            return found
        valid = [(found, found.epsilon) for found in map(self._ask, self._candidates()) if found.epsilon is not None]
        if not valid:
            reasons = "; ".join(f"{found.operator}: {found.why}" for found in self.composed)
            raise InvalidInput(
                f"no operator has an answer for these losses at delta {self.delta:g} ({reasons})",
                fix="give a larger delta, or the mechanisms of those that have none",
            )
        least = min(epsilon for _, epsilon in valid)
        return next(found for found, epsilon in valid if epsilon <= least * (1.0 + TIE))

    def _candidates(self) -> tuple[str, ...]:
        """The operators that can be the tightest: where one is exact, the bounds above it need not be computed."""
        if self.losses and (self.flavour != "approximate" or self._ask("gaussian").epsilon is not None):
            return "basic", "gaussian"
        return OPERATORS

    def _ask(self, operator: str) -> Composed:
        if operator not in self._known:
            answer = COMPOSERS[operator](self.losses, self.flavour, self.delta) if self.losses else 0.0
            epsilon, why = (None, answer) if isinstance(answer, str) else (answer, "")
            self._known[operator] = Composed(operator, self.flavour, epsilon, self.delta, why)
        return self._known[operator]

    @property
    def epsilon(self) -> float:
        """The epsilon of the chosen operator."""
        return self.chosen.epsilon or 0.0

    @property
    def ceiling(self) -> dict[str, Any] | None:
        """The worst case of two equally likely values of a person, after all the releases.

        None where that is not known. An upper bound: a release of another attribute may say nothing of the value.
        """
        found, _ = find_ceiling(self.losses)
        return None if found is None else {"even_two": found.even_two, "sentence": found.of_two}

    @property
    def ceiling_sentence(self) -> str:
        """The ceiling in words, or why it is not known."""
        found, why_not = find_ceiling(self.losses)
        return f"The ceiling is not known: {why_not}." if found is None else found.of_two

    @property
    def headline(self) -> str:
        """What a curator can repeat."""
        if not self.losses:
            return "Nothing is released: epsilon 0."
        at_delta = f" at delta {claim(self.delta)}" if self.delta else ""
        together = "costs" if len(self.losses) == 1 else "together cost"
        releases = number_of(len(self.losses), "release")
        by = f"by {self.chosen.operator} composition"
        return f"{releases} {together} epsilon {claim(self.epsilon)}{at_delta} ({self.flavour} DP, {by})."

    @property
    def statements(self) -> tuple[str, ...]:
        """What was mixed, through what it was turned, and what is assumed."""
        return state(self.losses, self.flavour, self.delta, self.chosen.operator)

    def _numbers(self) -> list[dict[str, Any]]:
        """One row an operator."""
        return [{**vars(found), "chosen": found == self.chosen} for found in self.composed]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "releases": len(self.losses),
            "flavour": self.flavour,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "operator": self.chosen.operator,
            "sentence": self.headline,
            "statements": list(self.statements),
            "operators": [vars(found) for found in self.composed],
            "losses": [loss.to_dict() for loss in self.losses],
        }

    def _paragraphs(self) -> list[str]:
        rows = [
            [
                found.operator,
                "-" if found.epsilon is None else claim(found.epsilon),
                "chosen" if found == self.chosen else found.why,
            ]
            for found in self.composed
        ]
        return [aligned(["operator", "epsilon", ""], rows, left=3), "\n".join(self.statements)]


def compose(
    losses: Sequence[Loss],
    *,
    operator: Operator = "tightest",
    delta: float | None = None,
    flavour: Flavour | None = None,
) -> Composition:
    """What do several releases about the same people cost together?

    Six operators, all at the same total delta: basic and advanced from the epsilons and deltas alone, zcdp, rdp and pld
    from the noise where it is known, gaussian exactly where all noise is Gaussian. All are upper bounds; the tightest
    valid one is chosen unless one is named.

    Parameters
    ----------
    losses
        What each release costs: `Loss`.
    operator
        "tightest", or one of the six.
    delta
        The total delta; default the sum of the losses' deltas.
    flavour
        What is composed to; default the strongest that all losses imply: pure implies probabilistic, which implies
        approximate.

    >>> from cellrisk.noise.mechanisms import mechanism
    >>> spent = [Loss.of(mechanism("laplace", epsilon=0.1))] * 30
    >>> compose(spent).epsilon, round(compose(spent, delta=1e-6).epsilon, 4)
    (3.0, 2.2978)
    """
    require_word("operator", operator, list_words(Operator))
    if flavour is not None:
        require_word("flavour to compose to", flavour, TARGETS)
    losses = tuple(read_list("losses", losses, "losses"))
    _require_losses(losses)
    if delta is not None:
        require_within("delta", delta, least=0, below=1)
    if not losses:
        return Composition(losses, flavour or "pure", 0.0, operator)
    chosen = flavour or _strongest(losses, delta)
    _require_implied(losses, chosen)
    composition = Composition(losses, chosen, _total_delta(losses, chosen, delta), operator)
    composition.chosen  # noqa: B018  (a refusal is raised here, not when the answer is first looked at)
    return composition


def _strongest(losses: Sequence[Loss], delta: float | None) -> str:
    """The strongest flavour that all losses imply and that can be given at this delta."""
    flavours = {loss.flavour for loss in losses}
    if flavours == {"pure"}:
        return "approximate" if delta else "pure"
    if not flavours <= {"pure", "probabilistic"}:
        return "approximate"
    enough = delta is None or delta >= add_up([loss.delta for loss in losses])
    gaussian = all(kind_of(loss) is GaussianPiece for loss in losses)
    return "probabilistic" if enough or gaussian else "approximate"


def _total_delta(losses: Sequence[Loss], flavour: str, delta: float | None) -> float:
    if not delta and any(loss.flavour == "concentrated" for loss in losses):
        raise InvalidInput(
            "concentrated losses compose to an epsilon at a delta, and have none of their own",
            got=delta,
            fix="give a delta above 0, such as 1 / number of records",
        )
    if flavour == "pure" and delta:
        raise InvalidInput(
            "pure DP has no delta", got=f"delta {delta}", fix="leave the delta out, or ask for approximate DP"
        )
    total = add_up([loss.delta for loss in losses]) if delta is None else float(delta)
    if total >= 1:
        raise InvalidInput(
            "the deltas of the losses add up to 1 or more, where nothing is promised",
            got=f"{total:g}",
            fix="give a smaller delta; where the mechanisms are known, losses compose at any delta",
        )
    return total


def _require_losses(losses: Sequence[Loss]) -> None:
    for loss in losses:
        if not isinstance(loss, Loss):
            raise InvalidInput("only losses can be composed", got=type(loss).__name__, fix="make each with Loss")
    replaced = sum(loss.neighbours == "replace" for loss in losses)
    if 0 < replaced < len(losses):
        raise InvalidInput(
            "losses under different neighbours cannot be composed: a replaced record is one removed and one added",
            got=f"{replaced} of {len(losses)} under replace, the others under add-remove",
            fix="state all under the same: epsilon-DP under add-remove is (2 epsilon)-DP under replace",
        )


def _require_implied(losses: Sequence[Loss], flavour: str) -> None:
    """Weaker guarantees are not passed off as stronger ones."""
    weaker = [loss.flavour for loss in losses if not implies(loss.flavour, flavour)]
    if weaker:
        named = " or ".join(sorted(set(weaker)))
        are = "is" if len(weaker) == 1 else "are"
        raise InvalidInput(
            f"{len(weaker)} of {number_of(len(losses), 'release')} {are} {named}, which does not imply {flavour} DP",
            fix="leave the flavour out, or ask for one that all imply: approximate always is",
        )


def implies(flavour: str, other: str) -> bool:
    """Whether one flavour implies another at the same parameters; zCDP implies approximate DP at any delta above 0.

    >>> implies("pure", "probabilistic"), implies("approximate", "probabilistic")
    (True, False)
    """
    return STRENGTH[flavour] >= STRENGTH[other]


def state(losses: Sequence[Loss], flavour: str, delta: float, operator: str) -> tuple[str, ...]:
    """The statements of a composition of at least one loss; of none, there is nothing to say."""
    if not losses:
        return ()
    counts = Counter(loss.flavour for loss in losses)
    stated = [_say_what_was_mixed(counts, flavour)]
    if flavour == "approximate" and counts["probabilistic"]:
        stated.append("Probabilistic DP implies approximate DP at the same epsilon and delta.")
    if counts["concentrated"]:
        stated.append(
            "A rho-zCDP loss has no epsilon of its own: at every delta above 0 it implies approximate DP with another."
        )
    if flavour == "probabilistic":
        stated.append("Probabilistic DP need not outlast further processing of a release; approximate DP does.")
    if flavour != "pure":
        stated.append(_say_which_delta(losses, delta))
    stated.append(DESCRIBED[operator])
    unknown = sum(kind_of(loss) is None for loss in losses)
    if operator in {"zcdp", "rdp", "pld"} and unknown > counts["concentrated"]:
        stated.append(
            f"{number_of(unknown - counts['concentrated'], 'loss')} without a known mechanism: taken at the worst that "
            "the guarantee allows."
        )
    if operator != "basic":
        stated.append(
            "Computed for epsilons and deltas set before the first release; if later ones were set by what earlier "
            "releases showed, use the operator basic and a limit set before. No operator covers an epsilon that was "
            "chosen from the raw data."
        )
    return (*stated, NEIGHBOURING[losses[0].neighbours])


def _say_what_was_mixed(counts: Counter[str], flavour: str) -> str:
    present = [(kind, counts[kind]) for kind in FLAVOURS if counts[kind]]
    *before, last = [f"{count:,} {kind}" for kind, count in present]
    mixed = f"{', '.join(before)} and {last}" if before else last
    total = counts.total()
    losses, are = ("loss", "is") if total == 1 else ("losses", "are")
    zero = ": a pure loss has delta 0" if counts["pure"] and flavour != "pure" else ""
    return f"{mixed} {losses} {are} composed as {flavour} DP{zero}."


def _say_which_delta(losses: Sequence[Loss], delta: float) -> str:
    deltas = add_up([loss.delta for loss in losses])
    compared = f"All operators are compared at delta {claim(delta)}"
    if delta == deltas:
        return f"{compared}, the sum of the losses' deltas."
    return f"{compared}; the losses' own add up to {claim(deltas)}."

"""Who reads a release: the homogeneity attacker, and those who guess."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cellrisk.errors import InvalidInput
from cellrisk.risk.attacks.guesses import Guess, Plurality, Proportional
from cellrisk.risk.measures import FORMS, MEASURES, WEIGHTS, Local, Measure
from cellrisk.system.choices import Attack, choose_words, list_words, require_word

GUESSES: dict[str, type[Guess]] = {kind.attack: kind for kind in (Plurality, Proportional)}
ATTACKS: tuple[Attack, ...] = list_words(Attack)

Words = str | Sequence[str] | None


@dataclass(frozen=True)
class AskedRisks:
    """Which risks are asked for: an attack, and the measures, forms and weights that it has."""

    attack: str
    measures: tuple[str, ...]
    forms: tuple[str, ...]
    weights: tuple[str, ...]

    def make(self, make_measure: Callable[[str], Measure]) -> list[Measure]:
        """Return the measures that are asked for: those of the attack, or what is made of their names."""
        guess = GUESSES.get(self.attack)
        return [make_measure(name) if guess is None else guess() for name in self.measures]


def people_risk(attack: str) -> Measure:
    """Return the measure whose tight form, by records, is the expected share of people whom the attack reveals."""
    return GUESSES[attack]() if attack in GUESSES else Local()


def choose_risks(
    attack: str = "homogeneity", measures: Words = None, forms: Words = None, weights: Words = None
) -> AskedRisks:
    """Check what is asked for; all that the attack has where nothing is named."""
    require_word("attack", attack, ATTACKS)
    guesses = attack in GUESSES
    chosen = choose_words("measure", "local" if guesses and measures is None else measures, MEASURES)
    shaped = choose_words("form", "tight" if guesses and forms is None else forms, FORMS)
    for what, words, only in (("measure", chosen, "local"), ("form", shaped, "tight")):
        if guesses and words != (only,):
            other = ", ".join(word for word in words if word != only)
            raise InvalidInput(f"the {attack} attack has one {what}", got=other, allowed=only)
    return AskedRisks(attack, chosen, shaped, choose_words("weights", weights, WEIGHTS))

"""Who reads a release: the homogeneity attacker, those who guess, and how often a cell tells the truth."""

from __future__ import annotations

from cellrisk.risk.attacks.confidence import Confidence, find_confidence, looks_homogeneous
from cellrisk.risk.attacks.guess import Guess, guess_by_chance
from cellrisk.risk.attacks.plurality import Plurality
from cellrisk.risk.attacks.proportional import Proportional
from cellrisk.risk.attacks.questions import ATTACKS, GUESSES, Risks, choose_risks

__all__ = [
    "ATTACKS",
    "GUESSES",
    "Confidence",
    "Guess",
    "Plurality",
    "Proportional",
    "Risks",
    "choose_risks",
    "find_confidence",
    "guess_by_chance",
    "looks_homogeneous",
]

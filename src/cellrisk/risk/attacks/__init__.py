"""Who reads a release: the homogeneity attacker, those who guess, and how often a cell tells the truth."""

from __future__ import annotations

from cellrisk.risk.attacks.asked_risks import ATTACKS, GUESSES, AskedRisks, choose_risks, people_risk
from cellrisk.risk.attacks.confidence import Confidence, find_confidence, looks_homogeneous
from cellrisk.risk.attacks.guess import Guess, blind_guess
from cellrisk.risk.attacks.plurality import Plurality
from cellrisk.risk.attacks.proportional import Proportional

__all__ = [
    "ATTACKS",
    "GUESSES",
    "AskedRisks",
    "Confidence",
    "Guess",
    "Plurality",
    "Proportional",
    "blind_guess",
    "choose_risks",
    "find_confidence",
    "looks_homogeneous",
    "people_risk",
]

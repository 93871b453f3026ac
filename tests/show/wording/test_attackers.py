"""Every number on the first screen of `assess`, recomputed from the counts and the formulas alone."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import cellrisk as cr
from cellrisk.show.wording.attackers import share, whole_share
from cellrisk.system.formatting import whole_people

TOP = 400
"""Counts and released values beyond this are left out: they have a probability below 1e-12 here."""


class Direct:
    """Two categories, geometric noise, threshold 1/2: matrices over all counts and released values."""

    def __init__(self, counts: np.ndarray, epsilon: float, shapes: tuple[float, float], theta: float) -> None:
        self.counts, a = counts, math.exp(-epsilon)
        n, r = np.arange(TOP), np.arange(TOP)
        law = (1 - a) / (1 + a) * a ** np.abs(r - n[:, None])
        law[:, 0] = a**n / (1 + a)
        self.law = law  # (true count, released value)
        self.w = []
        for shape in shapes:
            prior = np.exp(gammaln(shape + n) - gammaln(shape) - gammaln(n + 1) + n * math.log(theta))
            self.w.append((n * prior) @ law / (prior @ law))

    def success(self, k: int, named: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """S and S' of the people of category k in each group; ``named``: (value of k, value of the other)."""
        chance = self.law @ named @ self.law.T
        own, other = self.counts[:, k], self.counts[:, 1 - k]
        with_record, without = chance[own, other], chance[np.maximum(own - 1, 0), other]
        return np.where(own > 0, with_record, 0.0), np.where(own > 0, without, 0.0)

    def attack(self, name: str, k: int, factor: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        r = np.arange(TOP)
        if name == "homogeneity":
            named = (r[:, None] > 0) & (r == 0)
        elif name == "plurality":
            named = (r[:, None] > r) + 0.5 * ((r[:, None] == r) & (r > 0))
        elif name == "best-guess":
            named = self.w[k][:, None] > self.w[1 - k] * (1 + 1e-12)
        else:
            named = self.w[1 - k] <= self.w[k][:, None] * factor * (1 + 1e-12)
        return self.success(k, np.asarray(named, float))

    def both(self, name: str, factors: tuple[float, float] = (0.0, 0.0)) -> tuple[np.ndarray, np.ndarray]:
        """S, and S - S', of every group and category."""
        parts = [self.attack(name, k, factors[k]) for k in (0, 1)]
        has, lacks = (np.stack([part[place] for part in parts], axis=1) for place in (0, 1))
        return has, has - lacks


@pytest.mark.parametrize("seed", range(10))
def test_every_number_of_the_screen(seed: int) -> None:
    generator = np.random.default_rng(100 + seed)
    sizes = 1 + generator.negative_binomial(0.7, 0.12, 60)
    shares = generator.beta(0.6, 1.1, 60)
    counts = np.array([[n - k, k] for n, k in zip(sizes, generator.binomial(sizes, shares), strict=True)])
    rows = [(f"g{group}", "ab"[k]) for group, row in enumerate(counts.tolist()) for k in (0, 1) for _ in range(row[k])]
    table = cr.tabulate(pd.DataFrame(rows, columns=["group", "value"]), ["group"], "value")
    epsilon = round(float(generator.uniform(0.3, 3.0)), 2)
    found = cr.assess(table, epsilon=epsilon, certainty=0.9)
    belief = found.to_dict()["decision"][0]["belief"]
    direct = Direct(counts, epsilon, tuple(belief["shapes"]), belief["theta"])
    text = str(found)
    lines = {" ".join(line.split()) for line in text.splitlines()}
    people, everybody = counts.sum(axis=0), int(counts.sum())
    odds = 0.1 / 0.9
    results = {name: direct.both(name, (odds, odds)) for name in ("homogeneity", "plurality", "best-guess", "informed")}
    names = {
        "homogeneity": "Homogeneity attack (DR-HA)",
        "plurality": "Largest count",
        "informed": "Informed attacker, 90% sure",
    }
    for name, words in names.items():
        has, gain = ((part * counts).sum() for part in results[name])
        most = results[name][1].max()
        [line] = [line for line in lines if line.startswith(words)]
        figures = line.removeprefix(words).replace("under ", "under_").replace("over ", "over_").split()
        assert figures[1] == share(has / everybody).replace("under ", "under_").replace("over ", "over_")
        number = "under_1" if 0 < gain < 0.5 else whole_people(gain)
        assert figures[3:5] == [number, share(gain / everybody).replace("under ", "under_")]
        assert figures[-1] == share(most).replace("under ", "under_").replace("over ", "over_")
    strongest = max(float((gain * counts).sum()) for _, gain in results.values())
    number_of_all = f"at least {round(strongest):,} of {everybody:,} people ({share(strongest / everybody)})"
    assert found.headline.startswith(f"At epsilon {epsilon:g}, the 'value' of {number_of_all} is revealed because of ")
    [row] = [
        line.split()
        for line in str(cr.curve(table, epsilon=[epsilon], certainty=0.9)).splitlines()
        if line.startswith(f"{epsilon:g} ")
    ]
    inferred, most = (results["informed"][0] * counts).sum(), max(gain.max() for _, gain in results.values())
    shown = " ".join([whole_people(strongest), share(strongest / everybody), share(most), share(inferred / everybody)])
    assert " ".join(row[2:-1]) == shown
    above = np.maximum(results["homogeneity"][1], results["plurality"][1]) > 0.1
    number = int(counts[above].sum())
    who = f"{number:,} (person is|people are)" if number else "Nobody is"
    assert re.search(rf"^{who} named more than 10 points more often", text, re.MULTILINE)
    overall = people / everybody
    factors = tuple(min(odds, (1 - part) / (3 * part)) for part in overall.tolist())
    learnt, own = ((part * counts).sum(axis=0) for part in direct.both("informed", factors))
    if learnt.sum() >= 0.5:
        [sentence] = [line for line in lines if line.startswith("The informed attacker learns ")]
        assert sentence.startswith(f"The informed attacker learns the 'value' of {whole_people(learnt.sum())} p")
        for k in (0, 1):
            if learnt[k] > 0:
                assert f"{'ab'[k]} {whole_share(learnt[k] / people[k])}" in sentence
        assert f"), {whole_people(learnt.sum() - own.sum())} from others' records alone" in sentence
    noise = np.arange(-200, 201)
    law = (1 - math.exp(-epsilon)) / (1 + math.exp(-epsilon)) * np.exp(-epsilon * np.abs(noise))
    within = next(n for n in range(200) if law[np.abs(noise) <= n].sum() >= 0.95)
    cases = math.floor(100 * law[np.abs(noise) <= within].sum())
    assert f"is within {within} of the true one in {cases} of 100 cases." in text
    bound = math.ceil(1000 * math.tanh(epsilon / 2)) / 10
    assert f"Any attack, at most {bound:g}% 100% {bound:g}%" in lines


@pytest.mark.parametrize("categories", [3, 5])
def test_more_categories_and_several_attributes(categories: int) -> None:
    generator = np.random.default_rng(categories)
    frame = pd.DataFrame({"q": generator.integers(0, 12, 300), "r": generator.integers(0, 2, 300)})
    for name in ("y", "z"):
        frame[name] = generator.choice(list("abcde")[:categories], 300)
    found = cr.assess(cr.tabulate(frame, ["q", "r"], ["y", "z"]), epsilon=0.5)
    assert str(found).count("Homogeneity attack (DR-HA)") == 2
    assert str(found).count("Several categories together may be certain where none of them is alone.") == 2
    assert found.headline.count("revealed because of their own record") == 2


def test_no_more_than_a_hundred_categories_are_attacked() -> None:
    frame = pd.DataFrame(
        {"q": [number % 5 for number in range(240)], "y": [f"v{number % 120}" for number in range(240)]}
    )
    found = cr.assess(cr.tabulate(frame, ["q"], "y"), epsilon=1.0)
    assert "Other attacks are not assessed: more than 100 labels." in str(found)
    assert found.to_dict()["attackers"] == []


def test_values_assessed_as_one_are_reported() -> None:
    rows = [("a", "x")] * 3 + [("a", "y")] * 7 + [("b", "z")] + [("c", "y")] * 4 + [("d", "x")] + [("d", "y")] * 2
    table = cr.tabulate(pd.DataFrame([*rows, *[("e", "x")] * 9], columns=["group", "value"]), ["group"], "value")
    found = cr.assess(table, epsilon=3.0, certainty=0.8, unions="y+z")
    [figures] = [each for each in found.to_dict()["attackers"] if each.get("union")]
    sentence = f"Taken as one value, y or z is learnt of {whole_people(figures['learnt'])} of 14 people."
    assert sentence in str(found).splitlines()
    assert "Several categories together" not in str(found)
    vague = cr.assess(table, epsilon=0.01, unions="y+z")
    assert "Taken as one value, y or z is learnt of nobody beyond the overall shares." in str(vague).splitlines()

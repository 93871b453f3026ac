"""First screens on tables of different kinds: they fit, and their words are right for the numbers beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

import cellrisk as cr
from cellrisk.system.results import Result
from tests.show.wording.test_printed import MOST_COLUMNS, MOST_LINES, check_words

WRONG = re.compile(r"(?<![\d,.])1 (people|groups|records|categories|tables)\b|(?<!\d)0\.0%|100\.0%|-0\b|\bnan\b")


def rare_disease() -> cr.FrequencyTable:
    """Return a table of 1% ill people spread evenly, and one group of which 97% are ill."""
    random = np.random.default_rng(1)
    groups = np.concatenate([np.repeat(np.arange(60), 25), np.full(200, 60)])
    ill = np.where(groups < 60, random.random(len(groups)) < 0.01, np.arange(len(groups)) % 100 < 97)
    frame = pd.DataFrame({"area": groups // 8, "age": groups % 8, "health": np.where(ill, "ill", "well")})
    return cr.tabulate(frame, ["area", "age"], "health")


def few_groups() -> cr.FrequencyTable:
    """Return a table of four groups and three categories, one person alone among them."""
    counts = [("n", "x", 1), ("n", "y", 7), ("s", "z", 1), ("s", "x", 12), ("e", "y", 30), ("w", "z", 2)]
    return cr.tabulate(pd.DataFrame(counts, columns=["region", "job", "n"]), "region", "job", count="n")


def two_people() -> cr.FrequencyTable:
    """Return a table of two people, each alone in a group."""
    return cr.tabulate(pd.DataFrame({"q": ["a", "b"], "y": ["u", "v"]}), "q", "y")


def several_attributes() -> cr.FrequencyTable:
    """Return a table of two sensitive attributes."""
    random = np.random.default_rng(2)
    frame = pd.DataFrame({"age": random.integers(2, 5, 60), "sex": random.choice(["f", "m"], 60)})
    frame["illness"] = random.choice(["none", "flu", "gout"], 60, p=[0.8, 0.15, 0.05])
    frame["income"] = random.choice(["low", "high"], 60)
    return cr.tabulate(frame, ["age", "sex"], ["illness", "income"])


def visits() -> cr.FrequencyTable:
    """Return a table of people with up to four records each."""
    random = np.random.default_rng(3)
    frame = pd.DataFrame({"person": random.integers(0, 60, 150), "ward": random.choice(list("abc"), 150)})
    frame["diagnosis"] = random.choice(["cold", "cut", "rare"], 150, p=[0.6, 0.35, 0.05])
    return cr.tabulate(frame, "ward", "diagnosis", person="person", contributions=4)


KINDS = (rare_disease, few_groups, two_people, several_attributes, visits)


def results(table: cr.FrequencyTable) -> Iterator[Result]:
    yield cr.assess(table, epsilon=1.0)
    yield cr.assess(table, epsilon=3.0, threshold=2.5)
    yield cr.curve(table, epsilon=[0.1, 1.0, 10.0])
    yield cr.choose(table, max_caused=0.03)
    yield cr.choose(table, max_certain=0.05)
    yield cr.choose(table, max_epsilon=1.0)
    yield cr.choose(table, max_error=5, max_ceiling=0.51)
    if len(table.attributes) == 1 and table.unit.contributions == 1:
        yield cr.explain(table, epsilon=1.0)
        yield cr.utility(table, epsilon=1.0, releases=2)
        yield cr.simulate(table, epsilon=1.0, releases=2)


@pytest.mark.parametrize("make", KINDS)
def test_first_screens_fit_and_their_words_are_right(make: type[cr.FrequencyTable]) -> None:
    table = make()
    for found in results(table):
        text = str(found)
        lines = text.splitlines()
        assert len(lines) <= (MOST_LINES if len(table.attributes) == 1 else 34), text
        assert max(map(len, lines)) <= MOST_COLUMNS, text
        assert not WRONG.search(text), text
        assert not WRONG.search(found.details), found.details
        check_words(text)


def test_each_table_of_several_attributes_is_named() -> None:
    parts = str(cr.choose(several_attributes(), max_epsilon=1.0)).split("\n\n")
    assert [part.splitlines()[0] for part in parts[1:3]] == ["'illness'", "'income'"]


def test_who_bears_the_risk_is_named_by_the_attack_that_reveals_most() -> None:
    """Nobody is revealed by homogeneity; the informed attacker reveals some."""
    found = cr.explain(rare_disease(), epsilon=1.0)
    assert found.now.own is not None
    assert found.now.own > 0.5 > 0.05 > found.now.caused
    assert "Most at risk because of their own record: " in str(found)


def test_less_than_one_person_is_not_one() -> None:
    text = str(cr.curve(few_groups(), epsilon=1.0))
    assert "the 'job' of fewer than 1 of 53 people (1.2%) is revealed" in text

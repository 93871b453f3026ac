"""Two risks from counts alone, without the package: the place to begin reading.

A group has n_k people of each category k. Geometric noise at epsilon has P(j) = (1 - a)/(1 + a) a^|j|, a = e^-epsilon;
a noisy count below 1 is released as 0. So q(n) = a^n/(1 + a) is the probability that a count n is released as 0.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

import cellrisk as cr
from cellrisk.system.arrays import Floats, Integers

EPSILON = 1.0
A = np.exp(-EPSILON)


@pytest.fixture(scope="module")
def table() -> cr.FrequencyTable:
    return cr.tabulate(cr.datasets.adult_as_published(), ["age", "education", "sex"], "income", bins={"age": 5})


def find_local_risk(counts: Integers, groups: Integers) -> float:
    """The share of people whose category is the only one shown: sum_k n_k s(n_k) prod_{j != k} q(n_j) / n."""
    q = A**counts / (1 + A)
    alone = np.stack([(1 - q[:, k]) * np.delete(q, k, axis=1).prod(axis=1) for k in range(counts.shape[1])], axis=1)
    return float(groups @ (counts * alone).sum(axis=1) / (groups @ counts.sum(axis=1)))


def find_inferred(counts: Integers, groups: Integers, shapes: tuple[float, ...], theta: float, sure: float) -> float:
    """People whose category an informed attacker gives a posterior share of at least ``sure``, by Bayes' rule.

    They take the counts of a group for independent, negative binomial with these shapes and theta, and the number of
    people of category k, given what was released, for w_k(r_k) = E[N_k | r_k].
    """
    n = np.arange(int(counts.max()) + 400)  # true counts that the attacker considers
    r = np.arange(int(counts.max()) + 60)  # released values
    law = np.where(r[:, None] == 0, A**n / (1 + A), (1 - A) / (1 + A) * A ** np.abs(r[:, None] - n))  # P(r | n)

    def posterior_means(shape: float) -> Floats:
        prior = np.exp(gammaln(shape + n) - gammaln(shape) - gammaln(n + 1) + n * np.log(theta))
        return (law @ (n * prior)) / (law @ prior)

    w = [posterior_means(shape) for shape in shapes]
    share = w[0][:, None] / (w[0][:, None] + w[1])  # of the first category, for each pair of released values
    total = 0.0
    for k, named in enumerate((share >= sure - 1e-12, 1 - share >= sure - 1e-12)):
        probability = law.T @ named @ law  # that category k is named, for each pair of true counts
        total += float(groups * counts[:, k] @ probability[counts[:, 0], counts[:, 1]])
    return total


def test_local_risk(table: cr.FrequencyTable) -> None:
    vectors = table.attribute().vectors
    assert vectors is not None
    by_hand = find_local_risk(vectors.counts, vectors.cells)
    assert cr.assess(table, epsilon=EPSILON, measures="local").value() == pytest.approx(by_hand, rel=1e-12, abs=0)


def test_informed_attacker_of_two_categories(table: cr.FrequencyTable) -> None:
    vectors = table.attribute().vectors
    assert vectors is not None
    by_hand = find_inferred(vectors.counts, vectors.cells, (0.2, 0.07), 0.9, sure=0.95)
    [found] = cr.assess(table, epsilon=EPSILON, measures="local", belief="0.2,0.07/0.9").figures
    assert found.certainty[0].right == pytest.approx(by_hand, rel=1e-12, abs=0)

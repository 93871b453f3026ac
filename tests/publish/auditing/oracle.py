"""Every figure of an audit once more, from plain dictionaries of counts and nothing else."""

from __future__ import annotations

import math
from collections import defaultdict

Key = tuple[str, ...]
Counts = dict[tuple[Key, str], float]
"""The count of each key and label."""


def by_key(counts: Counts) -> dict[Key, dict[str, float]]:
    found: dict[Key, dict[str, float]] = defaultdict(dict)
    for (key, label), count in counts.items():
        if count > 0:
            found[key][label] = count
    return dict(found)


def figures(original: Counts, released: Counts) -> dict[str, float]:
    """The figures by their definitions, one record at a time where they are about records."""
    d, s = by_key(original), by_key(released)
    records = [(key, label) for (key, label), count in original.items() for _ in range(int(count))]
    n = len(records)
    shares = {
        key: {label: count / sum(labels.values()) for label, count in labels.items()} for key, labels in s.items()
    }
    alone = {key: next(iter(labels)) for key, labels in s.items() if len(labels) == 1}
    right = {key for key, label in alone.items() if label in d.get(key, {})}
    in_release = [record for record in records if record[0] in s]
    named = [record for record in records if alone.get(record[0]) == record[1]]
    at_stake = [record for record in records if record[0] in alone]
    belief = [shares[key].get(label, 0.0) for key, label in in_release]
    found = {
        "homogeneity_tight_records": len(named) / n,
        "homogeneity_tight_uniform": sum(d[q].get(alone.get(q, ""), 0.0) / sum(d[q].values()) for q in d) / len(d),
        "homogeneity_exact_records": sum(key in right for key, _ in records) / n,
        "homogeneity_exact_uniform": len(right) / len(d),
        "plurality": sum(guess(s.get(key, {}), label) for key, label in records) / n,
        "proportional": sum(belief) / n,
        "disco": len(named) / n,
        "dis": len(at_stake) / n,
        "repu": sum(sum(d[q].values()) == 1 and sum(s.get(q, {}).values()) == 1 for q in d) / n,
        "tcap": len(named) / len(at_stake) if at_stake else math.nan,
        "cap": 1 - sum(belief) / len(in_release) if in_release else math.nan,
        "zero_cap": 1 - sum(belief) / n,
        **{f"scenario_{number}": sum(scenario(d[q], s.get(q, {})) == number for q in d) for number in range(1, 9)},
    }
    return {**found, **anonymity(s)}


def guess(shown: dict[str, float], label: str) -> float:
    """How likely the label is named by whoever names the largest count."""
    winners = [other for other, count in shown.items() if count == max(shown.values())]
    return (label in winners) / len(winners) if winners else 0.0


def scenario(held: dict[str, float], shown: dict[str, float]) -> int:
    if len(held) == 1:
        if not shown:
            return 4
        return 3 if len(shown) > 1 else 1 if shown.keys() == held.keys() else 2
    if not shown:
        return 6
    return 5 if len(shown) > 1 else 8 if shown.keys() <= held.keys() else 7


def anonymity(s: dict[Key, dict[str, float]]) -> dict[str, float]:
    if not s:
        return dict.fromkeys(("k", "distinct_l", "entropy_l", "prosecutor", "marketer"), math.nan)
    sizes = [sum(labels.values()) for labels in s.values()]
    diversity = []
    for labels, size in zip(s.values(), sizes, strict=True):
        diversity.append(math.prod((size / count) ** (count / size) for count in labels.values()))
    people = [max(size, 1.0) for size in sizes]
    return {
        "k": min(sizes),
        "distinct_l": min(map(len, s.values())),
        "entropy_l": min(diversity),
        "prosecutor": max(1 / size for size in people),
        "marketer": sum(size * (1 / size) for size in people) / sum(people),
    }

"""What the paper says of utility (section 5.3) and of attackers who guess (section 6 and the supplement)."""

from __future__ import annotations

from collections.abc import Iterator

from cellrisk.paper.bundles import WEIGHTINGS
from cellrisk.paper.claims.comparing import Evidence, compare, judge, span
from cellrisk.paper.distances import CLASSICAL_EPSILONS, EPSILONS
from cellrisk.paper.panels import Boxes, Statement

UTILITY, DISCUSSION = "5.3 Utility", "6 Discussion, and supplement"
MARGINALS = {1: "6", 2: "15", 3: "20"}
ROUNDING = 1e-9
NOTABLE = 0.25
"""A drop by this share of the distance is called notable here."""


def state_utility(evidence: Evidence) -> Iterator[Statement]:
    """The claims about the box plots; none where they were not simulated."""
    for boxes in evidence.boxes:
        if boxes.cells == "observed":
            for way, paper in MARGINALS.items():
                yield compare(UTILITY, f"Number of {way}-way marginals", paper, len(boxes.ways[way][0].distances))
            yield _drop(boxes, 0.1, 1.0)
            yield _drop(boxes, 1.0, 10.0)
            yield _largest_influence(boxes)


def _settings(boxes: Boxes) -> list[tuple[str, float]]:
    return list(dict.fromkeys((box.mechanism, box.delta) for box in boxes.ways[1]))


def _drop(boxes: Boxes, start: float, end: float) -> Statement:
    """The mean over the marginals, under every mechanism that has both epsilons."""
    drops, parts = [], []
    for mechanism, delta in _settings(boxes):
        if mechanism == "gaussian" and end > 1:
            continue
        for way in boxes.ways:
            before, after = (boxes.mean(way, mechanism, delta, epsilon) for epsilon in (start, end))
            drops.append((before - after) / before)
            if mechanism == "laplace":
                parts.append(f"{way}-way {before:.3f} to {after:.3f}")
    return judge(
        UTILITY,
        f"TVD drops notably from epsilon {start:g} to {end:g}",
        "notably",
        f"Laplace: {', '.join(parts)}; by {span(drops, 2)} of it over all mechanisms and deltas",
        holds=min(drops) >= NOTABLE,
        partly=max(drops) >= NOTABLE,
        why="Notable means a quarter of the distance here; for some mechanisms or deltas the drop is smaller.",
        note="Notable means a quarter of the distance here.",
    )


def _largest_influence(boxes: Boxes) -> Statement:
    """At which epsilon the means for the deltas are furthest apart."""
    where, parts = [], []
    for mechanism, epsilons in (("gaussian", CLASSICAL_EPSILONS), ("gaussian-pdp", EPSILONS)):
        deltas = [delta for name, delta in _settings(boxes) if name == mechanism]
        for way in boxes.ways:
            spread = {}
            for epsilon in epsilons:
                means = [boxes.mean(way, mechanism, delta, epsilon) for delta in deltas]
                spread[epsilon] = max(means) - min(means)
            largest = max(spread, key=lambda epsilon: spread[epsilon])
            where.append(largest)
            parts.append(f"{mechanism} {way}-way at {largest:.3g} ({spread[largest]:.3f})")
    near = [0.3 < epsilon < 3 for epsilon in where]
    return judge(
        UTILITY,
        "Delta matters most for TVD when epsilon is around 1",
        "around 1",
        f"means are furthest apart: {', '.join(parts)}",
        holds=all(near),
        partly=any(near),
        why="It holds for some mechanisms and marginals only; the classical Gaussian mechanism ends below 1.",
        note="The classical Gaussian mechanism ends below 1, so it cannot be otherwise there than towards its end.",
    )


def state_geometric(evidence: Evidence) -> Iterator[Statement]:
    """The paper expects more of the geometric mechanism, without computing it."""
    above, below = [], []
    for bundle in evidence.compared:
        for form in ("published", "tight"):
            for weights in WEIGHTINGS:
                laplace, geometric = (
                    bundle.one(mechanism=name, form=form, weights=weights) for name in ("laplace", "geometric")
                )
                above.append(float((geometric.risk - laplace.risk).max()))
                below.append(float((laplace.risk - geometric.risk).max()))
    yield judge(
        "6 Discussion",
        "The geometric mechanism, whose counts are more accurate, is expected to have a higher risk",
        "higher",
        f"local risk above that under Laplace noise by up to {max(above):.3f}, below it by up to {max(below):.3f}",
        holds=max(below) <= ROUNDING,
        partly=max(above) > ROUNDING,
        why="On average over a table it is higher at some epsilons and lower at others, because heterogeneous cells "
        "look homogeneous less often under smaller noise.",
        note="At every epsilon, in both forms and weightings, on every table.",
    )


def state_thresholding(evidence: Evidence) -> Iterator[Statement]:
    """The claims about hard (plurality) and soft (proportional) thresholding on Adult."""
    ends = {
        (bundle.experiment.reading, attack): [
            line.limits for line in bundle.weighted(attack=attack, form="tight").values()
        ]
        for bundle in (evidence.rows, evidence.adult)
        for attack in ("plurality", "proportional")
    }
    published, defined = (
        {attack: limits for (reading, attack), limits in ends.items() if reading == bundle.experiment.reading}
        for bundle in (evidence.rows, evidence.adult)
    )
    upper = [[limit.raw for limits in each.values() for limit in limits] for each in (published, defined)]
    parts = [f"{attack} {span([limit.raw for limit in limits])}" for attack, limits in defined.items()]
    yield judge(
        DISCUSSION,
        "Thresholding: the upper asymptotes are still 100%",
        "1",
        f"rows {span(upper[0])}; as defined {', '.join(parts)}",
        holds=min(upper[0] + upper[1]) > 0.9995,
        partly=min(upper[0]) > 0.9995,
        why="It holds if rows are taken for cells; as defined, a guess in a heterogeneous cell is wrong for some.",
    )
    lower = [limit.chance for limits in ends.values() for limit in limits]
    yield judge(
        DISCUSSION,
        "Thresholding: the lower asymptotes are above 0.25",
        "> 0.25",
        span(lower),
        holds=min(lower) > 0.25,
        why="Some end is not above 0.25.",
    )
    homogeneity = evidence.rows.one(form="tight", weights="uniform").limits
    widths = [limit.raw - limit.chance for limits in published.values() for limit in limits]
    yield judge(
        DISCUSSION,
        "Thresholding: the curves are flatter than those of the homogeneity attack",
        "flatter",
        f"{span(widths)} from end to end, {homogeneity.raw - homogeneity.chance:.3f} for the homogeneity attack",
        holds=max(widths) < homogeneity.raw - homogeneity.chance,
        why="Some curve is as steep.",
    )

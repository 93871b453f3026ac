"""What the paper says of the relations between epsilon, delta and risk, and of the ends of its curves (section 5, list,
and section 5.2)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from cellrisk.paper.bundles import PAPER_MECHANISMS, WEIGHTINGS, Bundle, largest_gap
from cellrisk.paper.claims.comparing import Evidence, compare, judge, same, span
from cellrisk.paper.panels import Statement
from cellrisk.risk.curves import Line
from cellrisk.risk.sweep import Setting

LIST, RESULTS = "5 Experiments, list", "5.2 Results"
NEAR = 0.05
"""Risks that differ by no more than this are called close or similar here."""
REACHED = 0.01
"""A risk within this of its end has reached it."""
ROUNDING = 1e-9
PLACE = "5.2, item 2"
SUBSET_PLACE = "5.2, item 3"
SUBSET_ENDS = (
    ("local", "uniform", "0.69", "0.16"),
    ("local", "records", "0.57", "0.18"),
    ("expected", "uniform", "0.75", "0.16"),
    ("expected", "records", "0.63", "0.17"),
)


def state_curves(evidence: Evidence) -> Iterator[Statement]:
    """Every claim about the curves."""
    yield _mitigation(evidence)
    yield _shape(evidence)
    yield _minimum(evidence)
    yield _increase(evidence)
    yield _maximum(evidence)
    yield _influence_of_delta(evidence)
    if evidence.has_bankruptcy:
        yield _similarity(evidence)
    yield _around_one(evidence)
    yield _equality(evidence)
    yield _reached(evidence, "laplace", 10.0, "from epsilon 10 on (Laplace)")
    yield _reached(evidence, "gaussian-pdp", 10.0**1.5, "from epsilon 31.6 on (Gaussian, pDP), whatever the delta")
    yield _gain(evidence)
    yield _classical_end()
    yield _simulated(evidence)


def _lines(bundle: Bundle, mechanism: str, measures: tuple[str, ...] = ("local", "expected")) -> list[Line]:
    """The paper's lines under one mechanism: each delta, both weightings."""
    return [
        line
        for measure in measures
        for line in bundle.pick(mechanism=mechanism, measure=measure, form="published", attack="homogeneity")
    ]


def _all_lines(evidence: Evidence, *mechanisms: str) -> list[Line]:
    return [line for bundle in evidence.published for name in mechanisms for line in _lines(bundle, name)]


def _mitigation(evidence: Evidence) -> Statement:
    lines = _all_lines(evidence, *PAPER_MECHANISMS)
    defined = [line for name in PAPER_MECHANISMS for line in _lines(evidence.adult, name)]
    above, above_defined = (
        max(float((line.risk - line.limits.raw).max()) for line in each) for each in (lines, defined)
    )
    return judge(
        f"{LIST}, 1",
        "Sanitisation lowers the risk below that of the raw table",
        "always",
        f"the paper's {len(lines)} curves {'never pass' if above <= ROUNDING else f'pass by up to {above:.3f}'} above "
        f"it; Adult's as defined pass by up to {max(above_defined, 0.0):.3f}",
        holds=max(above, above_defined) <= ROUNDING,
        partly=above <= ROUNDING,
        why="A heterogeneous cell has no risk in the raw table, and some under noise; where many people are in such "
        "cells the published form can be above the raw table's risk.",
    )


def _shape(evidence: Evidence) -> Statement:
    """An S: never falling, and bent once, along the logarithm of epsilon."""
    lines = _all_lines(evidence, "laplace", "gaussian-pdp")
    defined = [line for name in ("laplace", "gaussian-pdp") for line in _lines(evidence.adult, name)]
    good = sum(_rises(line) and _bends(line) == 1 for line in lines)
    falling, falling_defined = (sum(not _rises(line) for line in each) for each in (lines, defined))
    return judge(
        f"{LIST}, 2, and {RESULTS}, item 1",
        "Risk along log(epsilon) follows an S for the Laplace and the pDP mechanism",
        "all curves",
        f"{good} of {len(lines)} rise and bend once, {falling} fall somewhere; as defined, {falling_defined} of "
        f"Adult's {len(defined)} fall somewhere",
        holds=good == len(lines) and not falling_defined,
        partly=good > 0,
        why="By records, Adult's risk under pDP rises in two steps, its large cells before the others; and "
        "heterogeneous cells lose risk as epsilon grows.",
    )


def _rises(line: Line) -> bool:
    return bool((np.diff(line.risk) >= -ROUNDING).all())


def _bends(line: Line) -> int:
    """How often the line changes from bending up to bending down, or back, along log(epsilon)."""
    slope = np.diff(line.risk) / np.diff(np.log(line.epsilon))
    turn = np.diff(slope)
    signs = np.sign(turn[np.abs(turn) > 1e-4 * np.abs(turn).max()])
    return int((np.diff(signs) != 0).sum())


def _minimum(evidence: Evidence) -> Statement:
    lines = _all_lines(evidence, "laplace", "gaussian-pdp")
    gaps = {
        weights: [line.at(0.1) - line.limits.chance for line in lines if line.weights == weights]
        for weights in WEIGHTINGS
    }
    everywhere = [gap for each in gaps.values() for gap in each]
    parts = [f"{span(gaps[weights])} {words}" for weights, words in WEIGHTINGS.items()]
    return judge(
        f"{LIST}, 2",
        "The risk is close to its minimum below epsilon 0.1",
        "close",
        f"at epsilon 0.1 it is above its lower end by {', '.join(parts)}",
        holds=max(everywhere) <= NEAR,
        partly=min(everywhere) <= NEAR,
        why=f"Close means within {NEAR} here; large cells show early, so that averages by records leave it first.",
        note=f"Close means within {NEAR} here.",
    )


def _increase(evidence: Evidence) -> Statement:
    laplace, gaussian = (
        [(line.at(10.0) - line.at(1.0)) / (line.limits.raw - line.limits.chance) for line in _all_lines(evidence, name)]
        for name in ("laplace", "gaussian-pdp")
    )
    return judge(
        f"{LIST}, 2",
        "The drastic increase is between epsilon 1 and 10",
        "most of it",
        f"{span(laplace, 2)} of the way from end to end (Laplace), {span(gaussian, 2)} (Gaussian, pDP)",
        holds=min(laplace + gaussian) >= 0.5,
        partly=max(laplace + gaussian) >= 0.5,
        why="Most means half of the way here: a large part of it is made before epsilon 1, or past 10.",
        note="Most means half of the way here.",
    )


def _maximum(evidence: Evidence) -> Statement:
    laplace, gaussian = (
        [line.limits.raw - line.at(10.0) for line in _all_lines(evidence, name)] for name in ("laplace", "gaussian-pdp")
    )
    return judge(
        f"{LIST}, 2",
        "The maximum is reached above epsilon 10",
        "reached",
        f"at epsilon 10 it is {span(laplace)} away (Laplace), {span(gaussian)} (Gaussian, pDP)",
        holds=max(laplace + gaussian) <= REACHED,
        partly=max(laplace) <= REACHED,
        why=f"Reached means within {REACHED} here; it holds for Laplace, while section 5.2 itself says 31.6 for pDP.",
        note=f"Reached means within {REACHED} here.",
    )


def _influence_of_delta(evidence: Evidence) -> Statement:
    by_delta, by_epsilon = [], []
    for bundle in evidence.published:
        for name in ("gaussian", "gaussian-pdp"):
            for weights in WEIGHTINGS:
                lines = [line for line in _lines(bundle, name, ("local",)) if line.weights == weights]
                risks = np.stack([line.risk for line in lines])
                by_delta.append(float(np.ptp(risks, axis=0).max()))
                by_epsilon.append(float(np.ptp(risks, axis=1).max()))
    shares = [one / other for one, other in zip(by_delta, by_epsilon, strict=True)]
    return judge(
        f"{LIST}, 2, and {RESULTS}, item 4",
        "The impact of delta on the risk is minor beside that of epsilon",
        "minor",
        f"delta moves the risk by up to {span(by_delta)} at one epsilon, epsilon by {span(by_epsilon)} along a curve",
        holds=max(shares) <= 0.25,
        partly=min(shares) <= 0.5,
        why=f"Minor means a quarter here: over the paper's deltas it is {span(shares, 2)} of epsilon's.",
        note="Minor means a quarter here.",
    )


def _similarity(evidence: Evidence) -> Statement:
    rows, adult, bankruptcy = (each.weighted() for each in (evidence.rows, evidence.adult, evidence.bankruptcy))
    gaps = {words: abs(largest_gap(rows[name], bankruptcy[name])) for name, words in WEIGHTINGS.items()}
    defined = max(abs(largest_gap(adult[name], bankruptcy[name])) for name in WEIGHTINGS)
    return judge(
        f"{LIST}, 3",
        "The curves of Adult and Bankruptcy are similar",
        "similar",
        ", ".join(f"{gap:.3f} apart at most {words}" for words, gap in gaps.items()),
        holds=max(gaps.values()) <= NEAR,
        partly=min(gaps.values()) <= NEAR,
        why=f"Similar means within {NEAR} here; and it rests on rows taken for cells: Adult as defined is up to "
        f"{defined:.2f} away.",
        note=f"It rests on rows taken for cells: Adult as defined is up to {defined:.2f} away.",
    )


def _around_one(evidence: Evidence) -> Statement:
    parts, shares = [], []
    for bundle in evidence.published:
        lines = bundle.weighted().values()
        parts.append(f"{bundle.experiment.name} {span([line.at(1.0) for line in lines], 2)}")
        shares += [(line.at(1.0) - line.limits.chance) / (line.limits.raw - line.limits.chance) for line in lines]
    tight = evidence.adult.one(form="tight", weights="records")
    return judge(
        f"{LIST}, 4",
        "Epsilon around 1 seems a good choice against the attack",
        "a good choice",
        f"risk at epsilon 1 (Laplace): {', '.join(parts)}",
        holds=max(shares) <= 0.25,
        partly=max(shares) < 1.0,
        why=f"A judgement: {span(shares, 2)} of the way to the raw table's risk is made there; as defined, Adult "
        f"exposes {tight.at(1.0):.2f} of people, {tight.limits.raw:.2f} without noise.",
        note="A judgement: a quarter of the way at most is made there.",
    )


def _equality(evidence: Evidence) -> Statement:
    gaps = {
        bundle.experiment.label: max(
            abs(largest_gap(local, expected))
            for name in PAPER_MECHANISMS
            for local, expected in zip(
                _lines(bundle, name, ("local",)), _lines(bundle, name, ("expected",)), strict=True
            )
        )
        for bundle in [*evidence.homogeneous, evidence.adult]
    }
    paper = [gaps[bundle.experiment.label] for bundle in evidence.homogeneous]
    return judge(
        RESULTS,
        "Local and expected risk are the same in Adult and Bankruptcy",
        "the same",
        ", ".join(f"{label}: {'no gap' if gap < ROUNDING else f'gap {gap:.3f}'}" for label, gap in gaps.items()),
        holds=max(gaps.values()) < ROUNDING,
        partly=max(paper) < ROUNDING,
        why="It holds where all cells are homogeneous, which Adult's are only if rows are taken for cells.",
    )


def _reached(evidence: Evidence, mechanism: str, epsilon: float, words: str) -> Statement:
    risks = [line.at(epsilon) for bundle in evidence.homogeneous for line in _lines(bundle, mechanism, ("local",))]
    return judge(
        f"{RESULTS}, item 2",
        f"Adult, Bankruptcy: the risk is 1 {words}",
        "1",
        f"{span(risks, 4)} at epsilon {epsilon:.3g}",
        holds=min(risks) >= 1.0 - REACHED,
        partly=max(risks) >= 1.0 - REACHED,
        why=f"Reached means within {REACHED} here: the smaller the delta, the later it is reached.",
        note=f"Reached means within {REACHED} here.",
    )


def _gain(evidence: Evidence) -> Statement:
    """Probabilistic minus classical, below epsilon 1: the largest gap, and the median along log(epsilon)."""
    largest, typical, parts, least = [], [], [], math.inf
    for bundle in evidence.published:
        for delta in bundle.experiment.deltas:
            found = []
            both = (bundle.weighted(mechanism=name, delta=delta).values() for name in ("gaussian", "gaussian-pdp"))
            for classical, probabilistic in zip(*both, strict=True):
                shared = probabilistic.risk[: len(classical.risk)] - classical.risk
                found.append(float(shared.max()))
                typical.append(float(np.median(shared)))
                least = min(least, float(shared.min()))
            largest += found
            parts.append(f"{bundle.experiment.name}, delta {delta:g}: {span(found)}")
    return judge(
        f"{RESULTS}, item 4",
        "Below epsilon 1 the risk under pDP is slightly larger than under DP",
        "+0.05",
        f"{'larger everywhere' if least >= -ROUNDING else 'not everywhere larger'}; largest gap {span(largest)}, "
        f"typical (median) {span(typical)}",
        holds=all(abs(gap - 0.05) < 0.005 for gap in largest),
        partly=min(largest) <= 0.05 <= max(largest),
        why=f"It depends on epsilon and on the delta. Largest gaps: {'; '.join(parts)}.",
    )


def _classical_end() -> Statement:
    end = Setting("gaussian", 0.01).largest_epsilon
    return judge(
        "5 Experiments",
        "The classical Gaussian mechanism is examined up to epsilon 1",
        "0.001 to 1",
        f"{end:.16g} is the largest epsilon with a guarantee",
        holds=end >= 1.0,
        partly=0.999 < end < 1.0,
        why="Its guarantee needs epsilon below 1, as the paper says elsewhere; at 1 itself there is none.",
    )


def _simulated(evidence: Evidence) -> Statement:
    """Simulations estimate the exact risk, so they are near the closed form where that is exact."""
    gaps = {}
    for bundle in evidence.published:
        pairs = zip(bundle.weighted(form="exact").values(), bundle.weighted().values(), strict=True)
        gaps[bundle.experiment.name] = max(abs(largest_gap(exact, published)) for exact, published in pairs)
    return judge(
        "5.1 Experiment setting, footnote",
        "Simulated (empirical) and theoretical risks are nearly identical",
        "nearly identical",
        ", ".join(f"{name}: {gap:.3f} apart" for name, gap in gaps.items()),
        holds=max(gaps.values()) <= 0.005,
        partly=min(gaps.values()) <= 0.005,
        why="What simulations tend to is the exact risk; the closed form is above it where cells are heterogeneous.",
        note="What simulations tend to is the exact risk, which the closed form equals here.",
    )


def state_ends(evidence: Evidence) -> Iterator[Statement]:
    """Every asymptote of the text."""
    for bundle in evidence.homogeneous:
        defined = evidence.adult if bundle is evidence.rows else None
        yield _upper(bundle, defined)
        yield _lower(bundle, defined)
    if evidence.has_bankruptcy:
        for measure, weights, upper, lower in SUBSET_ENDS:
            limits = evidence.subset.one(measure=measure, weights=weights).limits
            what = f"Bankruptcy subset: {measure} risk, {WEIGHTINGS[weights]}"
            yield compare(SUBSET_PLACE, f"{what}, as epsilon grows", upper, limits.raw)
            yield compare(SUBSET_PLACE, f"{what}, as epsilon falls to 0", lower, limits.chance)
        yield _same_lower_end(evidence.subset)
        yield _two_levels(evidence.subset)


def _upper(bundle: Bundle, defined: Bundle | None) -> Statement:
    ends = [line.limits.raw for line in bundle.weighted().values()]
    others = [] if defined is None else [line.limits.raw for line in defined.weighted().values()]
    cells = f"; as defined {others[0]:.3f} each cell alike, {others[1]:.3f} by records" if others else ""
    return judge(
        PLACE,
        f"{bundle.experiment.name}: the risk as epsilon grows",
        "1",
        f"{span(ends)}{cells}",
        holds=all(abs(end - 1.0) < 0.0005 for end in [*ends, *others]),
        partly=all(abs(end - 1.0) < 0.0005 for end in ends),
        why="It is 1 only if rows are taken for cells: the raw table does not give away people in heterogeneous cells.",
    )


def _lower(bundle: Bundle, defined: Bundle | None) -> Statement:
    ends = [line.limits.chance for line in bundle.weighted().values()]
    others = [] if defined is None else [line.limits.chance for line in defined.weighted().values()]
    cells = f"; as defined {span(others)}" if others else ""
    return judge(
        PLACE,
        f"{bundle.experiment.name}: the risk as epsilon falls to 0",
        "0.25",
        f"{span(ends)}{cells}",
        holds=all(same("0.25", end) for end in [*ends, *others]),
        partly=all(same("0.25", end) for end in ends),
        why="It holds for the rows; cells as defined have another lower end.",
        note="What is left there is chance: cells look homogeneous at random, and the value shown is as often wrong.",
    )


def _same_lower_end(subset: Bundle) -> Statement:
    local, expected = (subset.one(measure=each, weights="uniform").limits.chance for each in ("local", "expected"))
    return judge(
        SUBSET_PLACE,
        "Bankruptcy subset: the lower ends of local and expected risk, each cell alike, are the same",
        "the same",
        f"{local:.4f} and {expected:.4f}",
        holds=abs(local - expected) < 0.00005,
        partly=same("0.16", local) and same("0.16", expected),
        why="They are the same at two digits, not the same number.",
    )


def _two_levels(subset: Bundle) -> Statement:
    """sum_k p_k^n is what the curve tends to; the text writes p^n + (1 - p)^n, with p the largest share here."""
    profiles = subset.experiment.table.profiles()
    risks, printed, crowded = np.zeros(2), np.zeros(2), 0
    for block in profiles.blocks:
        shares = block.counts / block.sizes[:, None]
        largest = shares[:, 0]
        as_written = largest**block.sizes + (1.0 - largest) ** block.sizes
        right = (shares ** block.sizes[:, None]).sum(axis=1)
        crowded += int(block.cells.sum()) if block.counts.shape[1] > 2 else 0
        for place, weights in enumerate((block.cells / profiles.n_cells, block.records / profiles.n_records)):
            printed[place] += float(weights @ as_written)
            risks[place] += float(weights @ right)
    return judge(
        SUBSET_PLACE,
        "Bankruptcy subset: the expected risk tends to the average of p^n + (1 - p)^n",
        "as epsilon grows",
        f"that average is {printed[0]:.4f} / {printed[1]:.4f}, the limit {risks[0]:.4f} / {risks[1]:.4f}",
        holds=bool(np.abs(risks - printed).max() < 1e-9),
        partly=bool(np.abs(risks - printed).max() < 0.005),
        why=f"The formula is for K = 2, and K is 3: it must be the sum of p_k^n over all labels. {crowded} of "
        f"{profiles.n_cells} cells {'has' if crowded == 1 else 'have'} three labels, so that little changes here.",
    )

"""From OpenDP's objects to mechanisms: what they state publicly is read, and what they do not state is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from cellrisk.counts.unit import Unit
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.distributions import USUAL_THRESHOLD
from cellrisk.noise.mechanisms import (
    MECHANISMS,
    NEIGHBOURS,
    SAFE,
    Mechanism,
    find_smallest,
    gaussian_log_delta,
    zcdp_log_delta,
)
from cellrisk.system.checks import require_within
from cellrisk.system.choices import MechanismName, Neighbours, require_word

TOLERANCE = 1e-9
"""Relative: OpenDP rounds its losses to the safe side."""
SMALLEST_EPSILON = 1e-12
"""Noise that meets a delta at this epsilon meets it at any."""
METRICS: Mapping[str, Neighbours] = {
    "SymmetricDistance": "add-remove",
    "InsertDeleteDistance": "add-remove",
    "ChangeOneDistance": "replace",
    "HammingDistance": "replace",
}
LAWS: Mapping[str, tuple[MechanismName, MechanismName]] = {
    "MaxDivergence": ("geometric", "laplace"),
    "ZeroConcentratedDivergence": ("discrete-gaussian", "gaussian-analytic"),
}
"""The noise whose loss OpenDP states in each measure: on whole numbers, and on others."""
DISTRIBUTIONS: Mapping[str, MechanismName] = {"Integer Laplace": "geometric", "Integer Gaussian": "discrete-gaussian"}
"""The noise that the summary of a query over frames names."""


def from_opendp(
    given: Any,
    *,
    scale: float | None = None,
    neighbours: Neighbours | None = None,
    delta: float | None = None,
    keys: Literal["declared", "observed"] | None = None,
    contributions: int | None = None,
    per_group: int | None = None,
) -> Mechanism:
    """Return the mechanism of a count query or a measurement of OpenDP, for `assess`, `ceiling`, `audit` and the rest.

    Nothing is released and no budget is spent. The scale is checked with OpenDP's own privacy map: one record must
    move one count by one. What OpenDP does not state is asked for. Epsilon is that of one record, or with
    ``contributions`` that of a person, whatever the privacy unit of the query.

    Parameters
    ----------
    given
        A query of a ``Context``, over a Polars frame or a list, that counts; or a ``Measurement`` that adds Laplace or
        Gaussian noise to counts, and does nothing to them afterwards.
    scale
        Of a measurement, the scale that it was made with.
    neighbours
        "add-remove" or "replace", for a measurement on counts alone; a measurement on records states it.
    delta
        At which delta Gaussian noise is stated as an epsilon.
    keys
        Of a query over a frame: "declared" if ``with_keys`` declares every combination of the grouping columns, or if
        there is none; "observed" if it publishes the keys of the data above a threshold. The guarantee then has a delta
        for keys that one person alone has, which the mechanism does not include.
    contributions, per_group
        The most records of one person, and of these in one count: what a ``Context`` calls its privacy unit.

    >>> from cellrisk import Geometric
    >>> from_opendp(Geometric(epsilon=0.5).to_opendp(), scale=2.0, neighbours="add-remove")
    Geometric(epsilon=0.5, delta=0.0, neighbours='add-remove', threshold=0.5)
    """
    unit = Unit.read(None, contributions, per_group)
    if neighbours is not None:
        require_word("neighbours", neighbours, NEIGHBOURS)
    kind = type(given).__name__ if type(given).__module__.partition(".")[0] == "opendp" else ""
    if kind not in ("LazyFrameQuery", "Query", "Measurement"):
        allowed = "a query of a Context that counts, or a Measurement"
        what = "this is not a count query or a measurement of OpenDP"
        raise InvalidInput(what, got=type(given).__name__, allowed=allowed, code="not-opendp")
    measurement = given if kind == "Measurement" else _ask(given.resolve)
    threshold = USUAL_THRESHOLD
    if kind == "LazyFrameQuery":
        name, scale, threshold = _read_summary(given, keys)
    else:
        scale = scale if kind == "Measurement" else _ask(given.param)
        name = _read_law(measurement)
        if scale is None:
            fix = f"give the scale that it was made with: {argument('scale', 2.0)}"
            raise InvalidInput("a measurement does not state its scale", fix=fix, code="opendp-scale")
    neighbours = _find_neighbours(measurement, neighbours)
    for checked in dict.fromkeys((Unit(), unit)):
        _check_loss(measurement, name, require_within("scale", scale, above=0), neighbours, checked)
    more: Any = {"neighbours": neighbours, "threshold": threshold, "unit": unit}
    distance = _move(name, neighbours, unit)
    if MECHANISMS[name].pure:
        if delta is not None:
            raise InvalidInput("Laplace noise takes no delta", got=delta, fix="leave it out", code="delta")
        return MECHANISMS[name](epsilon=distance / scale, **more)
    if delta is None:
        fix = f"for example {argument('delta', 1e-6)}"
        raise InvalidInput("Gaussian noise is stated at a delta", fix=fix, code="delta")
    stated, sigma = require_within("delta", delta, above=0, below=1), scale / distance

    def excess(epsilon: float) -> float:
        integer = name == "discrete-gaussian"
        log_delta = zcdp_log_delta(0.5 / sigma**2, epsilon) if integer else gaussian_log_delta(sigma, epsilon)
        return log_delta + SAFE - math.log(stated)

    if excess(SMALLEST_EPSILON) <= 0:
        what, got = "so much noise meets this delta at any epsilon", f"scale {sigma:g} at delta {stated:g}"
        raise InvalidInput(what, got=got, fix="state it at a smaller delta", code="delta")
    return MECHANISMS[name](epsilon=find_smallest(excess), delta=stated, **more)


def _ask(question: Any) -> Any:
    """Return what OpenDP answers; its own errors are of many kinds, and their text may hold data."""
    try:
        return question()
    except Exception as error:
        what = "OpenDP does not describe the query: is it finished?"
        raise InvalidInput(what, got=type(error).__name__, code="opendp-unfinished") from None


def _read_summary(query: Any, keys: str | None) -> tuple[MechanismName, float, float]:
    """Return noise, scale and threshold of a query over a frame, by its own summary."""
    rows = _ask(query.summarize).to_dicts()
    if len(rows) != 1 or rows[0].get("aggregate") not in ("Frame Length", "Length"):
        got = f"{len(rows)} aggregates: {', '.join(str(row.get('aggregate')) for row in rows)}"
        fix = "give the query of the counts: group_by(...).agg(dp.len())"
        raise InvalidInput("the query does not count records alone", got=got, fix=fix, code="opendp-not-counts")
    (row,) = rows
    name, scale = DISTRIBUTIONS.get(str(row["distribution"])), float(row["scale"])
    if name is None or not scale > 0:
        got = f"{row['distribution']} of scale {scale:g}"
        raise InvalidInput("the query adds no integer Laplace or Gaussian noise", got=got, code="opendp-noise")
    threshold = row.get("threshold")
    if keys != ("declared" if threshold is None else "observed"):
        fix = f"declare them all, as the last step, with_keys(...), and state it: {argument('keys', 'declared')}"
        what = "if not every combination of the keys is declared, a missing one is seen without noise"
        if threshold is not None:
            fix += f"; or look at the counts alone: {argument('keys', 'observed')}"
            what = "the query publishes the keys of the data above a threshold, and its guarantee has a delta for them"
        raise InvalidInput(what, fix=fix, code="opendp-keys")
    return name, scale, USUAL_THRESHOLD if threshold is None else float(threshold) + 0.5  # what is above it is kept


def _read_law(measurement: Any) -> MechanismName:
    """Return the noise of a measurement, by the measure of its loss: on whole numbers, unless its counts are not."""
    measure = str(measurement.output_measure)
    if measure not in LAWS:
        fix = "give the measurement before it was converted, or the mechanism itself: Geometric(epsilon=1.0)"
        what = "the loss of this measurement is not that of Laplace or Gaussian noise"
        raise InvalidInput(what, got=measure, fix=fix, code="opendp-measure")
    integer, continuous = LAWS[measure]
    return continuous if _is_on_counts(measurement) and "f" in str(measurement.input_carrier_type) else integer


def _is_on_counts(measurement: Any) -> bool:
    """Return whether its input is counts, and not records."""
    return str(measurement.input_metric).startswith(("L1Distance", "L2Distance", "AbsoluteDistance"))


def _find_neighbours(measurement: Any, given: Neighbours | None) -> Neighbours:
    """Return how neighbouring tables differ: by the metric of the input if it is one of records, else as given."""
    metric = str(measurement.input_metric).partition("(")[0].partition("<")[0]
    known = METRICS.get(metric)
    if known is None and not _is_on_counts(measurement):
        raise InvalidInput("neighbouring tables of this kind are not known here", got=metric, code="opendp-metric")
    if known is not None and given not in (None, known):
        what, fix = f"the measurement has {argument('neighbours', known)}", f"leave {argument('neighbours')} out"
        raise InvalidInput(what, got=given, fix=fix, code="opendp-neighbours")
    neighbours = known or given
    if neighbours is None:
        what = "counts alone do not state how far one record moves them"
        fix = f"give {argument('neighbours', 'add-remove')}, or {argument('neighbours', 'replace')}"
        raise InvalidInput(what, fix=fix, code="opendp-neighbours")
    return neighbours


def _move(name: MechanismName, neighbours: Neighbours, unit: Unit) -> float:
    """Return how far neighbouring tables move the counts: in all for Laplace noise, else in Euclidean distance."""
    steps = 1.0 if neighbours == "add-remove" else 2.0
    return unit.l1 * steps if MECHANISMS[name].pure else unit.l2 * math.sqrt(steps)


def _check_loss(measurement: Any, name: MechanismName, scale: float, neighbours: Neighbours, unit: Unit) -> None:
    """Refuse noise whose loss, by OpenDP's map, is not that of records each of which moves one count by one."""
    distance, on_counts = _move(name, neighbours, unit), _is_on_counts(measurement)
    if not on_counts and unit.most_in_one < unit.contributions:
        return  # OpenDP's distance between records does not know how many of a person are in one count
    whole = not str(measurement.input_distance_type).startswith("f")
    loss = measurement.map((math.ceil(distance) if whole else distance) if on_counts else unit.contributions)
    loss = float(loss[0] if isinstance(loss, tuple) else loss)
    moved = math.ceil(distance) if on_counts and whole else distance
    expected = moved / scale if MECHANISMS[name].pure else moved**2 / (2.0 * scale**2)
    if not math.isclose(loss, expected, rel_tol=TOLERANCE):
        what = "by OpenDP's privacy map, one record does not move one count by one"
        got = f"a loss of {loss:g}, where {name} noise of scale {scale:g} on such counts costs {expected:g}"
        fix = f"give the {argument('scale')} of noise on counts, of which each record is in one"
        raise InvalidInput(what, got=got, fix=fix, code="opendp-loss")

"""From OpenDP's objects to mechanisms: what the objects say is read, and what they do not say is refused."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from cellrisk.errors import InvalidInput
from cellrisk.noise.distributions import USUAL_THRESHOLD
from cellrisk.noise.mechanisms import (
    NEIGHBOURS,
    SAFE,
    AnalyticGaussian,
    DiscreteGaussian,
    Geometric,
    Laplace,
    Mechanism,
    find_smallest,
    gaussian_log_delta,
    zcdp_log_delta,
)
from cellrisk.system.checks import require_within
from cellrisk.system.words import MechanismName, Neighbours, require_word

TOLERANCE = 1e-9
"""Relative: OpenDP rounds its losses to the safe side."""
SMALLEST_EPSILON = 1e-12
"""Noise that meets a delta at this epsilon meets it at any."""
COUNTS = ("make_count", "make_count_by", "make_count_by_categories")
"""Transformations after which each number is a count of records, and a record is in one of them."""
LENGTHS = ("Frame Length", "Length")
"""What a query of frames calls the number of records of a group."""
WRAPPERS = ("make_fix_delta", "make_zCDP_to_approxDP", "make_approximate", "make_pureDP_to_zCDP")
"""Combinators that state the same noise in another currency."""
METRICS: Mapping[str, Neighbours] = {
    "SymmetricDistance": "add-remove",
    "InsertDeleteDistance": "add-remove",
    "ChangeOneDistance": "replace",
    "HammingDistance": "replace",
}
OF_MARGINALS = ("geometric", "discrete-gaussian")
"""What OpenDP adds to the marginals of a contingency table: integer Laplace noise, or integer Gaussian noise."""
COLUMN = re.compile(r'col\("((?:[^"\\]|\\.)*)"\)')
"""A column in what Polars tells of a plan."""
SENSITIVITIES = ("L1Distance", "L2Distance", "AbsoluteDistance", "L01InfDistance")


@dataclass(frozen=True)
class _NoiseOfCounts:
    """What an object of OpenDP says of its noise."""

    gaussian: bool
    integer: bool
    scale: float
    threshold: float | None = None
    """Where only keys that occur in the data are published: the threshold that their counts must pass."""
    delta: float | None = None
    """The one that its guarantee was stated at."""


def from_opendp(
    given: Any,
    *,
    neighbours: Neighbours | None = None,
    delta: float | None = None,
    observed_keys: bool = False,
    marginal: Sequence[str] | None = None,
    mechanism: MechanismName | None = None,
) -> Mechanism:
    """The mechanism of a count query or a measurement of OpenDP, to give to `assess`, `ceiling`, `audit` and the rest.

    Nothing is released and no budget is spent. Epsilon is that of one record, and a person has one record here: a query
    whose privacy unit is several records is refused, and so is whatever does not publish plain noisy counts. The cells
    of a ``ContingencyTable`` are fitted to noisy marginals and are no such counts; one of its marginals is.

    Parameters
    ----------
    given
        A query of a ``Context``, over a Polars frame or a list, that counts; a ``Measurement`` that adds Laplace or
        Gaussian noise to counts; or a ``ContingencyTable`` that was released.
    neighbours
        "add-remove" or "replace", for a measurement on counts alone, which does not say how far one record moves them,
        and for a contingency table; anything else says it itself.
    delta
        At which delta Gaussian noise is stated as an epsilon, unless the measurement fixes one.
    observed_keys
        Whether a query that publishes the keys of the data above a threshold is taken, too. Its guarantee has a delta
        beside epsilon, for keys that one person alone has, which the mechanism does not tell of; the probability that a
        key that is not in the data is shown, 0 in truth, is at most about that delta in the figures.
    marginal
        The columns of the marginal of a contingency table that is asked about. It must have been measured, once, as
        ``marginals`` of the table tells.
    mechanism
        "geometric" or "discrete-gaussian", for a contingency table: it tells the size of its noise, but not the law,
        which is the former in a session that spends an epsilon, and the latter in one that spends a rho.

    >>> from_opendp(Geometric(epsilon=0.5).to_opendp(), neighbours="add-remove")
    Geometric(epsilon=0.5, delta=0.0, neighbours='add-remove', threshold=0.5)
    """
    kind = type(given).__name__
    if kind != "ContingencyTable" and (marginal is not None or mechanism is not None):
        _refuse("marginal and mechanism are for a contingency table alone", got=kind, fix="leave them out")
    if type(given).__module__.partition(".")[0] != "opendp":
        raise InvalidInput(
            "this is no query or measurement of OpenDP",
            got=kind,
            allowed="a query of a Context that counts, or a Measurement",
        )
    if kind == "LazyFrameQuery":
        measurement, noise = _read_frame_query(given)
    elif kind == "Query":
        _check_unit(vars(given))
        measurement = _resolve(given)
        noise = _read_measurement(measurement)
    elif kind == "Measurement":
        measurement, noise = given, _read_measurement(given)
    elif kind == "ContingencyTable":
        return _make(_read_marginal(given, marginal, mechanism), _ask_neighbours(neighbours), delta)
    elif kind == "ContingencyTableQuery":
        _refuse(
            "the query of a contingency table does not say which marginals it will measure, nor with which noise",
            fix="release it, and give the ContingencyTable with one of its marginals",
        )
    else:
        _refuse("this object of OpenDP is no count query and no measurement", got=kind)
    if noise.threshold is not None and not observed_keys:
        _refuse(
            "the query publishes the keys of the data above a threshold: its guarantee has a delta for keys that one "
            "person alone has, which the figures would not tell of",
            fix="declare the keys (with_keys), or look at the counts alone: observed_keys=True",
        )
    return _make(noise, _find_neighbours(measurement, noise, neighbours), delta)


def _refuse(what: str, *, got: object = None, fix: str | None = None) -> NoReturn:
    raise InvalidInput(what, got=got, fix=fix)


def _resolve(query: Any) -> Any:
    """The measurement that the query would make."""
    try:
        return query.resolve()
    except Exception as error:  # OpenDP's own, of many kinds; its text may hold data
        _refuse("OpenDP makes no measurement of the query: is it finished?", got=type(error).__name__)


def _check_unit(fields: Mapping[str, Any]) -> None:
    """Refuses a query that protects several records of a person, or does not say how many."""
    records = fields.get("_d_in")
    if not isinstance(records, int) or isinstance(records, bool):
        _refuse("the query does not say how many records of a person it protects: its privacy unit is no whole number")
    if records != 1:
        _refuse(
            "the query protects people who have several records: here, a person has one",
            got=f"a privacy unit of {records} records",
            fix="count people: group the records of each person first",
        )


def _read_frame_query(query: Any) -> tuple[Any, _NoiseOfCounts]:
    """A query over a frame describes its noise itself."""
    try:
        inner = object.__getattribute__(query, "_query")
    except AttributeError:
        _refuse("this version of OpenDP does not say what the query protects", fix="use opendp 0.14 to 0.16")
    from opendp.accuracy import summarize_polars_measurement

    _check_unit(vars(inner))
    measurement = _resolve(query)
    try:
        rows = summarize_polars_measurement(measurement).to_dicts()  # as summarize() does, which would search again
    except Exception as error:  # OpenDP's own, of many kinds; its text may hold data
        _refuse("OpenDP does not describe the query: is it finished?", got=type(error).__name__)
    if len(rows) != 1 or rows[0].get("aggregate") not in LENGTHS:
        _refuse(
            "the query does not count records alone",
            got=f"{len(rows)} aggregates: {', '.join(str(row.get('aggregate')) for row in rows)}",
            fix="give the query of the counts: group_by(...).agg(dp.len())",
        )
    (row,) = rows
    integer, _, law = str(row["distribution"]).partition(" ")
    if integer != "Integer" or law not in ("Laplace", "Gaussian"):
        _refuse("noise of this distribution is not known here", got=row["distribution"])
    if not float(row["scale"]) > 0:
        _refuse("the query adds no noise: a margin calls the counts themselves public")
    noise = _NoiseOfCounts(law == "Gaussian", True, float(row["scale"]))
    threshold = row.get("threshold")
    if threshold is None or math.isnan(float(threshold)):
        _check_keys_are_declared(query)
        return measurement, noise
    return measurement, replace(noise, threshold=float(threshold) + 0.5)  # what is above it is kept


def _check_keys_are_declared(query: Any) -> None:
    """Refuses a query without a threshold that publishes keys of the data as they are.

    A margin may call them public, and OpenDP takes keys of some grouping columns for all. A combination that nobody has
    is then seen to be missing, without noise: more cells look homogeneous than noise alone would let. Every key is
    declared where the last step of the plan is a join that keeps all rows of a frame with all grouping columns
    (with_keys).
    """
    plan = object.__getattribute__(query, "polars_plan").explain(optimized=False)
    grouped = [line.rpartition(" BY [")[2] for line in plan.splitlines() if " BY [" in line]
    if not grouped and "AGGREGATE" not in plan:
        return  # one count of all records
    kind, _, rest = plan.partition(":\n")
    left, _, right = rest.partition("\nRIGHT PLAN ON: [")
    counted = {"LEFT JOIN": right, "RIGHT JOIN": left}.get(kind, "")
    joined = set(COLUMN.findall(rest.partition("\n")[0]))
    if len(grouped) != 1 or "AGGREGATE" not in counted or not joined.issuperset(COLUMN.findall(grouped[0])):
        _refuse(
            "the query publishes keys of the data as they are: a combination that nobody has is seen to be missing, "
            "without noise",
            fix="declare every combination of all grouping columns, as the last step: with_keys(...)",
        )


def _read_marginal(table: Any, marginal: Sequence[str] | None, mechanism: str | None) -> _NoiseOfCounts:
    """The noise of one measured marginal of a contingency table."""
    if marginal is None:
        _refuse(
            "the cells of a ContingencyTable are fitted to several noisy marginals: none of them is a count plus noise",
            fix='name a marginal that was measured, such as marginal=["age", "income"], or audit the fitted counts',
        )
    if mechanism is None:
        _refuse(
            "a contingency table does not say which noise its marginals have",
            fix='say it: mechanism="geometric" where the session spends an epsilon, "discrete-gaussian" where it '
            "spends a rho",
        )
    require_word("mechanism", mechanism, OF_MARGINALS)
    measured = getattr(table.marginals, "by_clique", table.marginals)  # since 0.16, a list for each
    found = next((each for clique, each in measured.items() if sorted(clique) == sorted(marginal)), None)
    if found is None:
        known = "; ".join(", ".join(clique) for clique in measured)
        raise InvalidInput("this marginal was not measured", got=", ".join(marginal), allowed=known)
    observations = found if isinstance(found, list) else [found]
    whole = all(float(count).is_integer() for each in observations for count in each.noisy_measurement)
    if len(observations) != 1 or not whole:
        _refuse("this marginal was measured several times: together, they are no counts with one noise")
    discovered = [column for column in marginal if column in table.thresholds]
    if discovered:
        _refuse(
            "the keys of a column were found in the data: whether one is there has a delta of its own",
            got=", ".join(discovered),
            fix="declare them: contingency_table(keys=..., cuts=...)",
        )
    gaussian = mechanism == "discrete-gaussian"
    deviation = float(observations[0].stddev)
    return _NoiseOfCounts(gaussian, True, deviation if gaussian else deviation / math.sqrt(2.0))


def _ask_neighbours(given: Neighbours | None) -> Neighbours:
    """What whoever asks says of neighbours, where the object does not."""
    if given is None:
        _refuse(
            "a measurement on counts alone does not say how far one record moves them",
            fix='say it: neighbours="add-remove", or "replace"',
        )
    require_word("neighbours", given, NEIGHBOURS)
    return given


def _read_measurement(measurement: Any) -> _NoiseOfCounts:
    """How a measurement was made, step by step from the outside."""
    made = getattr(measurement, "__opendp_dict__", None)
    if not isinstance(made, dict):
        _refuse("the measurement does not say how it was made", fix="use opendp 0.14 to 0.16")
    name, values = str(made.get("__function__")), made.get("__kwargs__") or {}
    if name in WRAPPERS:
        inner = _read_measurement(values["measurement"])
        return replace(inner, delta=values.get("delta", inner.delta))
    if name == "make_chain_mt":
        _check_counts(values["transformation0"])
        return _read_measurement(values["measurement1"])
    if name in ("make_laplace", "make_geometric", "make_gaussian", "make_laplace_threshold", "make_gaussian_threshold"):
        return _read_noise(name, values)
    if name == "make_private_lazyframe":
        _refuse("a measurement on frames does not say its scale", fix="give the query that it was made of")
    if name == "make_chain_pm":
        _refuse("something is done to the noisy counts afterwards", fix="give the measurement before that step")
    _refuse("this measurement adds no Laplace or Gaussian noise to counts", got=name)


def _read_noise(name: str, values: Mapping[str, Any]) -> _NoiseOfCounts:
    if values.get("bounds") is not None:
        _refuse("noisy counts that are kept within bounds are not known here", got="bounds")
    if values.get("k") is not None:
        _refuse("noise on a grid of its own is not known here", got="k")
    integer = "T=i" in str(values["input_domain"]) or "T=u" in str(values["input_domain"])
    noise = _NoiseOfCounts("gaussian" in name, integer, float(values["scale"]))
    if not name.endswith("_threshold"):
        return noise
    if not integer:
        _refuse("a threshold on counts that are no whole numbers is not known here")
    return replace(noise, threshold=float(values["threshold"]) - 0.5)  # from it on, counts are kept


def _check_counts(transformation: Any) -> None:
    """Refuses noise on anything that is no count of records."""
    made = getattr(transformation, "__opendp_dict__", {})
    name, values = str(made.get("__function__")), made.get("__kwargs__") or {}
    if name == "make_chain_tt":
        _check_counts(values["transformation1"])  # the last step
    elif name not in COUNTS:
        _refuse("the measurement counts no records before it adds noise", got=name, fix=f"one of {', '.join(COUNTS)}")


def _find_neighbours(measurement: Any, noise: _NoiseOfCounts, given: Neighbours | None) -> Neighbours:
    """How neighbouring tables differ, by the metric of the input where that is one of records."""
    if given is not None:
        require_word("neighbours", given, NEIGHBOURS)
    metric = str(measurement.input_metric).partition("(")[0].partition("<")[0]
    if metric in SENSITIVITIES:
        return _ask_neighbours(given)
    if metric not in METRICS:
        _refuse("neighbouring tables of this kind are not known here", got=metric)
    if given not in (None, METRICS[metric]):
        _refuse(
            "the measurement itself says how neighbouring tables differ",
            got=f"neighbours={given!r}, where it has {METRICS[metric]!r}",
            fix="leave neighbours out",
        )
    _check_loss(measurement, noise, METRICS[metric])
    return METRICS[metric]


def _check_loss(measurement: Any, noise: _NoiseOfCounts, neighbours: Neighbours) -> None:
    """Refuses where one record costs something else by OpenDP's own map: it moves more than one count by one."""
    while measurement.__opendp_dict__["__function__"] in WRAPPERS:
        measurement = measurement.__opendp_dict__["__kwargs__"]["measurement"]
    loss = measurement.map(1)
    loss = float(loss[0] if isinstance(loss, tuple) else loss)
    l1 = 1.0 if neighbours == "add-remove" else 2.0
    expected = l1 / (2.0 * noise.scale**2) if noise.gaussian else l1 / noise.scale
    if not math.isclose(loss, expected, rel_tol=TOLERANCE):
        _refuse(
            "by OpenDP's privacy map, one record does not move one count by one",
            got=f"a loss of {loss:g}, where noise of scale {noise.scale:g} on such counts costs {expected:g}",
        )


def _make(noise: _NoiseOfCounts, neighbours: Neighbours, delta: float | None) -> Mechanism:
    """The mechanism with that noise; for Gaussian noise, at the epsilon that the delta asks for."""
    l1 = 1.0 if neighbours == "add-remove" else 2.0
    threshold = USUAL_THRESHOLD if noise.threshold is None else noise.threshold
    if not noise.gaussian:
        if delta is not None:
            _refuse("Laplace noise takes no delta", got=f"delta={delta!r}", fix="leave delta out")
        pure = Geometric if noise.integer else Laplace
        return pure(epsilon=l1 / noise.scale, neighbours=neighbours, threshold=threshold)
    if delta is None and noise.delta is None:
        _refuse("Gaussian noise is stated at a delta, and none is known", fix="give delta=1e-6, or your own")
    if delta is not None and noise.delta is not None and delta != noise.delta:
        _refuse("the measurement fixes another delta", got=f"delta={delta!r}", fix="leave delta out")
    stated = require_within("delta", delta if noise.delta is None else noise.delta, above=0, below=1)
    sigma = noise.scale / math.sqrt(l1)
    limited = DiscreteGaussian if noise.integer else AnalyticGaussian
    epsilon = _find_epsilon(sigma, stated, noise.integer)
    return limited(epsilon=epsilon, delta=stated, neighbours=neighbours, threshold=threshold)


def _find_epsilon(sigma: float, delta: float, integer: bool) -> float:
    """The epsilon of Gaussian noise on a count of sensitivity 1, by the same conversion that finds the noise."""

    def excess(epsilon: float) -> float:
        log_delta = zcdp_log_delta(0.5 / sigma**2, epsilon) if integer else gaussian_log_delta(sigma, epsilon)
        return log_delta + SAFE - math.log(delta)

    if excess(SMALLEST_EPSILON) <= 0:
        _refuse(
            "so much noise meets this delta at any epsilon",
            got=f"scale {sigma:g} at delta {delta:g}",
            fix="state it at a smaller delta",
        )
    return find_smallest(excess)

"""`release`: the table itself, differentially private, with noise from OpenDP."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.decide.policies import Policies
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.distributions import USUAL_THRESHOLD, find_first
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.publish.releasing.consistency import project_whole, secure_keys
from cellrisk.publish.releasing.domain import LARGEST_COUNT, ReleasedDomain, Rule, read_domain
from cellrisk.publish.releasing.files import check_format, decode, find_count_column, read_content
from cellrisk.publish.releasing.measurement import Measurement, calibrate
from cellrisk.publish.releasing.published_totals import PublishedTotals, check_constrained, find_groups, read_frame
from cellrisk.publish.releasing.release_result import Release, build_frame
from cellrisk.risk.ceilings import ceiling
from cellrisk.system.arrays import Integers
from cellrisk.system.checks import read_texts
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.progress import Progress, StepCounter

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.policies import Policy

__all__ = ["Release", "release"]

DENSE_BY_ITSELF = 1_000_000
"""Domains up to this size are listed whole by default."""
MOST_ROWS = 50_000_000
MOST_EXCLUDED = 20
"""Excluded places cost a twentieth of what a row does."""


def release(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    sensitive: str | None = None,
    exclude: Sequence[Rule] = (),
    may_be_missing: str | Sequence[str] = (),
    observed_levels: bool | str | Sequence[str] = (),
    clamp: bool = True,
    dense: bool | None = None,
    parents: Any = None,
    parent_count: str | None = None,
    disclosures: Sequence[str] = (),
    spreadsheet_safe: bool = False,
    policy: Policy | Policies | None = None,
    progress: Progress | None = None,
) -> Release:
    """Release the counts of one sensitive attribute in the cells of the quasi-identifiers, with noise: fit to publish.

    Every count of the domain, the empty ones too, gets independent integer noise from OpenDP, and OpenDP's own privacy
    map confirms the loss. The domain is every combination of declared labels; it must not depend on the records. Counts
    below the mechanism's threshold become zero.

    Records outside the domain are refused or left out, by the table's ``outside``: those with a missing value in a
    declared column that is not in ``may_be_missing``, and those in an excluded combination. If they are refused,
    whether there is a release depends on the raw data, and the description says so.

    Parameters
    ----------
    table
        Made by `tabulate`.
    mechanism, epsilon, delta, neighbours, threshold
        A mechanism such as `Geometric`, or its name with its parameters.
    sensitive
        Which sensitive attribute; may be left out if the table has one.
    exclude
        Structural zeros: each rule maps columns to labels and leaves out the combinations that match in all its
        columns, such as ``[{"sex": "m", "pregnant": "yes"}]``.
    may_be_missing
        Columns that can hold missing values. They have a label for it, whether any is missing or not.
    observed_levels
        Columns whose labels may be those that occur, or True for all that are not declared; the guarantee then does not
        cover which values of them exist.
    clamp
        False keeps negative counts, so sums are unbiased; the threshold must then be the usual one.
    dense
        True draws and lists every count; False lists positive counts alone, in time and memory for these only, so a
        domain of 10^9 is possible; the default is True up to a million counts. Both have exactly the same distribution.
    parents
        Published counts of a coarser table, which these must add up to: the path of a release (.csv or .parquet), a
        data frame, or the answer of `release`, with some of these columns. After the noise, the nearest whole numbers
        that are not negative and add up to each parent are released, in least squares. They show the parents, so the
        guarantee is that of both together; if that of the parents is not known, none is, and the release says so.
    parent_count
        The parents' column of counts, if no description beside the file names it and it is not "count".
    disclosures
        Sentences for the description on what else was taken from the raw data, which the guarantee does not cover.
    spreadsheet_safe
        A CSV file gets an apostrophe before labels that a spreadsheet would take for formulas.
    policy
        One to obey beside those that are in force; a release that breaks one is refused before noise is drawn, and the
        description names those that were obeyed.
    progress
        Called now and then with the share that is done.

    >>> import cellrisk as cr
    >>> records = {"sex": ["f", "f", "m"], "job": ["cook", "smith", "cook"]}
    >>> levels = {"sex": ["f", "m"], "job": ["cook", "smith", "other"]}
    >>> import pandas as pd
    >>> table = cr.tabulate(pd.DataFrame(records), ["sex"], "job", levels=levels)
    >>> released = release(table, cr.Geometric(epsilon=1.0))
    >>> len(released.to_frame()), released.measurement.loss
    (6, 1.0)
    """
    require_table(table)
    mechanism = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    mechanism = mechanism.with_unit(table.unit)
    if not clamp and dense is False:
        raise InvalidInput("counts that keep their sign are all listed", fix="leave dense out, or clamp", code="clamp")
    if not clamp and mechanism.threshold != USUAL_THRESHOLD:
        what, allowed = "a threshold sets counts to zero and needs clamp", f"{USUAL_THRESHOLD}"
        raise InvalidInput(what, got=mechanism.threshold, allowed=allowed, code="clamp")
    sentences = read_texts("disclosures", disclosures, "sentences")
    measurement = calibrate(mechanism)
    policies = Policies.in_force(policy)
    policies.forbid(table, mechanism, table.attribute(sensitive).name)
    published, groups = None, None
    if parents is not None:
        check_constrained(mechanism, clamp, dense)
        published, dense = read_totals(parents, parent_count), True
        both = published.compose(mechanism)
        limit = ceiling(both).even_two if both is not None and both.pure else 1.0
        policies.forbid_joint("with the parent counts", math.inf if both is None else both.epsilon, limit)
    elif parent_count is not None:
        what = "names a column of parents, and there are none"
        raise InvalidInput(what, option="parent_count", fix="leave it out", code="no-parents")
    declared: Any = {"may_be_missing": may_be_missing, "observed_levels": observed_levels, "exclude": exclude}
    domain = read_domain(table if table.draw_again is None else table.draw_again(), sensitive, **declared)
    domain.check_size()
    listed = _choose_dense(domain, clamp, dense)
    if published is not None:
        groups = find_groups(published, domain)
    if listed:
        report = StepCounter(progress, domain.n_counts)
        pieces = [(places, measurement.add_noise(counts, report)) for places, counts in domain.pieces()]
        places, counts = (np.concatenate(columns) for columns in zip(*pieces, strict=True))
    else:
        _check_rows(domain, mechanism)
        places, counts = _draw_survivors(domain, measurement, mechanism.threshold, progress)
    counts = np.minimum(counts, LARGEST_COUNT)
    if groups is not None:
        counts = project_whole(counts, *groups, secure_keys)
    elif clamp:
        counts = np.where(counts < mechanism.threshold, 0, counts)
    return Release(
        mechanism=mechanism,
        measurement=measurement,
        quasi_identifiers=table.quasi_identifiers,
        sensitive=domain.sensitive,
        frame=build_frame(domain, places, counts),
        labels={axis.name: axis.labels for axis in domain.axes},
        domain_size=domain.n_counts,
        excluded=domain.size - domain.n_counts,
        clamp=clamp,
        dense=listed,
        observed_levels=domain.undeclared,
        may_be_missing=domain.may_be_missing,
        missing=table.missing,
        outside=table.outside,
        disclosures=(*sentences, *policies.disclosures),
        parents=published,
        spreadsheet_safe=spreadsheet_safe,
        policies=policies,
    )


def read_totals(given: Any, count: str | None = None) -> PublishedTotals:
    """Published totals: the path of a release (.csv or .parquet), a data frame, or the answer of `release`.

    The column of counts is the one that the file's description names, or ``count``, or one that is called "count".
    """
    import pandas as pd

    if isinstance(given, Release):
        totals = read_frame(given.frame, str(given.frame.columns[-1]), "the release that was given", given.dense)
        return replace(totals, guarantee=given.composed, exceptions=given.exceptions if given.composed else ())
    if isinstance(given, pd.DataFrame):
        return read_frame(given, count, "the data frame that was given")
    if not isinstance(given, (str, os.PathLike)):
        allowed = "a path, a data frame or a Release"
        got = type(given).__name__
        raise InvalidInput("must be a published table", option="parents", got=got, allowed=allowed, code="type")
    path = check_format(given)
    try:
        totals = replace(read_totals(Release.load(path)), name=path.name)
    except InvalidInput as refusal:
        if refusal.code not in ("no-description", "description"):
            raise  # else its counts are totals of which no guarantee is known
        totals = read_frame(decode(path, read_content(path)), count or find_count_column(path), path.name)
    return replace(totals, path=path.absolute(), sha256=hashlib.sha256(read_content(path)).hexdigest())


def _draw_survivors(
    domain: ReleasedDomain, measurement: Measurement, threshold: float, progress: Progress | None
) -> tuple[Integers, Integers]:
    """The counts that are at least the threshold after noise, without a look at the empty ones that are not.

    Successes are drawn at every place as if all were empty, and dropped where the place is not: what is left are
    independent successes at the empty places.
    """
    from cellrisk.publish.releasing.sparse_noise import draw_places

    positive, counts = domain.positive
    noisy = measurement.add_noise(counts, StepCounter(progress, max(len(counts), 1)))
    kept = noisy > threshold
    tail = measurement.tail(threshold)
    drawn = draw_places(tail, domain.size)
    empty = np.concatenate([places[~(domain.occupied(places) | domain.exclude(places))] for places in drawn])
    places = np.concatenate([positive[kept], empty])
    counts = np.concatenate([noisy[kept], tail.draw(len(empty))])
    order = np.argsort(places, kind="stable")  # the order must not tell which counts were positive
    return places[order], counts[order]


def _choose_dense(domain: ReleasedDomain, clamp: bool, dense: bool | None) -> bool:
    """Whether every count is listed."""
    small = domain.n_counts <= DENSE_BY_ITSELF and domain.size <= MOST_EXCLUDED * MOST_ROWS
    chosen = (not clamp or small) if dense is None else dense
    if chosen and max(domain.n_counts, domain.size / MOST_EXCLUDED) > MOST_ROWS:
        listed = f"list positive counts alone with {argument('dense', False)}"
        what = "the domain is too large to list every count"
        got = f"{domain.n_counts:,} counts, and {domain.size - domain.n_counts:,} excluded"
        fix = f"{listed}, and choose a threshold" if clamp else f"clamp, and {listed}"
        raise InvalidInput(what, got=got, allowed=f"up to {MOST_ROWS:,}", fix=fix, code="too-large")
    return chosen


def _check_rows(domain: ReleasedDomain, mechanism: Mechanism) -> None:
    """Refuse a sparse release that would not be small, from the size of the domain alone: how many counts are positive
    must not show in a refusal."""

    def expect(threshold: float) -> float:
        return max(domain.n_counts, domain.size / MOST_EXCLUDED) * float(mechanism.noise.p_positive(0, threshold))

    rows = expect(mechanism.threshold)
    if rows > MOST_ROWS:
        least = find_first(lambda first: expect(first - 0.5) <= MOST_ROWS) - 0.5
        what = "the release would have too many rows: noise makes that many empty counts positive"
        got, fix = f"about {rows:.2g} rows of {domain.n_counts:,}", f"threshold {least:g} or above makes it fit"
        raise InvalidInput(what, got=got, allowed=f"up to {MOST_ROWS:,}", fix=fix, code="too-large")

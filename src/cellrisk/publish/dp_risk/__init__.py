"""`publish_risk`: how risky a release is, as a figure that may itself be published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellrisk.counts.table import require_table
from cellrisk.decide.policies import Policies
from cellrisk.errors import InvalidInput, argument
from cellrisk.noise.mechanisms import USUAL_MECHANISM, Mechanism
from cellrisk.noise.mechanisms import mechanism as read_mechanism
from cellrisk.publish.dp_risk.sensitivity import UNIT, Sensitivity, count_units, find_sensitivity, sum_cells
from cellrisk.publish.releasing.domain import ReleasedDomain, read_domain
from cellrisk.publish.releasing.measurement import Measurement, calibrate_sum
from cellrisk.system.checks import require_within
from cellrisk.system.choices import MechanismName, Neighbours
from cellrisk.system.results import Result, find_words
from cellrisk.system.version import __version__

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.policies import Policy

__all__ = ["PublishedRisk", "publish_risk"]

FIGURE, MEANING = "caused", "people whose value a release reveals because of their own record"
CONFIDENCE = 0.95
FIGURE_EPSILON = {"least": 1e-9, "most": 100.0}
"""The range of the epsilon of a figure: with less, it would say nothing."""
NOTHING_NOTED = {"cohort": None, "purpose": "", "new_cohort": False, "part_of": None}


def forbid_figure(policies: Policies, mechanism: Mechanism, epsilon: float) -> None:
    """Refuse a figure about a release by this mechanism, at an epsilon of its own, if a policy forbids it."""
    breaches = [*policies.breaches_of_figure(mechanism, epsilon), *policies.breaches_of_unit(mechanism.unit)]
    if breaches:
        raise InvalidInput(f"the policy forbids this figure: {'; '.join(breaches)}", code="policy")


def read_ledger(ledger: Any, **noted: Any) -> Callable[[ReleasedDomain, float, Neighbours, str], None]:
    """A function that records the loss of a figure, with what a ledger is to note of it, if there is a ledger.

    Its last argument is the purpose that is noted if none was given.
    """
    if ledger is not None and not hasattr(ledger, "add_figure"):
        fix = "open one: Ledger('ledger.db')"
        raise InvalidInput("must be a Ledger", option="ledger", got=type(ledger).__name__, fix=fix, code="type")
    if ledger is None and noted != NOTHING_NOTED:
        fix = f"name one with {argument('ledger')}"
        raise InvalidInput("a cohort and a purpose are recorded in a ledger", fix=fix, code="no-ledger")

    def record(domain: ReleasedDomain, epsilon: float, neighbours: Neighbours, purpose: str) -> None:
        if ledger is not None:
            entry = {**noted, "cohort": noted["cohort"] or "everyone", "purpose": noted["purpose"] or purpose}
            columns = {"attribute": domain.sensitive, "quasi_identifiers": domain.quasi_identifiers}
            ledger.add_figure(**columns, epsilon=epsilon, neighbours=neighbours, unit=domain.unit, **entry)

    return record


def read_declared(
    table: FrequencyTable,
    sensitive: str | None,
    may_be_missing: str | Sequence[str],
    observed_levels: bool | str | Sequence[str],
) -> tuple[ReleasedDomain, tuple[str, ...]]:
    """The domain of a figure, and what a reader has to know of it: undeclared labels, records left out, refusals.

    How a column is read must not depend on one record, or that record could move every cell. So the labels of all
    columns are declared, as for a release, or those of quasi-identifiers accepted as they occur. The labels of the
    sensitive attribute are always declared, because the figure depends on their number.
    """
    attribute = table.attribute(sensitive)
    if not attribute.declared:
        what = "a figure that may be published needs the declared labels of the sensitive attribute"
        got, fix = f"the labels of '{attribute.name}' are those that occur", f"declare them with {argument('levels')}"
        raise InvalidInput(what, got=got, fix=fix, code="observed-labels")
    table = table.draw_again() if table.draw_again else table
    domain = read_domain(table, sensitive, may_be_missing=may_be_missing, observed_levels=observed_levels)
    words = find_words("release")
    said = words.say_left_out(table.missing, table.outside, "or with a missing value where none was declared")
    said += words.say_gates("figure", table.missing, table.outside)
    if domain.undeclared:
        occur = f"The labels of {', '.join(domain.undeclared)} are those that occur in the records"
        said.insert(0, f"{occur}: the guarantee does not cover how these columns are read.")
    return domain, tuple(said)


@dataclass(frozen=True, repr=False, kw_only=True)
class PublishedFigure(Result):
    """A figure with a privacy loss of its own. It and everything printed with it may be published."""

    wording: ClassVar[str] = "dp_risk"

    sensitive: str
    quasi_identifiers: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """What a reader has to know about the records."""
    policies: Policies = field(default_factory=Policies)

    @property
    def statements(self) -> tuple[str, ...]:
        """What a reader of the figure has to know."""
        return tuple(find_words(self.wording).statements(self))

    def to_dict(self) -> dict[str, Any]:
        """The figure and how it was made, as JSON-ready values that may be published."""
        return {
            "cellrisk": __version__,
            "sentence": self.headline,
            "statements": list(self.statements),
            "quasi_identifiers": list(self.quasi_identifiers),
            "sensitive": self.sensitive,
            "policy": self.policies.to_dict(),
            "policy_not_judged": self.policies.not_judged,
        }


@dataclass(frozen=True, repr=False, kw_only=True)
class PublishedRisk(PublishedFigure):
    """How many people a release would reveal, with noise. Made by `publish_risk`."""

    value: float
    """The figure with noise; below 0 where the noise is."""
    low: float
    high: float
    """The figure without noise lies between them with 95% confidence; a figure is never below 0."""
    epsilon: float
    """What this figure costs, beside the release that it speaks of."""
    mechanism: Mechanism
    """The mechanism of the release."""
    n_levels: int
    """The declared number of labels."""
    sensitivity: Sensitivity
    noise: Measurement

    @property
    def scale(self) -> float:
        """The scale of the noise in people; its standard deviation is 1.41 times that."""
        return self.noise.scale * UNIT

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {
            "opendp": version("opendp"),
            "figure": FIGURE,
            "meaning": MEANING,
            "value": self.value,
            "interval": {"low": self.low, "high": self.high, "confidence": CONFIDENCE},
            "epsilon": self.epsilon,
            "sensitivity": vars(self.sensitivity),
            "noise": {
                "distribution": "discrete Laplace",
                "scale": self.scale,
                "unit": UNIT,
                "privacy_loss": {"epsilon": self.noise.loss},
            },
            "mechanism": {**self.mechanism.to_dict(), "threshold": self.mechanism.threshold},
            "levels": self.n_levels,
        }

    def _numbers(self) -> list[dict[str, Any]]:
        return [{"figure": FIGURE, "value": self.value, "low": self.low, "high": self.high}]


def publish_risk(
    table: FrequencyTable,
    mechanism: Mechanism | MechanismName = USUAL_MECHANISM,
    *,
    risk_epsilon: float,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    threshold: float | None = None,
    sensitive: str | None = None,
    may_be_missing: str | Sequence[str] = (),
    observed_levels: bool | str | Sequence[str] = (),
    ledger: Any = None,
    cohort: str | None = None,
    purpose: str = "",
    new_cohort: bool = False,
    part_of: str | None = None,
    policy: Policy | Policies | None = None,
) -> PublishedRisk:
    """How many people would a release reveal because of their own record, as a figure that may be published?

    Every figure of `assess` is computed from the raw data and is confidential. This one has noise, as much as one
    record can move it at ``risk_epsilon``, and is a function of what was declared, and of noise. Neighbouring tables
    are those of the mechanism.

    Parameters
    ----------
    table
        Made with declared labels and ``outside="drop"``, as for `release`.
    mechanism, epsilon, delta, neighbours, threshold
        How the release would be made.
    risk_epsilon
        What the figure may cost, beside the release.
    sensitive, may_be_missing, observed_levels
        As in `release`.
    ledger
        A `Ledger` in which the loss is recorded before noise is drawn; where no budget is left, nothing is shown.
    cohort, purpose, new_cohort, part_of
        What the ledger notes, as in `Ledger.add`.
    policy
        One to obey beside those that are in force. Their limits on epsilon hold for the release and for the figure, and
        that on the ceiling for the release; limits that look at the records are not judged, and the answer says so.

    >>> import pandas as pd
    >>> import cellrisk as cr
    >>> records = pd.DataFrame({"sex": ["f", "f", "m"], "job": ["cook", "smith", "cook"]})
    >>> levels = {"sex": ["f", "m"], "job": ["cook", "smith"]}
    >>> table = cr.tabulate(records, "sex", "job", levels=levels, outside="drop")
    >>> found = publish_risk(table, epsilon=1.0, risk_epsilon=0.5)
    >>> round(found.sensitivity.value, 6), round(found.scale, 4), found.noise.loss
    (0.337835, 0.6757, 0.5)
    """
    require_table(table, single="figures of the risk that may be published")
    made = read_mechanism(mechanism, epsilon=epsilon, delta=delta, neighbours=neighbours, threshold=threshold)
    made = made.with_unit(table.unit)
    loss = require_within("risk_epsilon", risk_epsilon, **FIGURE_EPSILON)
    record = read_ledger(ledger, cohort=cohort, purpose=purpose, new_cohort=new_cohort, part_of=part_of)
    policies = Policies.in_force(policy)
    forbid_figure(policies, made, loss)
    domain, notes = read_declared(table, sensitive, may_be_missing, observed_levels)
    sensitivity = find_sensitivity(made, domain.n_levels)
    noise = calibrate_sum(count_units(sensitivity), loss)
    units = sum_cells(domain.cells.profiles(), made)
    record(domain, loss, made.neighbours, f"a published figure: {MEANING}")
    noisy = int(noise.add_noise(np.array([units]))[0])
    radius = noise.radius(1.0 - CONFIDENCE)
    return PublishedRisk(
        value=noisy * UNIT,
        low=max(noisy - radius, 0) * UNIT,
        high=max(noisy + radius, 0) * UNIT,
        epsilon=loss,
        mechanism=made,
        sensitive=domain.sensitive,
        quasi_identifiers=domain.quasi_identifiers,
        n_levels=domain.n_levels,
        sensitivity=sensitivity,
        noise=noise,
        notes=notes,
        policies=policies,
    )

"""A house's policy: the risk that is measured, the limit on it, and the rule for delta, which every command obeys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from cellrisk.choice.requirement import Requirement, Test
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.measures import FORMS, MEASURES, WEIGHTS, choose_words
from cellrisk.mechanisms import Mechanism
from cellrisk.priors import Priors
from cellrisk.sweep import Question, Setting
from cellrisk.text import percent

if TYPE_CHECKING:
    from cellrisk.tables import FrequencyTable

DELTA_RULE = re.compile(r"(\d+(?:\.\d+)?(?:[eE]-?\d+)?)\s*/\s*n(?:\s*\^\s*(\d+(?:\.\d+)?))?")

DELTA_FROM_RECORDS = "Delta was set from the number of records, and tells its order of magnitude."
CHECKED = "Whether the limits are kept was found from the data, which the guarantee does not cover."


@dataclass(frozen=True)
class Policy:
    """Limits that hold whatever is asked for on the command line.

    >>> Policy(max_risk=0.3, delta="1/n").largest_delta(10_000)
    0.0001
    """

    max_risk: float | None = None
    max_people: float | None = None
    margin: float | None = None
    measure: str = "local"
    form: str = "tight"
    weights: str = "records"
    delta: float | str | None = None
    """The largest delta: a number, or a rule such as "1/n", "0.1/n" or "1/n^1.1" with n the number of records."""

    def __post_init__(self) -> None:
        Requirement(self.max_risk, self.max_people, self.margin)
        choose_words("measure", self.measure, tuple(MEASURES))
        choose_words("form", self.form, FORMS)
        choose_words("weights", self.weights, WEIGHTS)
        if self.delta is not None:
            self.largest_delta(2)

    @staticmethod
    def of(values: Any) -> Policy:
        """The table ``[policy]`` of a settings file."""
        if not isinstance(values, Mapping):
            raise InvalidInput("policy must be a table", fix="write [policy] on a line, and its settings below")
        known = {field.name.replace("_", "-"): field.name for field in fields(Policy)}
        for key in values:
            if key not in known:
                raise UnknownName("unknown setting in [policy]", got=key, allowed=", ".join(known))
        return Policy(**{known[key]: value for key, value in values.items()})

    @property
    def requirement(self) -> Requirement:
        return Requirement(self.max_risk, self.max_people, self.margin)

    @property
    def disclosures(self) -> list[str]:
        """What it tells of the raw data that this policy is kept, a sentence each."""
        rules = []
        limits = self.requirement.describe()
        if limits:
            rules.append(limits)
        if isinstance(self.delta, str) and DELTA_RULE.fullmatch(self.delta.strip()):
            rules.append(f"a delta of at most {self.delta.strip()}, n being the number of records")
        return [f"{CHECKED.removesuffix('.')}: the policy asks for {' and '.join(rules)}."] if rules else []

    def largest_delta(self, records: int) -> float | None:
        """The largest delta for that many records; None where there is no rule."""
        if self.delta is None:
            return None
        found = DELTA_RULE.fullmatch(self.delta.strip()) if isinstance(self.delta, str) else None
        if found is not None:
            exponent = float(found[2] or 1)
            return float(found[1]) / float(records**exponent)
        if isinstance(self.delta, str) or not 0 < self.delta < 1:
            raise InvalidInput(
                "the policy's delta cannot be read", got=repr(self.delta), allowed="a number, or a rule such as 1/n"
            )
        return float(self.delta)

    def question(self, table: FrequencyTable, priors: Priors) -> Question:
        return Question.of(table, self.measure, self.form, self.weights, priors)

    def breaches(self, table: FrequencyTable, mechanism: Mechanism, priors: Priors) -> list[str]:
        """What this mechanism breaks on this table, one line a breach; none where the policy is kept."""
        found = []
        setting = Setting(mechanism.name, mechanism.delta, mechanism.neighbours, mechanism.threshold)
        question = self.question(table, priors)
        epsilon = np.array([mechanism.epsilon])
        if Test(self.requirement, question, setting).excess(mechanism) > 0:
            risk = percent(float(question.ask(setting, epsilon).max()))
            found.append(f"the policy asks for {self.requirement.describe()} ({question.name}); it is {risk}")
        largest = self.largest_delta(table.n_records)
        if largest is not None and mechanism.delta > largest:
            found.append(f"the policy allows delta up to {largest:.4g}; got {mechanism.delta:g}")
        return found

    def tighten(
        self, max_risk: float | None, max_people: float | None, margin: float | None
    ) -> tuple[float | None, float | None, float | None]:
        """The limits given with those of the policy where none was; a looser one is refused."""
        pairs = {
            "max-risk": (max_risk, self.max_risk),
            "max-people": (max_people, self.max_people),
            "margin": (margin, self.margin),
        }
        for name, (given, own) in pairs.items():
            if given is not None and own is not None and given > own:
                raise InvalidInput(f"--{name} is looser than the policy", got=given, allowed=f"up to {own:g}")
        risk, people, above = (own if given is None else given for given, own in pairs.values())
        return risk, people, above

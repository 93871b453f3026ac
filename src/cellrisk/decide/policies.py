"""The policies in force, taken together: the one place that says which limits hold, for commands, Python and the page.

A limit can be tightened by whoever asks, and never loosened: every policy is judged by its own risk, and the tightest
limit of each kind holds. What judges them is loaded where there is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.decide.policy_files import SettingsFile, find_policy_files
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism
from cellrisk.system.text import as_given
from cellrisk.system.words import MechanismName

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.limits import Limit, RiskDefinition
    from cellrisk.decide.policy import Policy
    from cellrisk.noise.perturbations import Perturbation


NO_POLICY = "No policy was in force."


class PolicyBreach(InvalidInput):
    """A release that a policy forbids."""

    exit_code = 3


@dataclass(frozen=True)
class Obeyed:
    """A policy, and where it comes from."""

    policy: Policy
    file: str | None = None
    """The name of its file, without folders; None where it was given in Python."""
    digest: str | None = None
    remark: str | None = None

    @staticmethod
    def of(file: SettingsFile) -> Obeyed:
        from cellrisk.decide.policy import Policy

        try:
            return Obeyed(Policy.of(file.policy), file.name, file.digest, file.remark)
        except CellriskError as refusal:
            raise refusal.within(f"the policy in {file.name} cannot be used") from None

    def describe(self) -> str:
        if self.file is None:
            return "one given in Python"
        remark = f"; {self.remark}" if self.remark else ""
        return f"{self.file} (sha256 {self.digest}{remark})"

    def to_dict(self) -> dict[str, Any]:
        own = self.policy
        return {
            "file": self.file,
            "sha256": self.digest,
            "limits": own.maxima,
            "risk": {"measure": own.measure, "form": own.form, "weights": own.weights, "attack": own.attack},
            "attacker": {"certainty": own.certainty, "belief": own.belief},
            "delta": own.delta,
            "remark": self.remark,
        }


@dataclass(frozen=True)
class Policies:
    """The policies that are obeyed. They are false, as a truth value, where there is none.

    >>> from cellrisk import Policy
    >>> both = Policies((Obeyed(Policy(max_risk=0.3)), Obeyed(Policy(max_risk=0.2, delta="1/n"))))
    >>> both.largest_delta(100), Policies().describe()
    (0.01, 'No policy was in force.')
    """

    obeyed: tuple[Obeyed, ...] = ()

    @staticmethod
    def in_force(*more: Policy | Policies | SettingsFile | None) -> Policies:
        """Reads the administrator's files and adds the policies given; no policy replaces another."""
        found = [Obeyed.of(file) for file in find_policy_files()]
        for given in more:
            if isinstance(given, Policies):
                found += given.obeyed
            elif isinstance(given, SettingsFile):
                found.append(Obeyed.of(given))
            elif given is not None:
                from cellrisk.decide.policy import Policy

                if not isinstance(given, Policy):
                    raise InvalidInput("policy must be a Policy", got=f"a {type(given).__name__}")
                found.append(Obeyed(given))
        different: list[Obeyed] = []
        for each in found:
            if not any((each.policy, each.digest) == (other.policy, other.digest) for other in different):
                different.append(each)
        return Policies(tuple(different))

    def __bool__(self) -> bool:
        return bool(self.obeyed)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The strictest limit on each metric."""
        if not self.obeyed:
            return ()
        from cellrisk.decide.limits import tightest

        return tightest(limit for each in self.obeyed for limit in each.policy.limits)

    @property
    def on_risks(self) -> tuple[tuple[RiskDefinition, Limit], ...]:
        """The limits on risks, each with its risk."""
        if not self.obeyed:
            return ()
        from cellrisk.decide.limits import RiskMetric

        return tuple((limit.metric.risk, limit) for limit in self.limits if isinstance(limit.metric, RiskMetric))

    def join(self, given: Sequence[Limit], risk: RiskDefinition) -> tuple[Limit, ...]:
        """The limits given, made stricter by the policies' on the same metric, then the others of theirs.

        If the policies alone limit a risk, the one asked for comes first; one that none of them limits is refused.
        """
        if not self.obeyed:
            return tuple(given)
        from cellrisk.decide.limits import RiskDefinition, RiskMetric, tightest

        joined = tightest((*given, *self.limits))
        if self.on_risks and not any(isinstance(limit.metric, RiskMetric) for limit in given):
            same = any(limited.words == risk.words for limited, _ in self.on_risks)
            if not same and risk.words != RiskDefinition().words:
                self.fix_words(risk.words)
            joined = tuple(
                sorted(
                    joined,
                    key=lambda each: isinstance(each.metric, RiskMetric) and each.metric.risk.words != risk.words,
                )
            )
        return joined

    def fix_words(self, given: dict[str, str]) -> dict[str, str]:
        """The measure, form and weights of the first policy that these words fit; refuses words that fit none.

        >>> from cellrisk import Policy
        >>> Policies((Obeyed(Policy(max_risk=0.3)),)).fix_words({"form": "tight"})["measure"]
        'local'
        """
        if not self.on_risks:
            return given
        for risk, _ in self.on_risks:
            words = risk.words
            if all(words[name] == word for name, word in given.items()):
                return words
        for name, word in given.items():
            allowed = dict.fromkeys(risk.words[name] for risk, _ in self.on_risks)
            if word not in allowed:
                raise InvalidInput(
                    "is fixed by the policy",
                    option=name,
                    got=word,
                    allowed=", ".join(allowed),
                    fix="change the policy",
                    code="fixed-by-policy",
                )
        raise InvalidInput(
            "no policy is on that risk", got=", ".join(given.values()), fix="change the policy", code="fixed-by-policy"
        )

    def check_tighter(self, given: Sequence[Limit]) -> None:
        """Refuses a limit that is looser than a policy's on the same metric."""
        for limit in given:
            for own in self.limits:
                if own.metric == limit.metric and limit.maximum > own.maximum:
                    raise InvalidInput(
                        "is looser than the policy",
                        option=limit.name,
                        got=limit.maximum,
                        allowed=f"up to {as_given(own.maximum)}",
                        code="looser-than-policy",
                    )

    def largest_delta(self, records: int) -> float | None:
        """The largest delta for that many records; None where there is no rule."""
        found = [each.policy.largest_delta(records) for each in self.obeyed]
        return min((delta for delta in found if delta is not None), default=None)

    def choose_delta(
        self, mechanism: Mechanism | MechanismName | Sequence[Mechanism | MechanismName], delta: Any, records: int
    ) -> Any:
        """The delta to be used: the one given, or the largest that the policies allow where a mechanism needs one.

        Refuses one that is larger than they allow. Mechanisms that are objects bring their own delta.
        """
        largest = self.largest_delta(records)
        if largest is None:
            return delta
        from cellrisk.risk.sweep import list_mechanisms

        mechanisms = list_mechanisms(mechanism)
        own = [each.delta for each in mechanisms if isinstance(each, Mechanism)]
        if delta is None and not own:
            return largest if any(name in MECHANISMS and not MECHANISMS[name].pure for name in mechanisms) else None
        given = own if delta is None else [delta] if isinstance(delta, (int, float)) else list(delta)
        if given and max(given) > largest:
            raise InvalidInput("delta is larger than the policy allows", got=max(given), allowed=f"up to {largest:.4g}")
        return delta

    def breaches(
        self, table: FrequencyTable, mechanism: Mechanism | Perturbation, sensitive: str | None = None
    ) -> list[str]:
        """What this mechanism breaks on this table, one line a breach; none where every policy is kept."""
        found = [line for each in self.obeyed for line in each.policy.breaches(table, mechanism, sensitive)]
        return list(dict.fromkeys(found))

    def breaches_without_data(self, mechanism: Mechanism) -> list[str]:
        """What this mechanism breaks on any table: the limits on the ceiling and on epsilon."""
        found = [limit.breach((), mechanism) for limit in self.limits if not limit.uses_data]
        return [f"the policy asks for {each}" for each in found if each is not None]

    def breaches_of_figure(self, mechanism: Mechanism, epsilon: float) -> list[str]:
        """What a figure breaks that is published about a release by this mechanism, at an epsilon of its own.

        Limits that look at the records are not judged here: whether they are kept would tell of the records.
        """
        found = self.breaches_without_data(mechanism)
        for limit in self.limits:
            if limit.name == "max_epsilon" and epsilon > limit.maximum:
                found.append(f"the policy asks for {limit.describe()}; that of the figure is {epsilon:g}")
        return found

    @property
    def not_judged(self) -> str | None:
        """Which limits look at the records, in a sentence for whoever publishes a figure; None where none does."""
        names = [limit.describe() for limit in self.limits if limit.uses_data]
        names += ["a delta by the number of records" for each in self.obeyed if isinstance(each.policy.delta, str)][:1]
        if not names:
            return None
        return (
            f"Not judged here, because whether it is kept would tell of the records: {'; '.join(names)}. release and "
            "assess judge it, for the curator."
        )

    def largest_epsilon(self, mechanism: Mechanism) -> float:
        """The largest epsilon that the limits on the ceiling and on epsilon allow, on any table."""
        limits = [limit for limit in self.limits if not limit.uses_data]
        if not limits:
            return math.inf
        from cellrisk.decide.limits import SMALLEST_EPSILON, find_largest_without_data

        largest, _ = find_largest_without_data(limits, mechanism)
        if largest is None:
            raise InvalidInput(f"no epsilon of {mechanism.describe()} from {SMALLEST_EPSILON:g} on keeps the policy")
        return largest

    def forbid(self, table: FrequencyTable, mechanism: Mechanism, sensitive: str | None = None) -> None:
        """Refuses a release that breaks a policy."""
        breaches = self.breaches(table, mechanism, sensitive)
        if breaches:
            raise PolicyBreach(f"the policy forbids this release: {'; '.join(breaches)}")

    def forbid_joint(self, what: str, epsilon: float, even_two: float) -> None:
        """Refuses releases that together break a policy's limit on epsilon or on the ceiling."""
        values = {"max_epsilon": epsilon, "max_ceiling": even_two}
        for limit in self.limits:
            if values.get(limit.name, 0.0) > limit.maximum:
                breach = limit.say_breach(values[limit.name])
                raise PolicyBreach(f"the policy forbids this release: {what}, the policy asks for {breach}")

    @property
    def disclosures(self) -> list[str]:
        """Sentences on what the public learns of the raw data from the fact that these policies are kept."""
        return list(dict.fromkeys(sentence for each in self.obeyed for sentence in each.policy.disclosures))

    def describe(self) -> str:
        """Which policies were obeyed, in a sentence."""
        if not self.obeyed:
            return NO_POLICY
        plural = "Policy" if len(self.obeyed) == 1 else "Policies"
        return f"{plural} obeyed: {', '.join(each.describe() for each in self.obeyed)}."

    def to_dict(self) -> dict[str, Any] | None:
        """What ``--json`` prints under ``policy``; None where there is none."""
        return {"obeyed": [each.to_dict() for each in self.obeyed]} if self.obeyed else None

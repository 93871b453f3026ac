"""The policies in force, taken together: which limits hold, for commands, Python and the web app.

A limit can be tightened by those who ask, and never loosened: every policy is judged by its own risk, and the tightest
limit of each kind holds. What judges them is loaded if there is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cellrisk.decide.policy_files import SettingsFile, find_policy_files
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism
from cellrisk.system.choices import MechanismName
from cellrisk.system.formatting import as_given
from cellrisk.system.results import find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.counts.unit import Unit
    from cellrisk.decide.limits import Limit, Method, RiskDefinition
    from cellrisk.decide.policy import Policy


class PolicyBreach(InvalidInput):
    """A release that a policy forbids."""

    exit_code = 3


@dataclass(frozen=True)
class Policies:
    """The policies that are obeyed. They are false, as a truth value, if there is none.

    >>> from cellrisk import Policy
    >>> both = Policies((Policy(max_risk=0.3), Policy(max_risk=0.2, delta="1/n")))
    >>> both.largest_delta(100), Policies().describe()
    (0.01, 'No policy was in force.')
    """

    obeyed: tuple[Policy, ...] = ()

    @staticmethod
    def in_force(*more: Policy | Policies | SettingsFile | None) -> Policies:
        """Read the administrator's files and add the policies given; no policy replaces another."""
        given = [*find_policy_files(), *(each for each in more if each is not None)]
        if not given:
            return Policies()
        from cellrisk.decide.policy import Policy

        found: list[Policy] = []
        for each in given:
            if isinstance(each, Policies):
                found += each.obeyed
            elif isinstance(each, SettingsFile):
                try:
                    found.append(Policy.of(each.policy, each))
                except CellriskError as refusal:
                    raise refusal.within(f"the policy in {each.name} cannot be used") from None
            elif isinstance(each, Policy):
                found.append(each)
            else:
                raise InvalidInput("policy must be a Policy", got=f"a {type(each).__name__}")
        distinct = {(repr(policy), policy.file and policy.file.digest): policy for policy in found}
        return Policies(tuple(distinct.values()))

    def __bool__(self) -> bool:
        return bool(self.obeyed)

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """The strictest limit on each metric."""
        if not self.obeyed:
            return ()
        from cellrisk.decide.limits import tightest

        return tightest(limit for policy in self.obeyed for limit in policy.limits)

    @property
    def risks(self) -> list[RiskDefinition]:
        """The risks that are limited."""
        return [limit.risk for limit in self.limits if limit.risk is not None]

    def join(self, given: Sequence[Limit], risk: RiskDefinition) -> tuple[Limit, ...]:
        """The limits given, made stricter by the policies' on the same metric, then the others of theirs.

        If the policies alone limit a risk, the one asked for comes first; one that none of them limits is refused.
        """
        if not self.obeyed:
            return tuple(given)
        from cellrisk.decide.limits import RiskDefinition, tightest

        joined = tightest((*given, *self.limits))
        if not self.risks or any(limit.risk is not None for limit in given):
            return joined
        if risk.words != RiskDefinition().words:
            self.fix_words(risk.words)
        return tuple(sorted(joined, key=lambda each: each.risk is not None and each.risk.words != risk.words))

    def fix_words(self, given: dict[str, str]) -> dict[str, str]:
        """The measure, form and weights of the first policy that these words fit; refuses words that fit none.

                >>> from cellrisk import Policy
        >>> Policies((Policy(max_risk=0.3),)).fix_words({"form": "tight"})["measure"]
            'local'
        """
        known = [risk.words for risk in self.risks]
        for words in known or [given]:
            if all(words[name] == word for name, word in given.items()):
                return words
        refused = {"fix": "change the policy", "code": "fixed-by-policy"}
        for name, word in given.items():
            allowed = dict.fromkeys(words[name] for words in known)
            if word not in allowed:
                raise InvalidInput(
                    "is fixed by the policy", option=name, got=word, allowed=", ".join(allowed), **refused
                )
        raise InvalidInput("no policy is on that risk", got=", ".join(given.values()), **refused)

    def check_tighter(self, given: Sequence[Limit]) -> None:
        """Refuse a limit that is looser than a policy's on the same metric."""
        for limit in given:
            most = min((own.maximum for own in self.limits if own.is_on_same(limit)), default=math.inf)
            if limit.maximum > most:
                raise InvalidInput(
                    "is looser than the policy",
                    option=limit.name,
                    got=limit.maximum,
                    allowed=f"up to {as_given(most)}",
                    code="looser-than-policy",
                )

    def largest_delta(self, records: int) -> float | None:
        """The largest delta for that many records; None if there is no rule."""
        found = [policy.largest_delta(records) for policy in self.obeyed]
        return min((delta for delta in found if delta is not None), default=None)

    def choose_delta(
        self, mechanism: Mechanism | MechanismName | Sequence[Mechanism | MechanismName], delta: Any, records: int
    ) -> Any:
        """The delta to be used: the one given, or the largest that the policies allow if a mechanism needs one.

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

    def breaches(self, table: FrequencyTable, method: Method, sensitive: str | None = None) -> list[str]:
        """What this mechanism or perturbation breaks on this table, a line for each breach."""
        return list(dict.fromkeys(line for policy in self.obeyed for line in policy.breaches(table, method, sensitive)))

    def breaches_without_data(self, mechanism: Mechanism) -> list[str]:
        """What this mechanism breaks on any table: the limits on the ceiling and on epsilon."""
        found = [limit.breach((), mechanism) for limit in self.limits if not limit.kind.uses_data]
        return [f"the policy asks for {each}" for each in found if each is not None]

    def breaches_of_figure(self, mechanism: Mechanism, epsilon: float) -> list[str]:
        """What a figure breaks that is published about a release by this mechanism, at an epsilon of its own.

        Limits that use the records are not judged here: whether they are kept would reveal something about them.
        """
        return self.breaches_without_data(mechanism) + [
            f"the policy asks for {limit.describe()}; that of the figure is {epsilon:g}"
            for limit in self.limits
            if limit.name == "max_epsilon" and epsilon > limit.maximum
        ]

    def breaches_of_unit(self, unit: Unit) -> list[str]:
        """What a unit of privacy lacks that the policies require, a line for each."""
        return [line for policy in self.obeyed for line in policy.breaches_of_unit(unit)]

    def largest_epsilon(self, mechanism: Mechanism) -> float:
        """The largest epsilon that the limits on the ceiling and on epsilon allow, on any table."""
        limits = [limit for limit in self.limits if not limit.kind.uses_data]
        if not limits:
            return math.inf
        from cellrisk.decide.limits import SMALLEST_EPSILON, find_largest_without_data

        largest, _ = find_largest_without_data(limits, mechanism)
        if largest is None:
            raise InvalidInput(f"no epsilon of {mechanism.describe()} from {SMALLEST_EPSILON:g} on keeps the policy")
        return largest

    def forbid(self, table: FrequencyTable, mechanism: Mechanism, sensitive: str | None = None) -> None:
        """Refuse a release that breaks a policy."""
        breaches = self.breaches(table, mechanism, sensitive)
        if breaches:
            raise PolicyBreach(f"the policy forbids this release: {'; '.join(breaches)}")

    def forbid_joint(self, what: str, epsilon: float, even_two: float) -> None:
        """Refuse releases that together break a policy's limit on epsilon or on the ceiling."""
        values = {"max_epsilon": epsilon, "max_ceiling": even_two}
        for limit in self.limits:
            if values.get(limit.name, 0.0) > limit.maximum:
                breach = find_words("limits").say_breach(limit, values[limit.name])
                raise PolicyBreach(f"the policy forbids this release: {what}, the policy asks for {breach}")

    @property
    def disclosures(self) -> list[str]:
        """Sentences on what the public learns about the raw data from the fact that these policies are kept."""
        return list(
            dict.fromkeys(sentence for policy in self.obeyed for sentence in find_words("limits").disclose(policy))
        )

    @property
    def not_judged(self) -> str | None:
        """Which limits use the records, in a sentence for those who publish a figure; None if none does."""
        found: str | None = find_words("limits").say_not_judged(self) if self.obeyed else None
        return found

    def describe(self) -> str:
        """Which policies were obeyed, in a sentence."""
        return str(find_words("limits").describe_policies(self))

    def to_dict(self) -> dict[str, Any] | None:
        """What ``--json`` prints under ``policy``; None if there is none."""
        return {"obeyed": [policy.to_dict() for policy in self.obeyed]} if self.obeyed else None

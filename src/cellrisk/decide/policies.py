"""The policies in force, taken together: the one place that says which limits hold, for commands, Python and the page.

A limit can be tightened by whoever asks, and never loosened: every policy is judged by its own risk, and the tightest
limit of each kind holds. What judges them is loaded where there is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.decide.policy_files import LIMITS, SettingsFile, find_policy_files
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism
from cellrisk.system.text import as_given
from cellrisk.system.words import MechanismName

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.decide.figure_limits import FigureLimit
    from cellrisk.decide.policy import Policy, RiskDefinition
    from cellrisk.decide.requirement import Condition, Requirement
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
            raise InvalidInput(f"the policy in {file.name} cannot be used: {refusal}") from None

    def describe(self) -> str:
        if self.file is None:
            return "one given in Python"
        remark = f"; {self.remark}" if self.remark else ""
        return f"{self.file} (sha256 {self.digest}{remark})"

    def to_dict(self) -> dict[str, Any]:
        own = self.policy
        limits = {name: getattr(own, name) for name in LIMITS}
        return {
            "file": self.file,
            "sha256": self.digest,
            "limits": {name: value for name, value in limits.items() if value is not None},
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
    def on_risks(self) -> tuple[tuple[RiskDefinition, Requirement], ...]:
        """Each risk that is limited, and its limits; a policy about delta alone has none."""
        found = [(each.policy.risk, each.policy.requirement) for each in self.obeyed]
        return tuple((risk, required) for risk, required in found if required is not None)

    @property
    def figure_limits(self) -> tuple[FigureLimit, ...]:
        """The strictest limit on each figure to decide by."""
        return self.join_figures(())

    def join_figures(self, given: Sequence[FigureLimit]) -> tuple[FigureLimit, ...]:
        """The limits given, made stricter by the policies' on the same figure, then the others of theirs."""
        every = [*given, *(limit for each in self.obeyed for limit in each.policy.figure_limits)]
        if not every:
            return ()
        from cellrisk.decide.figure_limits import join_figure_limits

        return join_figure_limits(every)

    def join(
        self, table: FrequencyTable, risk: RiskDefinition, needed: bool, **limits: float | None
    ) -> tuple[Condition, ...]:
        """The conditions to be kept: the limits given, made tighter by policies on the same risk, then the others.

        Without limits given, the policies' limits hold alone, and the first policy on that risk comes first. Where no
        risk is limited there is no condition; that is refused where one is ``needed``.
        """
        asked = any(value is not None for value in limits.values())
        if not (asked or needed or self.on_risks):
            return ()
        from cellrisk.decide.requirement import Condition, Requirement

        required: list[tuple[RiskDefinition, Requirement]] = []
        if asked or not self.on_risks:
            required.append((risk.without_unused_priors, Requirement(**limits)))
        leading = self.on_risks if required else self._leading(risk)
        for each, own in leading:
            other = each.without_unused_priors
            for place, (known, limit) in enumerate(required):
                if known == other:
                    required[place] = (known, limit.tighter(own))
                    break
            else:
                required.append((other, own))
        return tuple(Condition(limit, known.of(table)) for known, limit in required)

    def _leading(self, risk: RiskDefinition) -> tuple[tuple[RiskDefinition, Requirement], ...]:
        """The risks that policies limit, the one asked for first; refuses to be asked for one that none limits."""
        from cellrisk.decide.policy import RiskDefinition

        same = [each for each in self.on_risks if each[0].words == risk.words]
        if not same and risk.words != RiskDefinition().words:
            self.fix_words(risk.words)
        return (*same, *(each for each in self.on_risks if each not in same))

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
                    f"the policy fixes --{name}", got=word, allowed=", ".join(allowed), fix="change the policy"
                )
        raise InvalidInput("no policy is on that risk", got=", ".join(given.values()), fix="change the policy")

    def check_tighter(self, words: dict[str, str], **limits: float | None) -> None:
        """Refuses a limit that is looser than that of a policy on the risk of those words."""
        for each in self.obeyed:
            for name, given in limits.items() if each.policy.risk.words == words else ():
                own = getattr(each.policy.requirement, name, None)
                if given is not None and own is not None and given > own:
                    option, most = name.replace("_", "-"), as_given(own)
                    raise InvalidInput(f"--{option} is looser than the policy", got=given, allowed=f"up to {most}")

    def check_figures(self, given: Sequence[FigureLimit]) -> None:
        """Refuses a limit that is looser than a policy's on the same figure."""
        for limit in given:
            for own in self.figure_limits:
                if own.is_like(limit) and limit.most > own.most:
                    option = limit.name.replace("_", "-")
                    raise InvalidInput(
                        f"--{option} is looser than the policy", got=limit.most, allowed=f"up to {as_given(own.most)}"
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
        found = [limit.breach((), mechanism) for limit in self.figure_limits if not limit.uses_data]
        return [f"the policy asks for {each}" for each in found if each is not None]

    def breaches_of_figure(self, mechanism: Mechanism, epsilon: float) -> list[str]:
        """What a figure breaks that is published about a release by this mechanism, at an epsilon of its own.

        Limits that look at the records are not judged here: whether they are kept would tell of the records.
        """
        found = self.breaches_without_data(mechanism)
        for limit in self.figure_limits:
            if limit.name == "max_epsilon" and epsilon > limit.most:
                found.append(f"the policy asks for {limit.describe()}; that of the figure is {epsilon:g}")
        return found

    @property
    def not_judged(self) -> str | None:
        """Which limits look at the records, in a sentence for whoever publishes a figure; None where none does."""
        names = [limit.describe() for limit in self.figure_limits if limit.uses_data]
        names += [required.describe() for _, required in self.on_risks]
        names += ["a delta by the number of records" for each in self.obeyed if isinstance(each.policy.delta, str)][:1]
        if not names:
            return None
        return (
            f"Not judged here, because whether it is kept would tell of the records: {'; '.join(names)}. release and "
            "assess judge it, for the curator."
        )

    def largest_epsilon(self, setting: Mechanism) -> float:
        """The largest epsilon that the limits on the ceiling and on epsilon allow, on any table."""
        from cellrisk.decide.figure_limits import ReachWithoutData
        from cellrisk.decide.search import SMALLEST_EPSILON

        limits = [limit for limit in self.figure_limits if not limit.uses_data]
        largest = ReachWithoutData.of(limits, setting).largest
        if largest is None:
            raise InvalidInput(f"no epsilon of {setting.describe()} from {SMALLEST_EPSILON:g} on keeps the policy")
        return largest if limits else math.inf

    def forbid(self, table: FrequencyTable, mechanism: Mechanism, sensitive: str | None = None) -> None:
        """Refuses a release that breaks a policy."""
        breaches = self.breaches(table, mechanism, sensitive)
        if breaches:
            raise PolicyBreach(f"the policy forbids this release: {'; '.join(breaches)}")

    def forbid_joint(self, what: str, epsilon: float, even_two: float) -> None:
        """Refuses releases that together break a policy's limit on epsilon or on the ceiling."""
        figures = {"max_epsilon": epsilon, "max_ceiling": even_two}
        for limit in self.figure_limits:
            if figures.get(limit.name, 0.0) > limit.most:
                breach = limit.explain_breach(figures[limit.name])
                raise PolicyBreach(f"the policy forbids this release: {what}, {breach}")

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

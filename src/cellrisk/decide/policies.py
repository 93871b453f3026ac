"""The policies in force, taken together: the one place that says which limits hold, for commands, Python and the page.

A limit can be tightened by whoever asks, and never loosened: every policy is judged by its own risk, and the tightest
limit of each kind holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellrisk.decide.policy import Policy, Wish
from cellrisk.decide.policy_files import SettingsFile, find_policy_files
from cellrisk.decide.requirement import Condition, Requirement
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism
from cellrisk.risk.sweep import list_mechanisms

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable

__all__ = ["Obeyed", "Policies", "Policy", "Wish"]

NO_POLICY = "No policy was in force."


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
        limits = vars(own.requirement) if own.requirement is not None else {}
        return {
            "file": self.file,
            "sha256": self.digest,
            "limits": {name: value for name, value in limits.items() if value is not None},
            "risk": {"measure": own.measure, "form": own.form, "weights": own.weights, "attack": own.attack},
            "delta": own.delta,
            "remark": self.remark,
        }


@dataclass(frozen=True)
class Policies:
    """Every policy that is obeyed; false where there is none.

    >>> both = Policies((Obeyed(Policy(max_risk=0.3)), Obeyed(Policy(max_risk=0.2, delta="1/n"))))
    >>> both.largest_delta(100), Policies().describe()
    (0.01, 'No policy was in force.')
    """

    obeyed: tuple[Obeyed, ...] = ()

    @staticmethod
    def in_force(*more: Policy | Policies | SettingsFile | None, folder: Path | None = None) -> Policies:
        """The policies of the administrator's files, read now, and those given; none of them can drop another."""
        found = [Obeyed.of(file) for file in find_policy_files(folder)]
        for given in more:
            if isinstance(given, Policies):
                found += given.obeyed
            elif isinstance(given, Policy):
                found.append(Obeyed(given))
            elif isinstance(given, SettingsFile):
                found.append(Obeyed.of(given))
            elif given is not None:
                raise InvalidInput("policy must be a Policy", got=f"a {type(given).__name__}")
        different: list[Obeyed] = []
        for each in found:
            if not any((each.policy, each.digest) == (other.policy, other.digest) for other in different):
                different.append(each)
        return Policies(tuple(different))

    def __bool__(self) -> bool:
        return bool(self.obeyed)

    @property
    def on_risks(self) -> tuple[tuple[Wish, Requirement], ...]:
        """Each risk that is limited, and its limits; a policy about delta alone has none."""
        found = [(each.policy.wish, each.policy.requirement) for each in self.obeyed]
        return tuple((wish, required) for wish, required in found if required is not None)

    def join(self, table: FrequencyTable, wish: Wish, **limits: float | None) -> tuple[Condition, ...]:
        """What must be kept: the limits wished for, made tighter by policies on the same risk, then the others.

        Where none is wished for, those of the policies alone: the first of them that is on the risk wished for leads.
        """
        required: list[tuple[Wish, Requirement]] = []
        if any(value is not None for value in limits.values()) or not self.on_risks:
            required.append((wish.settled, Requirement(**limits)))
        leading = self.on_risks if required else self._leading(wish)
        for each, own in leading:
            risk = each.settled
            for place, (known, limit) in enumerate(required):
                if known == risk:
                    required[place] = (known, limit.tighter(own))
                    break
            else:
                required.append((risk, own))
        return tuple(Condition(limit, known.question(table)) for known, limit in required)

    def _leading(self, wish: Wish) -> tuple[tuple[Wish, Requirement], ...]:
        """The risks that are limited, those wished for first; refuses a wish that is none of them."""
        same = [each for each in self.on_risks if each[0].words == wish.words]
        if not same and wish.words != Wish().words:
            self.fix_words(wish.words)
        return (*same, *(each for each in self.on_risks if each not in same))

    def fix_words(self, given: dict[str, str]) -> dict[str, str]:
        """The words of the policy whose risk is asked for; refuses others. The words of the first where none is asked.

        >>> Policies((Obeyed(Policy(max_risk=0.3)),)).fix_words({"form": "tight"})["measure"]
        'local'
        """
        if not self.on_risks:
            return given
        for wish, _ in self.on_risks:
            words = wish.words
            if all(words[name] == word for name, word in given.items()):
                return words
        for name, word in given.items():
            allowed = dict.fromkeys(wish.words[name] for wish, _ in self.on_risks)
            if word not in allowed:
                raise InvalidInput(
                    f"the policy fixes --{name}", got=word, allowed=", ".join(allowed), fix="change the policy"
                )
        raise InvalidInput("no policy is on that risk", got=", ".join(given.values()), fix="change the policy")

    def check_tighter(self, words: dict[str, str], **limits: float | None) -> None:
        """Refuses a limit that is looser than that of a policy on the risk of those words."""
        for each in self.obeyed:
            for name, given in limits.items() if each.policy.wish.words == words else ():
                own = getattr(each.policy.requirement, name, None)
                if given is not None and own is not None and given > own:
                    option = name.replace("_", "-")
                    raise InvalidInput(f"--{option} is looser than the policy", got=given, allowed=f"up to {own:g}")

    def largest_delta(self, records: int) -> float | None:
        """The largest delta for that many records; None where there is no rule."""
        found = [each.policy.largest_delta(records) for each in self.obeyed]
        return min((delta for delta in found if delta is not None), default=None)

    def settle_delta(self, mechanism: Mechanism | str | Sequence[Mechanism | str], delta: Any, records: int) -> Any:
        """The delta given, which must be within the rules; the rules' own where none was given and one is taken.

        Mechanisms that are objects have their own.
        """
        largest = self.largest_delta(records)
        if largest is None:
            return delta
        mechanisms = list_mechanisms(mechanism)
        own = [each.delta for each in mechanisms if isinstance(each, Mechanism)]
        if delta is None and not own:
            return largest if any(name in MECHANISMS and not MECHANISMS[name].pure for name in mechanisms) else None
        given = own if delta is None else [delta] if isinstance(delta, (int, float)) else list(delta)
        if given and max(given) > largest:
            raise InvalidInput("delta is larger than the policy allows", got=max(given), allowed=f"up to {largest:.4g}")
        return delta

    def breaches(self, table: FrequencyTable, mechanism: Mechanism, sensitive: str | None = None) -> list[str]:
        """What this mechanism breaks on this table, one line a breach; none where every policy is kept."""
        found = [line for each in self.obeyed for line in each.policy.breaches(table, mechanism, sensitive)]
        return list(dict.fromkeys(found))

    def forbid(self, table: FrequencyTable, mechanism: Mechanism, sensitive: str | None = None) -> None:
        """Refuses a release that breaks a policy."""
        breaches = self.breaches(table, mechanism, sensitive)
        if breaches:
            raise InvalidInput(f"the policy forbids this release: {'; '.join(breaches)}")

    @property
    def disclosures(self) -> list[str]:
        """What it tells of the raw data that these policies are kept, a sentence each."""
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

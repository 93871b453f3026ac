"""Policies: limits that every command obeys, the risk that they are on, and the rule for delta.

A limit can be tightened by those who ask, and never loosened: every policy is judged by its own risk, and the tightest
limit on each metric holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cellrisk.decide.limits import (
    METRICS,
    SMALLEST_EPSILON,
    Limit,
    Method,
    RiskDefinition,
    find_largest_without_data,
    read_limits,
    tightest,
)
from cellrisk.decide.policy_files import SettingsFile, find_policy_files
from cellrisk.errors import CellriskError, InvalidInput, UnknownName
from cellrisk.noise.mechanisms import MECHANISMS, Mechanism
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, check_belief
from cellrisk.risk.sweep import list_mechanisms
from cellrisk.system.checks import is_number
from cellrisk.system.choices import (
    Attack,
    Form,
    MeasureName,
    MechanismName,
    PrivacyUnit,
    Weights,
    list_words,
    require_word,
)
from cellrisk.system.formatting import as_given
from cellrisk.system.results import find_words

if TYPE_CHECKING:
    from cellrisk.counts.table import FrequencyTable
    from cellrisk.counts.unit import Unit

LONGEST_NAME = 200
LEAST_CONSTANT, LARGEST_EXPONENT = 1e-100, 10.0
"""Within these, a rule for delta neither overflows nor becomes zero, whatever the number of records."""
DELTA_RULE = re.compile(r"(\d+(?:\.\d+)?(?:[eE]-?\d+)?)\s*/\s*n(?:\s*\^\s*(\d+(?:\.\d+)?))?")
DELTA_FROM_RECORDS = "Delta was set from the number of records, and tells its order of magnitude."


@dataclass(frozen=True)
class Policy:
    """Limits that hold whatever is asked for, on a risk of the policy's own, with the usual priors.

    Parameters
    ----------
    max_risk, max_people, margin
        The largest risk, the most people revealed on average, and the largest risk above chance.
    max_caused, max_person, max_ceiling, max_posterior, max_epsilon, max_error
        As in `choose`.
    max_certain, certainty, belief
        The largest share of a category learnt with that certainty by an attacker with that belief.
    harmful, unions
        Values to which ``max_certain`` is restricted, and sets of values that are also assessed as one (``also-as`` in
        a settings file), of tables that have them.
    measure, form, weights, attack
        The words of the risk, as in `assess`.
    delta
        The largest delta: a number, or a rule such as "1/n", "0.1/n" or "1/n^1.1" with n the number of records.
    unit
        "person" if the most records of one person must be stated, "enforced" if they must be limited by a column that
        identifies people.
    set_by, set_on
        Who has set these limits, in free words, and the date; reports name them.
    file
        The settings file that it was read from, without its other settings; None if it was given in Python.

    >>> Policy(max_risk=0.3, delta="1/n").largest_delta(10_000)
    0.0001
    """

    max_risk: float | None = None
    max_people: float | None = None
    margin: float | None = None
    max_caused: float | None = None
    max_certain: float | None = None
    max_person: float | None = None
    max_ceiling: float | None = None
    max_posterior: str | None = None
    max_epsilon: float | None = None
    max_error: int | None = None
    certainty: float = USUAL_CERTAINTY
    belief: str = USUAL_BELIEF
    harmful: str | Sequence[str] | None = None
    unions: str | Sequence[str] | None = None
    measure: MeasureName = "local"
    form: Form = "tight"
    weights: Weights = "records"
    attack: Attack = "homogeneity"
    delta: float | str | None = None
    unit: PrivacyUnit | None = None
    set_by: str | None = None
    set_on: date | str | None = None
    file: SettingsFile | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.unit is not None:
            require_word("unit", self.unit, list_words(PrivacyUnit))
        if self.delta is None and self.unit is None and not self.maxima:
            raise InvalidInput(
                "the policy has no limit",
                allowed=f"{', '.join(METRICS).replace('_', '-')}, delta or unit",
                fix="for example max-caused = 0.01",
                code="no-limit",
            )
        check_belief(self.belief)
        _ = self.limits
        self.largest_delta(2)
        if self.set_by is not None and not (isinstance(self.set_by, str) and 0 < len(self.set_by) <= LONGEST_NAME):
            allowed = f"a text of up to {LONGEST_NAME} characters"
            raise InvalidInput("set-by must be who has set the policy", allowed=allowed, code="set-by")
        if self.set_on is not None and (isinstance(self.set_on, datetime) or not isinstance(self.set_on, date)):
            try:
                object.__setattr__(self, "set_on", date.fromisoformat(str(self.set_on)))
            except ValueError:
                raise InvalidInput("set-on must be a date", allowed="such as 2026-05-04", code="set-on") from None

    @staticmethod
    def of(values: Any, file: SettingsFile | None = None) -> Policy:
        """Read a policy.

        Parameters
        ----------
        values, file
            The table ``[policy]`` of a settings file, and the file.
        """
        if not isinstance(values, Mapping):
            raise InvalidInput(
                "policy must be a table", fix="write [policy] on a line, its settings below", code="table"
            )
        known = {field.name.replace("_", "-"): field.name for field in fields(Policy) if field.name != "file"}
        known["also-as"] = known.pop("unions")
        for key in values:
            if key not in known:
                raise UnknownName("unknown setting in [policy]", got=key, allowed=", ".join(known), code="setting")
        return Policy(**{known[key]: value for key, value in values.items()}, file=file and replace(file, values={}))

    @property
    def maxima(self) -> dict[str, Any]:
        """The limits as they were given, by the names of their arguments."""
        return {name: getattr(self, name) for name in METRICS if getattr(self, name) is not None}

    @property
    def _attacks(self) -> dict[str, Any]:
        """What limits on attackers depend on."""
        return {name: getattr(self, name) for name in ("certainty", "belief", "harmful", "unions")}

    @property
    def risk(self) -> RiskDefinition:
        """The risk that this policy limits, whatever risk a command was asked for."""
        return RiskDefinition(self.measure, self.form, self.weights, self.attack)

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """The limits with what they are on."""
        return read_limits(**self.maxima, **self._attacks, risk=self.risk)

    def largest_delta(self, records: int) -> float | None:
        """The largest delta for that many records; None if there is no rule."""
        if self.delta is None:
            return None
        rule = DELTA_RULE.fullmatch(self.delta.strip()) if isinstance(self.delta, str) else None
        if rule is not None:
            constant, exponent = float(rule[1]), float(rule[2] or 1)
            if LEAST_CONSTANT <= constant <= 1 and 1 <= exponent <= LARGEST_EXPONENT:
                return constant / math.pow(max(records, 1), exponent)
        elif is_number(self.delta) and 0 < self.delta < 1:
            return float(self.delta)
        got = repr(self.delta)[:40] if isinstance(self.delta, (str, float)) else type(self.delta).__name__
        rules = f"c/n^k with c above 0 and up to 1, and k from 1 to {LARGEST_EXPONENT:g}"
        allowed = f"a number between 0 and 1, or a rule {rules}"
        raise InvalidInput("the policy's delta cannot be read", got=got, allowed=allowed, code="delta-rule")

    def breaches(self, table: FrequencyTable, method: Method, sensitive: str | None = None) -> list[str]:
        """The limits that this mechanism or perturbation breaks on this table, a line for each.

        A limit that cannot be judged for a perturbation is not kept, and its line says why; a rule for delta is kept.

        Parameters
        ----------
        table, method
            What would be released, and how: by a mechanism, or by a perturbation, which has no epsilon.
        sensitive
            The attribute that is released, if it is not all of them.
        """
        attributes = table.attributes if sensitive is None else (table.attribute(sensitive),)
        breaches = [limit.breach(attributes, method) for limit in self.limits]
        broken = [f"the policy asks for {breach}" for breach in breaches if breach is not None]
        broken += self.breaches_of_unit(table.unit)
        largest = self.largest_delta(table.n_records)
        if isinstance(method, Mechanism) and largest is not None and method.delta > largest:
            broken.append(f"the policy allows delta up to {largest:.4g}; got {method.delta:g}")
        return broken

    def breaches_of_unit(self, unit: Unit) -> list[str]:
        """What a unit of privacy lacks, a line, if it is not what the policy requires."""
        kept = self.unit is None or unit.enforced or (self.unit == "person" and unit.kind == "person")
        return [] if kept else [find_words("limits").say_unit(self.unit, unit)]

    @property
    def origin(self) -> str:
        """Who has set the policy, and when, as far as it says; else empty.

        >>> Policy(max_epsilon=1, set_by="the review board", set_on="2026-05-04").origin
        'set by the review board on 2026-05-04'
        """
        by, on = f" by {self.set_by}" if self.set_by else "", f" on {self.set_on}" if self.set_on else ""
        return f"set{by}{on}" if by or on else ""

    def describe(self) -> str:
        """Where the policy comes from."""
        if self.file is None:
            return "one given in Python"
        remark = f"; {self.file.remark}" if self.file.remark else ""
        return f"{self.file.name} (sha256 {self.file.digest}{remark})"

    def to_dict(self) -> dict[str, Any]:
        file = self.file
        return {
            "file": file and file.name,
            "sha256": file and file.digest,
            "limits": self.maxima,
            "risk": {**self.risk.words, "attack": self.attack},
            "attacker": Attacker.of(**self._attacks).to_dict(),
            "delta": self.delta,
            **({} if self.unit is None else {"unit": self.unit}),
            "remark": file and file.remark,
        }


class PolicyBreach(InvalidInput):
    """A release that a policy forbids."""

    exit_code = 3


@dataclass(frozen=True)
class Policies:
    """The policies that are obeyed. They are false, as a truth value, if there is none.

    >>> both = Policies((Policy(max_risk=0.3), Policy(max_risk=0.2, delta="1/n")))
    >>> both.largest_delta(100), Policies().describe()
    (0.01, 'No policy was in force.')
    """

    obeyed: tuple[Policy, ...] = ()

    @staticmethod
    def in_force(*more: Policy | Policies | SettingsFile | None) -> Policies:
        """Read the administrator's files and add the policies given; no policy replaces another."""
        given = [*find_policy_files(), *(each for each in more if each is not None)]
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
        return tightest(limit for policy in self.obeyed for limit in policy.limits)

    @property
    def risks(self) -> list[RiskDefinition]:
        """The risks that are limited."""
        return [limit.risk for limit in self.limits if limit.risk is not None]

    def join(self, given: Sequence[Limit], risk: RiskDefinition) -> tuple[Limit, ...]:
        """The limits given, made stricter by the policies' on the same metric, then the others of theirs.

        If the policies alone limit a risk, the one asked for comes first; one that none of them limits is refused.
        """
        joined = tightest((*given, *self.limits))
        if not self.risks or any(limit.risk is not None for limit in given):
            return joined
        if risk.words != RiskDefinition().words:
            self.fix_words(risk.words)
        return tuple(sorted(joined, key=lambda each: each.risk is not None and each.risk.words != risk.words))

    def fix_words(self, given: dict[str, str]) -> dict[str, str]:
        """The measure, form and weights of the first policy that these words fit; refuses words that fit none.

        >>> Policies((Policy(max_risk=0.3),)).fix_words({"form": "tight"})["measure"]
        'local'
        """
        known = [risk.words for risk in self.risks] or [given]
        for words in known:
            if given.items() <= words.items():
                return words
        raise InvalidInput(
            "the risk is fixed by the policy",
            got=", ".join(given.values()),
            allowed="; ".join(dict.fromkeys(", ".join(words[name] for name in given) for words in known)),
            fix="change the policy",
            code="fixed-by-policy",
        )

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
        found: str | None = find_words("limits").say_not_judged(self)
        return found

    def describe(self) -> str:
        """Which policies were obeyed, in a sentence."""
        return str(find_words("limits").describe_policies(self))

    def to_dict(self) -> dict[str, Any] | None:
        """What ``--json`` prints under ``policy``; None if there is none."""
        return {"obeyed": [policy.to_dict() for policy in self.obeyed]} if self.obeyed else None

"""A house's policy: limits that every command obeys, the risk that they are on, and the rule for delta."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cellrisk.decide.limits import METRICS, Limit, Method, RiskDefinition, read_limits
from cellrisk.decide.policy_files import SettingsFile
from cellrisk.errors import InvalidInput, UnknownName
from cellrisk.noise.mechanisms import Mechanism
from cellrisk.risk.attackers.attacker import Attacker
from cellrisk.risk.attacks import choose_risks
from cellrisk.risk.certainty import USUAL_BELIEF, USUAL_CERTAINTY, check_belief
from cellrisk.risk.priors import Alpha, Priors
from cellrisk.system.checks import is_number
from cellrisk.system.choices import (
    Attack,
    Form,
    MeasureName,
    PrivacyUnit,
    SizesFamily,
    SizesFit,
    Weights,
    list_words,
    require_word,
)
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
    """Limits that hold whatever is asked for, on a risk of the policy's own, with priors of its own.

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
    alpha, sizes, sizes_fit
        How its priors are found, as in `Priors`.
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
    alpha: Alpha | Mapping[str, Alpha] = "mle"
    sizes: SizesFamily = "poisson"
    sizes_fit: SizesFit = "mle"
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
        for name in ("attack", "measure", "form", "weights", "sizes", "sizes_fit", "belief"):
            if not isinstance(getattr(self, name), str):
                raise InvalidInput(f"{name.replace('_', '-')} must be one word", got=type(getattr(self, name)).__name__)
        choose_risks(self.attack, self.measure, self.form, self.weights)
        if not is_number(self.certainty):
            raise InvalidInput(
                "must be a number", option="certainty", got=type(self.certainty).__name__, allowed="such as 0.95"
            )
        check_belief(self.belief)
        _ = self.limits
        self.largest_delta(2)
        if self.set_by is not None and not (isinstance(self.set_by, str) and 0 < len(self.set_by) <= LONGEST_NAME):
            raise InvalidInput(
                "set-by must be a text that names who has set the policy", allowed=f"up to {LONGEST_NAME} characters"
            )
        if self.set_on is not None:
            object.__setattr__(self, "set_on", _read_date(self.set_on))

    @staticmethod
    def of(values: Any, file: SettingsFile | None = None) -> Policy:
        """Read a policy.

        Parameters
        ----------
        values, file
            The table ``[policy]`` of a settings file, and the file.
        """
        if not isinstance(values, Mapping):
            raise InvalidInput("policy must be a table", fix="write [policy] on a line, and its settings below")
        known = {field.name.replace("_", "-"): field.name for field in fields(Policy) if field.name != "file"}
        known["also-as"] = known.pop("unions")
        for key in values:
            if key not in known:
                raise UnknownName("unknown setting in [policy]", got=key, allowed=", ".join(known))
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
        priors = Priors(self.alpha, self.sizes, self.sizes_fit)
        return RiskDefinition(self.measure, self.form, self.weights, self.attack, priors)

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """The limits with what they are on."""
        return read_limits(**self.maxima, **self._attacks, risk=self.risk)

    @property
    def delta_from_records(self) -> bool:
        """Whether the largest delta depends on the number of records."""
        return isinstance(self.delta, str) and DELTA_RULE.fullmatch(self.delta.strip()) is not None

    def largest_delta(self, records: int) -> float | None:
        """The largest delta for that many records; None if there is no rule."""
        if self.delta is None:
            return None
        found = DELTA_RULE.fullmatch(self.delta.strip()) if isinstance(self.delta, str) else None
        if found is not None:
            constant, exponent = float(found[1]), float(found[2] or 1)
            if not (LEAST_CONSTANT <= constant <= 1 and 1 <= exponent <= LARGEST_EXPONENT):
                raise InvalidInput(
                    "the policy's delta is out of range",
                    got=repr(self.delta)[:40],
                    allowed=f"c/n^k with c above 0 and up to 1, and k from 1 to {LARGEST_EXPONENT:g}",
                )
            return constant / math.pow(max(records, 1), exponent)
        if not (is_number(self.delta) and 0 < self.delta < 1):
            got = repr(self.delta)[:40] if isinstance(self.delta, (str, float)) else type(self.delta).__name__
            allowed = "a number between 0 and 1, or a rule such as 1/n"
            raise InvalidInput("the policy's delta cannot be read", got=got, allowed=allowed)
        return float(self.delta)

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


def _read_date(given: object) -> date:
    """A date as a settings file or a caller gives it."""
    if isinstance(given, date) and not isinstance(given, datetime):
        return given
    try:
        return date.fromisoformat(str(given))
    except ValueError:
        raise InvalidInput("set-on must be a date", allowed="such as 2026-05-04") from None

"""What a report prints as it was told: who asks, for whom, what was published and is spent, and how it was made."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cellrisk.decide.policies import Policies
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.show.reporting.blocks import Block, Bullets, Facts, Section, Words
from cellrisk.show.reporting.registry import TO_FILL
from cellrisk.system.text import claim, number_of

if TYPE_CHECKING:
    from cellrisk.repeat.accounting.composition import Composition
    from cellrisk.repeat.accounting.loss import Loss
    from cellrisk.repeat.ledger import Ledger

CHUNK = 1 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Particulars:
    """What is to be printed as it is, of one table with noise, of a perturbed one and of a set alike."""

    policies: Policies
    title: str | None = None
    organisation: str | None = None
    source: str | None = None
    preparation: Sequence[str] = ()
    audience: str | None = None
    """Who gets what is published, in free words."""
    earlier: str | None = None
    """What was published before about the same people, as a ledger tells it."""
    budget: tuple[tuple[str, str], ...] = ()
    """What is spent before and after, as a ledger tells it: names and values."""
    date: str | None = None
    command: str | None = None
    digests: tuple[tuple[str, str], ...] = ()
    """What was read, and the SHA-256 of it."""

    @property
    def about(self) -> tuple[tuple[str, str], ...]:
        """The lines below the title that everybody may read."""
        policies = ", ".join(each.describe() for each in self.policies.obeyed) or "none in force"
        lines = (("Organisation", self.organisation), ("Data", self.source), ("Policy", policies))
        return tuple((name, value) for name, value in lines if value)


def threat_facts(
    request: Particulars, known: str, hold: str, series: str, what: str = "the table", ledger: bool = True
) -> Facts:
    """Who is guarded against, and what was assumed of him; what only the house knows is left to fill in.

    ``known`` and ``hold`` are what he knows and has, ``series`` says how often it is released, and ``what`` is what he
    gets; ``ledger`` is whether one could tell what was published before.
    """
    before = request.earlier or f"{TO_FILL}: no ledger was given (--ledger)"
    return Facts(
        (
            (f"Who gets {what}", request.audience or f"{TO_FILL}: everybody, or whom (--audience)"),
            ("Assumed to know", f"{known} For the worst case, every other record."),
            ("Assumed to hold", hold),
            ("Once, or a series", series),
            *([("Published before", before)] if ledger else []),
            *request.budget,
        )
    )


def limit_facts(limits: str, policies: Policies) -> Facts:
    """Which limits were set, and by whom."""
    return Facts((("Limits", limits or "none was set"), ("Set by", say_who(policies, bool(limits)))))


def say_who(policies: Policies, limited: bool) -> str:
    """Who has set the limits, and when, as far as the policies say."""
    obeyed = "; ".join(", ".join(filter(None, (each.describe(), each.policy.origin))) for each in policies.obeyed)
    if obeyed:
        return f"{obeyed}; what goes beyond it, by whoever asked for this report"
    return "Whoever asked for this report; no policy was in force." if limited else "Nobody; no policy was in force."


def preparation_block(lines: Sequence[str]) -> Block:
    """What was done to the data beforehand, or that nobody said so."""
    if lines:
        return Bullets(tuple(lines), "Preparation of the data, as stated by those who did it")
    return Words(("Preparation of the data, such as bins and recodings, was not stated.",))


def provenance_section(request: Particulars) -> Section:
    """How the report was made: date, command and digests, as they were given."""
    told = [(name, value) for name, value in (("Date", request.date), ("Command", request.command)) if value]
    told += [(f"SHA-256 of {name}", digest) for name, digest in request.digests]
    untold = Words(("Date, command and digests of the inputs were not given.",))
    return Section("provenance", "How this report was made", (), (Facts(tuple(told)) if told else untold,))


def describe_budget(ledger: Ledger, cohort: str, loss: Loss | str) -> dict[str, Any]:
    """What was published before about a cohort, and what is spent before and after one more release.

    ``loss``: what the release costs, or why that cannot be told.
    """
    from cellrisk.repeat.accounting.composition import compose

    known = bool(ledger.cohorts())  # a ledger without any is about to get its first; another name is refused
    losses, limit = (ledger.losses(cohort), ledger.limit(cohort)) if known else ((), None)
    many = number_of(len(losses), "release") if losses else "Nothing"
    before = _say_spent(ledger.spent(cohort)) if losses else "nothing"
    after = f"cannot be told ({loss})" if isinstance(loss, str) else _say_spent(compose([*losses, loss]))
    allowed = "no limit is set" if limit is None else limit.describe()
    return {
        "earlier": f"{many} about the same people, by the ledger (cohort {cohort}).",
        "budget": (
            ("Budget", f"Spent before: {before}. Spent after this release: {after}. Limit: {allowed}."),
            ("Does it fit?", _fits(ledger, cohort, loss, new=not known)),
        ),
    }


def _fits(ledger: Ledger, cohort: str, loss: Loss | str, new: bool) -> str:
    if isinstance(loss, str):
        return "No: a ledger takes what can be released."
    try:
        ledger.check(loss, cohort, new_cohort=new)
    except CellriskError as refusal:
        return f"No: {refusal}."
    return "Yes, within every limit of the ledger."


def _say_spent(spent: Composition) -> str:
    delta = f", delta {claim(spent.delta)}" if spent.delta else ""
    return f"epsilon {claim(spent.epsilon)}{delta}"


def list_digests(
    inputs: Mapping[str, str | os.PathLike[str]], policies: Policies, ledger: Ledger | None = None
) -> Iterator[tuple[str, str]]:
    """The SHA-256 of each file, by what it is, and of the policies' files; of a ledger, that of its last entry."""
    for name, path in inputs.items():
        digest = hashlib.sha256()
        try:
            with open(path, "rb") as stream:
                while part := stream.read(CHUNK):
                    digest.update(part)
        except OSError as error:
            raise InvalidInput(f"{name} cannot be read: {error.strerror}", got=os.fspath(path)) from None
        yield name, digest.hexdigest()
    for each in policies.obeyed:
        if each.file is not None and each.digest is not None:
            yield f"the policy in {each.file}", each.digest
    if ledger is not None:
        yield "the ledger's last entry", ledger.head.digest

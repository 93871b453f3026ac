"""What a ledger and files say to a report: what was published before, what is spent, and which bytes were read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.system.text import number_of

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies
    from cellrisk.repeat.accounting import Composition, Loss
    from cellrisk.repeat.ledger import Ledger

CHUNK = 1 << 20


def describe_budget(ledger: Ledger, cohort: str, loss: Loss | str) -> dict[str, Any]:
    """What was published before about a cohort, and what is spent before and after one more release.

    ``loss``: what the release costs, or why that cannot be told.
    """
    from cellrisk.repeat.accounting import compose

    known = bool(ledger.cohorts())  # a ledger without any is about to get its first; another name is refused
    losses, limit = (ledger.losses(cohort), ledger.limit(cohort)) if known else ((), None)
    many = number_of(len(losses), "release") if losses else "Nothing"
    before = _say(ledger.spent(cohort)) if losses else "nothing"
    after = f"cannot be told ({loss})" if isinstance(loss, str) else _say(compose([*losses, loss]))
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


def _say(spent: Composition) -> str:
    delta = f", delta {spent.delta:.3g}" if spent.delta else ""
    return f"epsilon {spent.chosen.epsilon:.5g}{delta}"


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

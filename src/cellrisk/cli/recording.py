"""The options of commands that open a ledger, and of those that record a release in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

import cellrisk as cr
from cellrisk.cli.options import NewLedger, Number, Text, number, option, word
from cellrisk.errors import InvalidInput
from cellrisk.system import choices
from cellrisk.system.checks import read_number

if TYPE_CHECKING:
    from cellrisk.publish.releasing.published_totals import PublishedTotals
    from cellrisk.repeat.ledger import Entry

CohortOption = Annotated[Text, option("The people whom the data are about.", "NAME", default="the only cohort")]
CohortFilter = Annotated[Text, option("Only this cohort.", "NAME", default="all cohorts")]
Method = Annotated[choices.CompositionMethod, word("How losses add up", choices.CompositionMethod)]
TotalDelta = Annotated[Number, number("Delta of all releases together.", default="the limit's, or the sum of theirs")]


@dataclass(frozen=True)
class LedgerOptions:
    """Which ledger it is."""

    ledger: Annotated[str, typer.Argument(metavar="LEDGER", help="An SQLite file, or a PostgreSQL address.")]
    wait: Annotated[float, option("Seconds to wait for a ledger that is in use.", "SECONDS", read_number)] = 30

    @contextmanager
    def open(self, *, create: bool = False, head: str | None = None) -> Iterator[cr.Ledger]:
        """Open a ledger for a block, checked against its noted head; one made for the block is removed if it fails."""
        noted = head or getattr(self, "head", None)
        with cr.Ledger(self.ledger, create=create, wait=self.wait, head=noted) as ledger:
            try:
                yield ledger
            except BaseException:
                if create:
                    ledger.remove_unused()
                raise

    def opened(self) -> AbstractContextManager[cr.Ledger | None]:
        """The ledger, so a missing one is refused before any long work begins; None if none was named."""
        new = getattr(self, "new_ledger", False)
        return nullcontext() if self.ledger is None else self.open(create=new)


@dataclass(frozen=True)
class WrittenLedgerOptions(LedgerOptions):
    """Which ledger is written to, and where its last entry is noted."""

    head: Annotated[Text, option("File that notes the last entry, checked before each write.", "FILE")] = None


@dataclass(frozen=True)
class EntryOptions(WrittenLedgerOptions):
    """What the ledger notes of a release beside its loss."""

    cohort: CohortOption = None
    new_cohort: Annotated[bool, typer.Option("--new-cohort", help="A new cohort: its people are in no other.")] = False
    part_of: Annotated[Text, option("The cohort that the new one is part of.", "NAME")] = None
    purpose: Annotated[str, option("What the release is for.", "TEXT")] = ""
    new_ledger: NewLedger = False

    def arguments(self) -> dict[str, Any]:
        """Arguments of `Ledger.add` and `Ledger.save`, which choose the cohort if none is named."""
        return {name: getattr(self, name) for name in ("cohort", "new_cohort", "part_of", "purpose")}


@dataclass(frozen=True)
class RecordOptions(EntryOptions):
    """Where the release is recorded."""

    ledger: Annotated[Text, option("Record the loss in this ledger; refused beyond its limits.", "LEDGER")] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        noted = (self.cohort, self.new_cohort, self.part_of, self.purpose, self.new_ledger, self.head)
        if self.ledger is None and any(noted):
            what = "a cohort, a purpose, --new-ledger and --head require a ledger"
            raise InvalidInput(what, fix="name one: --ledger releases.db")

    def check(self, ledger: cr.Ledger | None, loss: cr.Mechanism | cr.Loss) -> None:
        """Refuse a release beyond a limit of the ledger before any noise is drawn."""
        if ledger is not None:
            ledger.check(loss, self.cohort, new_cohort=self.new_cohort, part_of=self.part_of)

    def save(self, ledger: cr.Ledger | None, released: Any, output: str, **how: Any) -> str:
        """Save what is released, with its entry if there is a ledger; return the sentences about the entry."""
        if ledger is None:
            released.save(output, **how)
            return ""
        return f" {self.describe(ledger, ledger.save(released, output, **how, **self.arguments()))}"

    def figure(self, ledger: cr.Ledger | None, make: Callable[..., Any], *given: Any, **asked: Any) -> tuple[Any, str]:
        """Make a figure that records its loss first, and return it with the sentences about its entry."""
        if ledger is None:
            return make(*given, **asked), ""
        cohort = ledger.state().choose_cohort(self.cohort, self.new_cohort)
        figure = make(*given, **asked, **{**self.arguments(), "cohort": cohort, "ledger": ledger})
        return figure, self.describe(ledger, ledger.entry(ledger.head.number))

    def describe_parents(self, ledger: cr.Ledger | None, parents: PublishedTotals | None) -> str:
        """Return a warning if the loss of published parent counts is not in the ledger; else nothing."""
        if ledger is None or parents is None:
            return ""
        from cellrisk.repeat.ledger.verification import digest_set

        state = ledger.state()
        cohort = state.choose_cohort(self.cohort)
        digests = {entry.file.sha256 for entry in state.covering(cohort) if entry.file is not None}
        path, sha256 = parents.path, parents.sha256
        if path is not None and sha256 is not None and digests & {sha256, digest_set(path, sha256)}:
            return ""
        return f"The parent counts in {parents.name} have no entry for '{cohort}' in this ledger: it lacks their loss."

    def describe(self, ledger: cr.Ledger, entry: Entry) -> str:
        """Return where an entry is, and what its cohort has left."""
        from cellrisk.show.wording.ledger import say_budget

        line = f"{ledger.id} {entry.number} {entry.digest}"
        budget = say_budget(ledger, entry.cohort)
        return f"Recorded in {self.ledger} as entry {entry.number}.\n{budget}\n{describe_head(line)}"


@dataclass(frozen=True)
class ShownLedgerOptions(LedgerOptions):
    """The ledger whose budget a report shows."""

    ledger: Annotated[Text, option("Show what this ledger has spent.", "LEDGER")] = None  # type: ignore[assignment]
    cohort: CohortOption = None


def describe_head(line: str) -> str:
    return f"Head, to be noted elsewhere: {line}"

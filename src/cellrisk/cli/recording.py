"""The options of commands that open a ledger, and of those that record a release in one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from cellrisk.cli.groups import Text, number, option
from cellrisk.cli.help_panels import LEDGER
from cellrisk.errors import InvalidInput

if TYPE_CHECKING:
    from cellrisk.noise.mechanisms import Mechanism
    from cellrisk.publish.releasing.parents import Parents
    from cellrisk.repeat.accounting.loss import Loss
    from cellrisk.repeat.ledger import Ledger

CohortOption = Annotated[Text, option("The group of people covered.", "NAME", default="the ledger's only cohort")]
CohortFilter = Annotated[Text, option("Only this cohort.", "NAME", default="all cohorts")]
NewLedger = Annotated[bool, typer.Option("--new-ledger", help="Make this ledger; refused if it exists.")]


@dataclass(frozen=True)
class LedgerOptions:
    """Which ledger it is."""

    panel: ClassVar[str] = LEDGER
    ledger: Annotated[str, typer.Argument(metavar="LEDGER", help="An SQLite file, or a PostgreSQL address.")]
    wait: Annotated[float, number("Seconds to wait for a ledger that is in use.", "SECONDS")] = 30

    @contextmanager
    def open(self, *, create: bool = False, head: str | None = None) -> Iterator[Ledger]:
        """A ledger for the length of a block. One that is made for it is gone again where the block is refused."""
        from cellrisk.repeat.ledger import Ledger

        with Ledger(self.ledger, create=create, wait=self.wait, head=head) as opened:
            try:
                yield opened
            except BaseException:
                if create:
                    opened.remove_unused()
                raise


@dataclass(frozen=True)
class WrittenLedgerOptions(LedgerOptions):
    """Which ledger is written to, and where its last entry is noted."""

    head: Annotated[Text, option("File in which the last entry is noted, and checked before each write.", "FILE")] = (
        None
    )

    def open(self, *, create: bool = False, head: str | None = None) -> AbstractContextManager[Ledger]:  # type: ignore[override]
        """A ledger that is checked against its noted head."""
        return super().open(create=create, head=head or self.head)


@dataclass(frozen=True)
class EntryOptions(WrittenLedgerOptions):
    """What the ledger notes of a release beside its loss."""

    cohort: CohortOption = None
    new_cohort: Annotated[
        bool, typer.Option("--new-cohort", help="The cohort is new: its people are in no other, or in --part-of.")
    ] = False
    part_of: Annotated[Text, option("The cohort that the new one is part of.", "NAME")] = None
    purpose: Annotated[str, option("What the release is for, in your words.", "TEXT")] = ""
    new_ledger: NewLedger = False

    def arguments(self) -> dict[str, Any]:
        """Arguments of `Ledger.add` and `Ledger.save`, which choose the cohort where none was named."""
        return {name: getattr(self, name) for name in ("cohort", "new_cohort", "part_of", "purpose")}

    def arguments_of_figure(self, ledger: Ledger | None) -> dict[str, Any]:
        """Arguments of functions that record a figure, with the cohort chosen; none where there is no ledger."""
        if ledger is None:
            return {}
        return {**self.arguments(), "cohort": ledger.choose_cohort(self.cohort, new=self.new_cohort)}


@dataclass(frozen=True)
class RecordOptions(EntryOptions):
    """Where the release is recorded."""

    ledger: Annotated[Text, option("Record the loss in this ledger; refused beyond its limits.", "LEDGER")] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.ledger is None and (self.cohort or self.new_cohort or self.part_of or self.purpose):
            raise InvalidInput("a cohort and a purpose are recorded in a ledger", fix="name one: --ledger releases.db")
        if self.ledger is None and (self.new_ledger or self.head):
            raise InvalidInput("--new-ledger and --head go with a ledger", fix="name one: --ledger releases.db")

    def opened(self) -> AbstractContextManager[Ledger | None]:
        """The ledger, so that one which is not there is refused before any long work begins; None where none was named,
        and for a new one, which is made only for a release that is ready."""
        return nullcontext() if self.ledger is None or self.new_ledger else self.open()

    def shown(self) -> AbstractContextManager[Ledger | None]:
        """The ledger that a report shows; what could only be written into it is refused."""
        if self.purpose or self.new_ledger or self.new_cohort or self.part_of:
            raise InvalidInput(
                "a report shows a ledger and writes nothing into it",
                fix="leave --purpose, --new-ledger, --new-cohort and --part-of out; release takes them",
            )
        return self.opened()

    def choose_cohort(self, ledger: Ledger | None) -> str:
        """The cohort that a report is about; of no ledger, everyone."""
        return "everyone" if ledger is None else ledger.choose_cohort(self.cohort)

    def opened_or_new(self, ledger: Ledger | None) -> AbstractContextManager[Ledger | None]:
        """The ledger that is open, or the new one that was asked for; None where none was named."""
        return nullcontext(ledger) if self.ledger is None or ledger is not None else self.open(create=True)

    def check(self, ledger: Ledger | None, loss: Mechanism | Loss) -> None:
        """Refuses a release past a limit of the ledger before any noise is drawn; of a new one, a name that it cannot
        keep."""
        if ledger is not None:
            ledger.check(loss, self.cohort, new_cohort=self.new_cohort, part_of=self.part_of)
        elif self.ledger is not None:
            from cellrisk.repeat.ledger.entry import LONGEST_PURPOSE, check_cohort, check_text

            check_text("the purpose", self.purpose, LONGEST_PURPOSE, empty=True)
            check_cohort("everyone" if self.cohort is None else self.cohort)

    def save(self, ledger: Ledger | None, released: Any, output: str, **how: Any) -> str:
        """Saves what is released, with its entry where there is a ledger; says where that stands."""
        with self.opened_or_new(ledger) as opened:
            if opened is None:
                released.save(output, **how)
                return ""
            return f" {self.tell(opened.id, opened.save(released, output, **how, **self.arguments()))}"

    def tell_parents(self, ledger: Ledger | None, parents: Parents | None) -> str:
        """Says so where the loss of parent counts, which a release shows, is not in the ledger; else nothing."""
        if self.ledger is None or parents is None:
            return ""
        from cellrisk.repeat.ledger.descriptions import digest_set

        with nullcontext(ledger) if ledger is not None else self.open() as opened:
            cohort = opened.choose_cohort(self.cohort)
            digests = {entry.file.sha256 for entry in opened.covering(cohort) if entry.file is not None}
        path, sha256 = parents.path, parents.sha256
        if path is not None and sha256 is not None and digests & {sha256, digest_set(path, sha256)}:
            return ""
        unbooked = f"are not an entry for '{cohort}' in this ledger: their loss is not in it."
        return f"The parent counts in {parents.name} {unbooked}"

    def tell(self, ledger: str, entry: Any) -> str:
        """Where an entry stands, in the ledger with this id."""
        line = f"{ledger} {entry.number} {entry.digest}"
        return f"Recorded in {self.ledger} as entry {entry.number}.\n{tell_head(line)}"


def tell_head(line: str) -> str:
    return f"Head, to be noted elsewhere: {line}"

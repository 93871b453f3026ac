"""The ledger's commands that keep the record: create, add, limit, list, show, verify, checkpoint, recover, export."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from cellrisk.cli import parsing
from cellrisk.cli.answers import answer, say_either, stop_above_limit, tell_formulas
from cellrisk.cli.config import OutputOptions
from cellrisk.cli.groups import (
    MechanismOptions,
    Number,
    SpreadsheetSafe,
    Text,
    Texts,
    Whole,
    number,
    option,
    word,
)
from cellrisk.cli.program import PanelGroup
from cellrisk.cli.recording import (
    CohortFilter,
    CohortOption,
    EntryOptions,
    LedgerOptions,
    NewLedger,
    WrittenLedgerOptions,
    tell_head,
)
from cellrisk.errors import InvalidInput, argument
from cellrisk.system import words
from cellrisk.system.checks import read_number, require_within
from cellrisk.system.text import aligned, number_of

if TYPE_CHECKING:
    from cellrisk.repeat.accounting.loss import Loss
    from cellrisk.repeat.ledger import Entry, Ledger

Operator = Annotated[words.Operator, word("How losses add up", words.Operator)]


class LedgerGroup(PanelGroup):
    """The command `cellrisk ledger`; alone, it shows its help."""

    about = "The record of what was released, to whom, and what it cost."
    panels: ClassVar = {
        "Commands": {
            **{
                name: f"ledgers.{name}_command"
                for name in ("create", "add", "limit", "list", "show", "verify", "checkpoint", "recover", "export")
            },
            "risk": "planning.risk_command",
            "plan": "planning.plan_command",
        }
    }

    def __init__(self, **given: Any) -> None:
        super().__init__(no_args_is_help=True, **given)


@dataclass(frozen=True)
class LossOptions(MechanismOptions):
    """What one release costs: by its mechanism, or as another tool states it."""

    mechanism: Annotated[words.MechanismName | None, word("How the noise is made", words.MechanismName)] = None  # type: ignore[assignment]
    delta: Annotated[Number, number("For approximate DP.")] = None
    rho: Annotated[Number, number("For concentrated DP, in place of epsilon.")] = None

    @property
    def given(self) -> bool:
        return self.epsilon is not None or self.rho is not None

    def loss(self) -> Loss:
        """The loss that these options describe."""
        from cellrisk.repeat.accounting.loss import Loss

        if self.mechanism is not None:
            if self.rho is not None:
                raise InvalidInput("--rho goes without --mechanism", fix="leave one of them out")
            return Loss.of(self.one())
        if self.threshold != MechanismOptions.threshold:
            raise InvalidInput("--threshold goes with --mechanism", fix="name the mechanism, or leave it out")
        if self.rho is not None:
            if self.epsilon is not None or self.delta:
                raise InvalidInput("zCDP states a rho alone", fix=f"leave {argument('epsilon')} out")
            return Loss.zcdp(self.rho, self.neighbours)
        if self.epsilon is None:
            raise InvalidInput(
                "is missing", option="epsilon", fix=f"give {argument('epsilon', 1)}, or {argument('rho', 0.1)}"
            )
        if self.delta:
            return Loss.approximate(self.epsilon, self.delta, self.neighbours)
        return Loss.pure(self.epsilon, self.neighbours)


def create_command(ledger: WrittenLedgerOptions, output: OutputOptions) -> None:
    """Make a new ledger.

    With --head, or CELLRISK_LEDGER_HEAD, every write notes the last entry in a file outside the ledger, so that an
    older copy in its place is found.
    """
    with ledger.open(create=True) as opened:
        line = opened.note_head()
    told = f"A new ledger is at {opened.place}.\n{tell_head(line)}"
    say_either({"ledger": ledger.ledger, "head": line}, told, output.as_json)


def add_command(
    ledger: EntryOptions,
    loss: LossOptions,
    output: OutputOptions,
    attribute: Annotated[
        Text, option("The sensitive attribute; leave it out for counts of cells alone.", "COLUMN")
    ] = None,
    qid: Annotated[
        Texts, option("Quasi-identifier: a column that others may know; several between commas.", "COLUMN")
    ] = None,
    file: Annotated[Text, option("The released file; its SHA-256 is recorded.", "FILE")] = None,
) -> None:
    """Record a release that was made.

    Give its mechanism, or the loss that another tool states: --epsilon 1, --epsilon 1 --delta 1e-6, or --rho 0.1.
    """
    from cellrisk.repeat.ledger.entry import check_cohort, describe_release, read_loss

    given, names = loss.loss(), parsing.split_names(qid)
    describe_release(attribute, names, read_loss(given), ledger.purpose)
    if ledger.cohort is not None:
        check_cohort(ledger.cohort)
    with ledger.open(create=ledger.new_ledger) as opened:
        entry = opened.add(attribute=attribute, quasi_identifiers=names, loss=given, file=file, **ledger.arguments())
    tell_entry(opened, entry, output.as_json)


def limit_command(
    ledger: WrittenLedgerOptions,
    output: OutputOptions,
    epsilon: Annotated[Number, number("Largest total loss.")] = None,
    delta: Annotated[float, number("Delta of the limit; 0 is pure DP.")] = 0,
    cohort: CohortOption = None,
    operator: Operator = "tightest",
    new_ledger: NewLedger = False,
) -> None:
    """Limit the total loss of the people in a cohort.

    A release that would exceed the limit is refused before any noise is drawn.
    """
    if epsilon is None:
        raise InvalidInput("no epsilon was given", fix="say the limit: --epsilon 2")
    from cellrisk.repeat.ledger import Limit
    from cellrisk.repeat.ledger.entry import check_cohort

    limit: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "operator": operator}
    Limit(cohort=check_cohort("everyone" if cohort is None else cohort), **limit)
    with ledger.open(create=new_ledger) as opened:
        entry = opened.set_limit(opened.choose_cohort(cohort), **limit)
    tell_entry(opened, entry, output.as_json)


def list_command(
    ledger: LedgerOptions,
    output: OutputOptions,
    cohort: CohortFilter = None,
    kind: Annotated[Text, option("Only entries of this kind: cohort, limit or release.", "NAME")] = None,
) -> None:
    """Every entry, in order, and the worst case of all releases to each cohort."""
    with ledger.open() as opened:
        entries, about = opened.entries(cohort, kind), str(opened)
        names = [cohort] if cohort is not None else [each.name for each in opened.cohorts()]
        worst = [(name, *opened.ceiling(name)) for name in names]
    rows = [[str(entry.number), entry.time[:19].replace("T", " "), entry.headline] for entry in entries]
    table = f"\n\n{aligned(['entry', 'time (UTC)', ''], rows, left=3)}" if rows else ""
    told = [
        f"{name}: {most.of_two if most is not None else f'the ceiling is not known: {why_not}.'}"
        for name, most, why_not in worst
        if most is None or most.releases
    ]
    ceilings = [
        {"cohort": name, "ceiling": None if most is None else {"even_two": most.even_two, "sentence": most.of_two}}
        for name, most, _ in worst
    ]
    document = {"entries": [entry.to_dict() for entry in entries], "cohorts": ceilings}
    say_either(document, "\n\n".join([f"{about}{table}", *told]), output.as_json)


def show_command(
    ledger: LedgerOptions,
    output: OutputOptions,
    entry: Annotated[
        Whole,
        typer.Argument(
            metavar="[ENTRY]",
            help="Number of an entry; without it, what each cohort has spent.",
            parser=parsing.parse_whole,
        ),
    ] = None,
    cohort: CohortFilter = None,
    operator: Operator = "tightest",
    delta: Annotated[
        Number, option("The delta at which losses are added up.", "NUMBER", read_number, "the sum of theirs")
    ] = None,
) -> None:
    """One entry, or what each cohort has spent.

    It adds up losses in every way that holds, and counts the tightest.
    """
    if delta is not None:
        require_within("--delta", delta, least=0, below=1)
    with ledger.open() as opened:
        if entry is not None:
            answer(opened.entry(entry), output.as_json, raw=False)
            return
        names = [cohort] if cohort is not None else [each.name for each in opened.cohorts()]
        found = [(name, opened.spent(name, operator, delta), opened.limit(name)) for name in names]
    cohorts = [
        {"cohort": name, "spent": spent.to_dict(), "limit": None if limit is None else limit.to_dict()}
        for name, spent, limit in found
    ]
    parts = []
    for name, spent, limit in found:
        bound = f"Limit: {limit.describe()}." if limit is not None else "No limit is set."
        if spent.losses and spent.flavour == "pure":
            bound += " With --delta 1e-6, say, the other ways of adding up are shown too."
        parts.append(f"{name}: {spent}\n{bound}")
    say_either({"cohorts": cohorts}, "\n\n".join(parts) or "The ledger has no cohorts yet.", output.as_json)


def verify_command(
    ledger: LedgerOptions,
    output: OutputOptions,
    head: Annotated[
        Text, option("A digest noted elsewhere, or the file in which the head is noted.", "DIGEST|FILE")
    ] = None,
    files: Annotated[bool, typer.Option(help="Also compare released files and their descriptions.")] = True,
    folder: Annotated[Texts, option("Also look here for descriptions of releases.", "FOLDER")] = None,
) -> None:
    """Check that everything is as it was written.

    It finds edits, deletions, reordering and older copies, and exits with code 3 if there are any. It changes nothing.
    """
    digest = head is not None and re.fullmatch("[0-9a-fA-F]{32}|[0-9a-fA-F]{64}", head.strip()) is not None
    for each in folder or []:
        if not Path(each).is_dir():
            raise InvalidInput("there is no such folder", got=each)
    if head is not None and not digest and not Path(head).is_file():
        raise InvalidInput(
            "--head is a digest of 64 hexadecimal digits, or a file that keeps the head",
            fix="take the digest from what verify or show prints",
        )
    with ledger.open(head=None if digest else head) as opened:
        found = opened.verify(head=head if digest else None, files=files, folders=folder or [])
    answer(found, output.as_json, raw=False)
    if not found.ok:
        stop_above_limit("the ledger is not as it was written")


def checkpoint_command(ledger: WrittenLedgerOptions, output: OutputOptions) -> None:
    """The ledger's last entry, to be noted elsewhere: its id, number and digest.

    With --head, or CELLRISK_LEDGER_HEAD, it is noted in that file, and later writes check the ledger against it.
    """
    with ledger.open() as opened:
        line = opened.note_head()
    say_either({"head": line}, line, output.as_json)


def recover_command(
    ledger: WrittenLedgerOptions,
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where releases were written.")],
    output: OutputOptions,
) -> None:
    """Finish or remove what killed processes have left in a folder.

    A release whose entry was written is moved into its place; files without an entry are removed. Every release into
    the folder does this first.
    """
    with ledger.open() as opened:
        done = opened.recover(folder)
    finished = ", ".join(done.finished) or "nothing"
    told = f"Moved into place: {finished}. Removed: {number_of(done.removed, 'release')} without an entry."
    if done.left:
        told += f" Left alone: {number_of(done.left, 'release')} being written, or not as an entry says."
    say_either({**done._asdict(), "finished": list(done.finished)}, told, output.as_json)


def export_command(
    ledger: LedgerOptions,
    settings: OutputOptions,
    output: Annotated[
        Text, option("File to write: .jsonl, .csv, or .yaml for the registry of deployments.", "FILE")
    ] = None,
    form: Annotated[
        Text, option("json-lines, csv or registry, if the ending of the file does not say.", "NAME")
    ] = None,
    cohort: CohortFilter = None,
    spreadsheet_safe: SpreadsheetSafe = False,
) -> None:
    """Write the entries to a file: JSON lines, CSV, or YAML for the registry of deployments."""
    from cellrisk.show.reporting.ledger_export import export_entries, refuse_released

    if output is None:
        raise InvalidInput("no output file was given", fix="name it: --output ledger.jsonl")
    with ledger.open() as opened:
        entries = opened.entries(cohort)
        refuse_released(opened.entries(), Path(output))
    written = export_entries(entries, output, form, spreadsheet_safe=spreadsheet_safe)
    if "csv" in (form, written.suffix.lower().lstrip(".") if form is None else None):
        tell_formulas(written)
    told = f"{number_of(len(entries), 'entry', 'entries')} written to {written}."
    say_either({"file": str(written), "entries": len(entries)}, told, settings.as_json)


def tell_entry(ledger: Ledger, entry: Entry, as_json: bool) -> None:
    """Prints an entry that was written, and what is worth noting elsewhere."""
    line = f"{ledger.id} {entry.number} {entry.digest}"
    say_either({**entry.to_dict(), "head": line}, f"{entry}\n\n{tell_head(line)}", as_json)

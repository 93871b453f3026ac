"""The commands of a ledger, and average: what releases have cost and revealed, and what one more would."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

import cellrisk as cr
from cellrisk.cli import options, parsing, recording
from cellrisk.cli.options import Number, Text, Texts, Whole, number, option, share, whole, word
from cellrisk.cli.output import DrawnOptions, OutputOptions, ScreenOptions, stop_if_broken
from cellrisk.cli.program import Group, places
from cellrisk.counts.unit import Unit
from cellrisk.errors import CellriskError, InvalidInput, argument
from cellrisk.system.checks import require_within, split_names
from cellrisk.system.choices import MechanismName
from cellrisk.system.formatting import number_of

if TYPE_CHECKING:
    from cellrisk.repeat.ledger import Entry
    from cellrisk.repeat.ledger.cohorts import LedgerState
    from cellrisk.risk.ceilings import Ceiling
ENTRY = "Number of an entry; without it, what each cohort has spent."
DIGEST = "[0-9a-fA-F]{32}|[0-9a-fA-F]{64}"
NEXT = "The sensitive attribute to release next; leave it out for counts of groups alone."


class LedgerGroup(Group):
    """The record of what was released, about which people, and what it cost."""

    panels: ClassVar = {
        "Commands": places("ledgers", "create add limit list show verify checkpoint recover export risk plan")
    }

    def __init__(self, **given: Any) -> None:
        super().__init__(no_args_is_help=True, **given)


@dataclass(frozen=True)
class LossOptions(options.MechanismOptions):
    """The privacy loss of one release: by its mechanism, or as another tool states it."""

    mechanism: Annotated[MechanismName | None, word("Mechanism", MechanismName, "none")] = None  # type: ignore[assignment]
    delta: Annotated[Number, number("Delta of approximate DP.")] = None
    rho: Annotated[Number, number("Rho of concentrated DP, instead of epsilon.")] = None

    def loss(self, unit: Unit) -> cr.Loss:
        """The loss that these options describe, of a person or of a record."""
        if self.rho is not None and (self.mechanism or self.epsilon is not None or self.delta):
            raise InvalidInput("--rho cannot be combined with --mechanism, --epsilon or --delta", fix="leave --rho out")
        if self.mechanism is not None:
            return cr.Loss.of(self.one().with_unit(unit))
        if self.threshold != options.MechanismOptions.threshold:
            raise InvalidInput("--threshold requires --mechanism", fix="name the mechanism, or leave it out")
        if self.rho is not None:
            stated = cr.Loss.zcdp(self.rho, self.neighbours)
        elif self.epsilon is None:
            fix = f"give {argument('epsilon', 1)}, or {argument('rho', 0.1)}"
            raise InvalidInput("is missing", option="epsilon", fix=fix)
        elif self.delta:
            stated = cr.Loss.approximate(self.epsilon, self.delta, self.neighbours)
        else:
            stated = cr.Loss.pure(self.epsilon, self.neighbours)
        return replace(stated, unit=unit)


def create_command(ledger: recording.WrittenLedgerOptions, output: OutputOptions) -> None:
    """Make a new ledger.

    With --head, or CELLRISK_LEDGER_HEAD, every write notes the last entry in a file outside the ledger, so an older
    copy of the ledger is found.
    """
    with ledger.open(create=True) as opened:
        line = opened.note_head()
    text = f"A new ledger is at {opened.location}.\n{recording.describe_head(line)}"
    output.say({"ledger": ledger.ledger, "head": line}, text)


def add_command(
    ledger: recording.EntryOptions,
    loss: LossOptions,
    output: OutputOptions,
    attribute: Annotated[Text, option("The sensitive attribute, if there is one.", "COLUMN")] = None,
    qid: options.Qid = None,
    file: Annotated[Text, option("The released file; its SHA-256 is recorded.", "FILE")] = None,
    contributions: Annotated[Whole, whole("Most records of one person that the release counts.", default="1")] = None,
    per_group: Annotated[Whole, whole("Most of these in one count.", default="as --contributions")] = None,
) -> None:
    """Record a release that was made.

    Give its mechanism, or the loss that another tool states: --epsilon 1, --epsilon 1 --delta 1e-6, or --rho 0.1.
    """
    given, names = loss.loss(Unit.read(None, contributions, per_group)), split_names(qid)
    with ledger.open(create=ledger.new_ledger) as opened:
        entry = opened.add(attribute=attribute, quasi_identifiers=names, loss=given, file=file, **ledger.arguments())
    _print_entry(opened, entry, output)


def limit_command(
    ledger: recording.WrittenLedgerOptions,
    epsilon: Annotated[float, number("Largest total loss.")],
    output: OutputOptions,
    delta: Annotated[float, number("Delta of the limit; 0 is pure DP.")] = 0,
    cohort: recording.CohortOption = None,
    method: recording.Method = "tightest",
    new_ledger: options.NewLedger = False,
) -> None:
    """Limit the total loss of the people in a cohort.

    A release that would exceed the limit is refused before any noise is drawn.
    """
    with ledger.open(create=new_ledger) as opened:
        entry = opened.set_limit(cohort, epsilon=epsilon, delta=delta, method=method)
    _print_entry(opened, entry, output)


def _print_entry(ledger: cr.Ledger, entry: Entry, output: OutputOptions) -> None:
    """Print an entry that was written, and the line to note elsewhere."""
    line = f"{ledger.id} {entry.number} {entry.digest}"
    output.say({**entry.to_dict(), "head": line}, f"{entry}\n\n{recording.describe_head(line)}")


def list_command(
    ledger: recording.LedgerOptions,
    output: ScreenOptions,
    cohort: recording.CohortFilter = None,
    kind: Annotated[Text, option("Only entries of this kind: cohort, limit or release.", "NAME")] = None,
) -> None:
    """List every entry, in order, and the worst case of all releases about each cohort."""
    from cellrisk.show.wording.ledger import list_entries

    with ledger.open() as opened:
        entries, about = opened.entries(cohort, kind), str(opened)
        state = opened.state()
        names = [state.require(cohort)] if cohort is not None else list(state.declared)
        worst = [(name, state.ceiling(name)[0]) for name in names]
        cohorts = [
            (name, state.spend_by_limit(name), state.limits.get(name), most if most and most.releases else None)
            for name, most in worst
        ]
    ceilings = [{"cohort": name, "ceiling": _describe_ceiling(most)} for name, most in worst]
    document = {"entries": [entry.to_dict() for entry in entries], "cohorts": ceilings}
    output.say(document, list_entries(about, cohorts, entries, output.everything))


def _describe_ceiling(most: Ceiling | None) -> dict[str, Any] | None:
    return None if most is None else {"even_two": most.even_two, "sentence": most.headline}


def show_command(
    ledger: recording.LedgerOptions,
    output: OutputOptions,
    entry: Annotated[Whole, typer.Argument(metavar="[ENTRY]", help=ENTRY, parser=parsing.parse_whole)] = None,
    cohort: recording.CohortFilter = None,
    method: recording.Method = "tightest",
    delta: Annotated[Number, number("Delta at which losses are added up.", default="the sum of theirs")] = None,
) -> None:
    """Show one entry, or what each cohort has spent.

    Losses are added up by every method that holds, and the smallest sum counts.
    """
    if delta is not None:
        require_within("delta", delta, least=0, below=1)
    with ledger.open() as opened:
        if entry is not None:
            output.answer(opened.entry(entry), raw=False)
            return
        state = opened.state()
        names = [state.require(cohort)] if cohort is not None else list(state.declared)
        budgets = [(name, state.spend(name, method, delta), state.limits.get(name)) for name in names]
    cohorts = [
        {"cohort": name, "spent": spent.to_dict(), "limit": None if limit is None else limit.to_dict()}
        for name, spent, limit in budgets
    ]
    parts = []
    for name, spent, limit in budgets:
        bound = f"Limit: {limit.describe()}." if limit is not None else "No limit is set."
        if spent.losses and spent.dp_definition == "pure":
            bound += " --delta 1e-6 shows the other methods of adding up."
        parts.append(f"{name}: {spent}\n{bound}")
    output.say({"cohorts": cohorts}, "\n\n".join(parts) or "The ledger has no cohorts yet.")


def verify_command(
    ledger: recording.LedgerOptions,
    output: OutputOptions,
    head: Annotated[Text, option("A digest noted elsewhere, or the file that notes it.", "DIGEST|FILE")] = None,
    files: Annotated[bool, typer.Option(help="Also compare released files and their descriptions.")] = True,
    folder: Annotated[Texts, option("Also look here for descriptions of releases.", "FOLDER")] = None,
) -> None:
    """Check that everything is as it was written.

    Finds edits, deletions, reordering and older copies, and ends with exit code 3 if there are any. Changes nothing.
    """
    digest = head is not None and re.fullmatch(DIGEST, head.strip()) is not None
    for name in folder or []:
        if not Path(name).is_dir():
            raise InvalidInput("the folder does not exist", got=name)
    if head is not None and not digest and not Path(head).is_file():
        allowed = "a digest of 64 hexadecimal digits, or a file that notes it"
        raise InvalidInput("cannot be read", option="head", allowed=allowed, fix="ledger checkpoint prints the digest")
    with ledger.open(head=None if digest else head) as opened:
        verification = opened.verify(head=head if digest else None, files=files, folders=folder or [])
    output.answer(verification, raw=False)
    stop_if_broken([] if verification.ok else ["the ledger is not as it was written"])


def checkpoint_command(ledger: recording.WrittenLedgerOptions, output: OutputOptions) -> None:
    """Print the ledger's id, and the number and digest of its last entry, to be noted elsewhere.

    With --head, or CELLRISK_LEDGER_HEAD, it is noted in that file, and later writes check the ledger against it.
    """
    with ledger.open() as opened:
        line = opened.note_head()
    output.say({"head": line}, line)


def recover_command(
    ledger: recording.WrittenLedgerOptions,
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where releases were written.")],
    output: OutputOptions,
) -> None:
    """Finish or remove what killed processes have left in a folder.

    Moves a release into place if its entry was written, and removes files without an entry. Every release into the
    folder does this first.
    """
    with ledger.open() as opened:
        done = opened.recover(folder)
    finished = ", ".join(done.finished) or "nothing"
    text = f"Moved into place: {finished}. Removed: {number_of(done.removed, 'release')} without an entry."
    if done.left:
        text += f" Left alone: {number_of(done.left, 'release')} being written, or not as an entry says."
    output.say({**done._asdict(), "finished": list(done.finished)}, text)


def export_command(
    ledger: recording.LedgerOptions,
    output: Annotated[str, option("File: .jsonl.", "FILE")],
    settings: OutputOptions,
    cohort: recording.CohortFilter = None,
) -> None:
    """Write the entries to a file of JSON lines."""
    with ledger.open() as opened:
        written, entries = opened.export(output, cohort), len(opened.entries(cohort))
    text = f"{number_of(entries, 'entry', 'entries')} written to {written}."
    settings.say({"file": str(written), "entries": entries}, text)


def risk_command(
    ledger: recording.LedgerOptions,
    table: options.TableOptions,
    loss: LossOptions,
    priors: options.PriorOptions,
    output: DrawnOptions,
    attribute: Annotated[Text, option(NEXT, "COLUMN")] = None,
    cohort: recording.CohortOption = None,
    measure: options.OneMeasure = None,
    form: options.OneForm = None,
    method: recording.Method = "tightest",
    total_delta: recording.TotalDelta = None,
) -> None:
    """The risk after each release so far, and with --epsilon or --rho after one more.

    Prints the risk of each attribute at the total loss by then, the overall risk of the groups, the people revealed
    because of their own record, and the worst case for one record after all these releases. Ends with exit code 3 if
    the ledger would refuse one more release.
    """
    if total_delta is not None:
        require_within("total_delta", total_delta, least=0, below=1)
    given = {"measure": measure, "form": form, "total_delta": total_delta}
    asked: Any = {name: value for name, value in given.items() if value is not None}
    refusals: list[str] = []
    with ledger.open() as opened:
        steps = _list_steps(opened.state(), cohort)
        if loss.epsilon is not None or loss.rho is not None:
            planned = loss.loss(steps[-1].loss.unit if steps else Unit())
            refusals = _list_refusals(opened, cohort, planned, loss, output)
            steps.append(cr.Step(planned, attribute, split_names(table.qid) or None))
        elif attribute is not None:
            raise InvalidInput("--attribute is that of one more release", fix="also give its loss: --epsilon 0.5")
    if not steps:
        fix = "look ahead with --attribute and --epsilon"
        raise InvalidInput("the ledger has no releases about this cohort yet", fix=fix)
    quasi = [name for step in steps for name in step.quasi_identifiers or ()] + split_names(table.qid)
    released = [step.attribute for step in steps if step.attribute is not None]
    sensitive = [*released, *split_names(table.sensitive)]
    counted = table.tabulate(qid=list(dict.fromkeys(quasi)), sensitive=list(dict.fromkeys(sensitive)))
    sequence = cr.assess_sequence(counted, steps, method=method, priors=priors.priors, **asked)
    output.answer(sequence, policies=output.policies)
    stop_if_broken(refusals)


def plan_command(
    ledger: recording.LedgerOptions,
    loss: LossOptions,
    output: OutputOptions,
    cohort: recording.CohortOption = None,
    method: recording.Method = "tightest",
    total_delta: recording.TotalDelta = None,
    max_ceiling: Annotated[Number, share("Largest worst case for one record.")] = None,
) -> None:
    """What one more release would cost, or the largest epsilon that it may have.

    With --max-ceiling it finds the largest epsilon within that limit. Ends with exit code 3 if the ledger would refuse
    the release, or no epsilon keeps the limit. `cellrisk ledger risk` shows what the release would reveal.
    """
    from cellrisk.show.wording.attackers import fill

    if total_delta is not None:
        require_within("total_delta", total_delta, least=0, below=1)
    if (max_ceiling is not None) == (loss.epsilon is not None or loss.rho is not None):
        raise InvalidInput("nothing to plan was given", allowed="either --epsilon 0.5, or --max-ceiling 0.75")
    with ledger.open() as opened:
        state = opened.state()
        name = state.choose_cohort(cohort)
        if max_ceiling is None:
            steps = _list_steps(state, cohort)
            planned = loss.loss(steps[-1].loss.unit if steps else Unit())
            refusals = _list_refusals(opened, cohort, planned, loss, output)
    if max_ceiling is not None:
        how: Any = {"delta": loss.delta, "neighbours": loss.neighbours, "threshold": loss.threshold, "method": method}
        how |= {"max_ceiling": max_ceiling, "total_delta": total_delta, "policy": output.policies}
        answers = [cr.largest_epsilon(losses, loss.mechanism or "geometric", **how) for losses in state.cases(name)]
        largest = min(answers, key=lambda answer: float(answer.epsilon or 0.0))  # of the people who have lost most
        output.answer(largest, raw=False, policies=output.policies)
        stop_if_broken([] if largest.epsilon is not None else ["no epsilon keeps the limit"])
        return
    limit = state.limits.get(name)
    if total_delta is None and limit is not None:
        total_delta = limit.delta or None
    before, after = state.spend(name, method, total_delta), state.spend(name, method, total_delta, planned)
    worst, why_not = state.ceiling(name, planned)
    document = {
        "before": {**before.to_dict(), "ceiling": _describe_ceiling(state.ceiling(name)[0])},
        "after": {**after.to_dict(), "ceiling": _describe_ceiling(worst)},
        "refused": "; ".join(refusals) or None,
    }
    sentence = f"The worst case is not known: {why_not}." if worst is None else worst.headline
    parts = [f"Before: {before.headline}\nAfter: {after.headline}", fill(sentence), after.details.partition("\n\n")[2]]
    output.say(document, "\n\n".join(parts))
    stop_if_broken(refusals)


def _list_steps(state: LedgerState, cohort: str | None) -> list[cr.Step]:
    """Return the releases about the people of a cohort: on it, and on those that contain it, in their order."""
    name = state.choose_cohort(cohort)
    entries = state.covering(name) if state.declared else ()
    return [cr.Step(entry.loss, entry.attribute, entry.quasi_identifiers or None) for entry in entries if entry.loss]


def _list_refusals(
    ledger: cr.Ledger, cohort: str | None, planned: cr.Loss, loss: LossOptions, output: OutputOptions
) -> list[str]:
    """Return why the ledger, or a policy that needs no data, would refuse a release."""
    refusals = output.policies.breaches_without_data(loss.one()) if loss.mechanism is not None else []
    try:
        ledger.check(planned, cohort)
    except CellriskError as refusal:
        return [str(refusal), *refusals]
    return refusals


def average_command(
    releases: Annotated[int, whole("How many times the table is released.")],
    table: options.TableOptions,
    mechanism: options.MechanismOptions,
    risk: options.SeveralRiskOptions,
    output: ScreenOptions,
    method: recording.Method = "tightest",
    total_delta: recording.TotalDelta = None,
) -> None:
    """The same table released several times.

    Compares the risk from an attacker who averages the releases with that of one release at their total loss.
    """
    from cellrisk.repeat.averaging import average

    asked = {name: given for name, given in risk.many().items() if name != "attack"}
    how: dict[str, Any] = {"releases": releases, "method": method, "total_delta": total_delta}
    averaging = average(table.tabulate(), mechanism.one(), **how, **asked)
    output.answer(averaging, policies=output.policies, everything=any((risk.measure, risk.form, risk.weights)))

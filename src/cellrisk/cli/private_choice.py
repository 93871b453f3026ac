"""`choose --private`: an epsilon whose choice may be published."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

import typer

from cellrisk.cli import parsing
from cellrisk.cli.answers import answer, say
from cellrisk.cli.config import OutputOptions, policy_of
from cellrisk.cli.groups import LimitOptions, Number, Numbers, TableOptions, Text, Texts, number, option
from cellrisk.cli.help_panels import PRIVATE
from cellrisk.cli.recording import RecordOptions
from cellrisk.errors import InvalidInput


@dataclass(frozen=True)
class ChoiceRecordOptions(RecordOptions):
    """Where the loss of a private choice is recorded."""

    ledger: Annotated[
        Text, option("With --private: record its loss in this ledger; refused beyond its limits.", "LEDGER")
    ] = None


@dataclass(frozen=True)
class PrivateOptions(ChoiceRecordOptions):
    """How the choice itself is made private, and where its loss is recorded."""

    panel: ClassVar[str] = PRIVATE
    private: Annotated[Number, number("Make a choice that may be published, at this epsilon of its own.")] = None
    max_caused_people: Annotated[
        Number, number("With --private: largest number of people given away because of their own record.", "M")
    ] = None
    grid: Annotated[
        Numbers,
        option("With --private: the epsilons to choose from.", "NUMBERS", parsing.parse_points, "0.01:10:50"),
    ] = None
    may_be_missing: Annotated[Texts, option("With --private: column that can hold missing values.", "COLUMN")] = None
    observed_levels: Annotated[
        Texts, option("With --private: column whose levels are taken from the data.", "COLUMN")
    ] = None

    @property
    def asked(self) -> bool:
        """Whether the choice is to be private; options that go with that are refused without it."""
        if self.private is not None:
            return True
        alone = ("max_caused_people", "grid", "may_be_missing", "observed_levels", "ledger")
        given = [f"--{name.replace('_', '-')}" for name in alone if getattr(self, name) is not None]
        if given:
            raise InvalidInput(f"{', '.join(given)} goes with --private", fix="add --private 0.1, or leave it out")
        return False

    def answer(
        self,
        context: typer.Context,
        table: TableOptions,
        mechanism: dict[str, Any],
        limits: LimitOptions,
        output: OutputOptions,
    ) -> None:
        """Chooses, and prints the answer."""
        from cellrisk.publish.noisy_risk.private_choice import choose_privately

        others = [f"--{name.replace('_', '-')}" for name, value in asdict(limits).items() if value is not None]
        if others:
            raise InvalidInput(
                "with --private the limit is a number of people given away because of their own record",
                got=", ".join(others),
                fix="give --max-caused-people 500 alone",
            )
        if self.max_caused_people is None:
            raise InvalidInput("--private needs a limit", fix="give --max-caused-people 500")
        if {"least_epsilon", "largest_epsilon"} & mechanism.keys():
            raise InvalidInput("with --private the epsilons are those of --grid", fix="give --grid 0.1:10:50")
        (name, *more), deltas = mechanism["mechanism"], mechanism["delta"] or [None]
        if more or len(deltas) > 1:
            raise InvalidInput("--private takes one mechanism and one delta")
        opened = context.with_resource(self.opened())
        frequencies = table.tabulate(outside="drop")
        with self.opened_or_new(opened) as ledger:
            found = choose_privately(
                frequencies,
                name,
                private=float(self.private or 0.0),
                max_caused_people=self.max_caused_people,
                grid=self.grid,
                delta=deltas[0],
                neighbours=mechanism["neighbours"],
                threshold=mechanism["threshold"],
                may_be_missing=parsing.split_names(self.may_be_missing),
                observed_levels=parsing.split_names(self.observed_levels),
                ledger=ledger,
                policy=policy_of(context),
                **self.arguments_of_figure(ledger),
            )
            recorded = "" if ledger is None else self.tell(ledger.id, ledger.head)
        answer(found, output.as_json, raw=False)
        if recorded and not output.as_json:
            say(f"\n{recorded}")

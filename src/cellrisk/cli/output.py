"""What commands print: text or JSON, warnings, pictures, and broken limits with their exit code."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cellrisk.cli.config import POLICIES, Config
from cellrisk.cli.options import Text, option
from cellrisk.errors import visible
from cellrisk.system.formatting import CURATOR_NOTE

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies

LIMIT_BROKEN = 3


def say(text: str, err: bool = False) -> None:
    """Print text or JSON, without characters that a terminal would obey or hide."""
    typer.echo(visible(text), err=err)


def stop_if_broken(breaches: Sequence[str]) -> None:
    """Print broken limits in one line on standard error, and end with their exit code."""
    if breaches:
        say(f"cellrisk: {'; '.join(breaches)}", err=True)
        raise typer.Exit(LIMIT_BROKEN)


def _without_folder(word: str) -> str:
    """Return a word of a command as a document may show it.

    >>> [_without_folder(word) for word in ("/home/me/people.csv", "postgresql://me:secret@host/people", "--qid")]
    ['people.csv', 'postgresql://...', '--qid']
    """
    scheme, is_address, _ = word.partition("://")
    if is_address:
        return f"{scheme}://..."
    return os.path.basename(word) if os.path.isabs(word) else word


@dataclass(frozen=True)
class OutputOptions:
    """How the answer is printed, and where further settings come from."""

    context: typer.Context
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False
    config: Config = None

    @property
    def policies(self) -> Policies:
        """The policies that hold for this command; none is false."""
        from cellrisk.decide.policies import Policies

        policies: Policies = self.context.meta.get(POLICIES) or Policies()
        return policies

    @property
    def command(self) -> str:
        """The command as it was typed, without folders of this machine and without passwords."""
        return shlex.join(["cellrisk", *map(_without_folder, self.context.obj or ())])

    def list_typed(self, *names: str) -> list[str]:
        """Return those of these options that were typed; those of a settings file may be meant for other commands."""
        sources = {name: self.context.get_parameter_source(name) for name in names}
        return [name for name, source in sources.items() if getattr(source, "name", "") == "COMMANDLINE"]

    def say(self, document: dict[str, Any], text: str) -> None:
        """Print one JSON document, or its text."""
        say(json.dumps(document, allow_nan=False, ensure_ascii=False) if self.as_json else text)

    def answer(
        self,
        result: Any,
        raw: bool = True,
        policies: Policies | None = None,
        everything: bool = False,
        after: str = "",
        drawn: Any = None,
    ) -> None:
        """Draw a result, and print it: sentences and tables, or one JSON document.

        ``everything``: not its first screen alone, as with --all. ``after``: what follows the sentences; not in JSON.
        ``drawn``: what a picture shows, if not the result.

        What was computed from ``raw`` data carries the curator's note. ``policies``: those that were obeyed, if the
        result does not report them itself; JSON also reports that there was none.
        """
        self.draw(result if drawn is None else drawn)
        if self.as_json:
            policy = {} if policies is None else {"policy": policies.to_dict()}
            self.say({**result.to_dict(), **policy, **({"note": CURATOR_NOTE} if raw else {})}, "")
            return
        text = str(result.details if everything or getattr(self, "everything", False) else result)
        text += f"\n\n{policies.describe()}" if policies else ""
        text += f"\n\n{CURATOR_NOTE}" if raw and CURATOR_NOTE not in text else ""
        say(f"{text}\n\n{after}" if after else text)

    def draw(self, result: Any) -> None:
        """Draw nothing, as there is no option for it."""


@dataclass(frozen=True)
class PictureOptions(OutputOptions):
    """How the answer is printed and drawn."""

    plot: Annotated[Text, option("Write a picture: .svg, .png or .pdf.", "FILE")] = None

    def __post_init__(self) -> None:
        """Refuse a path that cannot be written before the work begins."""
        if self.plot is not None:
            from cellrisk.show.pictures import check_picture_path

            check_picture_path(self.plot)

    def draw(self, result: Any) -> None:
        if self.plot is not None:
            result.plot(self.plot)


@dataclass(frozen=True)
class ScreenOptions(OutputOptions):
    """How an answer is printed that has a first screen and more."""

    everything: Annotated[bool, typer.Option("--all", help="Print everything, not the first screen alone.")] = False


@dataclass(frozen=True)
class DrawnOptions(PictureOptions, ScreenOptions):
    """How an answer is printed, in part or all of it, and drawn."""

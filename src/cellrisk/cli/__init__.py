"""The `cellrisk` command. Bad input ends with exit code 2 and one line on standard error."""

from __future__ import annotations

import atexit
import gc
import os
import shlex
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from cellrisk.errors import CellriskError, visible
from cellrisk.system.extras import explain_missing
from cellrisk.system.isolated import safe_path
from cellrisk.system.stopping import INTERRUPTED, Watch, end_now, say_interrupted, what_stands

BAD_INPUT = 2
INTERNAL = 1
COMPLETION = "_CELLRISK_COMPLETE"
"""The variable by which a shell asks, as Typer's scripts for shells have it."""
OBJECTS_AT_ONCE = 100_000
"""New objects between two searches for garbage: libraries make a million while they load, and hardly one is garbage."""


def __getattr__(name: str) -> Any:
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cellrisk.cli.program import app

    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    if arguments is not None:
        return _main(list(arguments), alone=False)
    sys.path[:] = safe_path()
    gc.set_threshold(OBJECTS_AT_ONCE)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more wait for each other longer than they work
    codes: list[int] = []
    atexit.register(_leave, codes)  # the first to be registered is called last
    codes.append(_main(sys.argv[1:], alone=True))
    return codes[0]


def _leave(codes: list[int]) -> None:
    """Ends a process in which everything has been tidied up.

    Python would take apart every library that was loaded, which takes a third of a second.
    """
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # Python tells of it
        return
    if codes:
        os._exit(codes[0])


def _main(arguments: list[str], alone: bool) -> int:
    """Runs a command; ``alone``: the process is there for this command."""
    with Watch(lambda: end_now(what_stands())) as watch:
        try:
            return _run(arguments)
        except BaseException as error:
            if not (watch.interrupted or isinstance(error, KeyboardInterrupt)):
                return _refuse(error)
            message = _say_interrupted(error)
            if alone:
                end_now(message)
            return _fail(message, INTERRUPTED)


@cache
def build_command() -> Any:
    """The command with all below it."""
    import typer

    from cellrisk.cli.program import app

    return typer.main.get_command(app)


def _run(arguments: list[str]) -> int:
    """The code of a command; typer's own way to do so would swallow an interruption and what it says."""
    import typer

    from cellrisk.cli.config import TYPED

    command = build_command()
    completing = os.environ.get(COMPLETION)
    if completing:  # a shell asks how a line may go on
        from typer.completion import shell_complete

        return shell_complete(command, {}, "cellrisk", COMPLETION, completing)
    try:
        with command.make_context("cellrisk", list(arguments)) as context:
            context.meta[TYPED] = shlex.join(["cellrisk", *map(_without_place, arguments)])
            command.invoke(context)
        code = 0
    except typer.Exit as end:
        code = int(end.exit_code)
    except SystemExit as end:  # --show-completion and --install-completion
        code = int(end.code or 0)
    sys.stdout.flush()
    return code


def _without_place(word: str) -> str:
    """A word of a command as a document may show it: without folders of this machine, and without passwords.

    >>> [_without_place(word) for word in ("/home/me/people.csv", "postgresql://me:secret@host/people", "--qid")]
    ['people.csv', 'postgresql://...', '--qid']
    """
    scheme, is_address, _ = word.partition("://")
    if is_address:
        return f"{scheme}://..."
    return os.path.basename(word) if os.path.isabs(word) else word


def _refuse(error: BaseException) -> int:
    """Says in one line why a command has failed; returns the exit code."""
    import typer

    usage_error: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    refusal = find_refusal(error)
    if refusal is not None:
        return _fail(refusal, getattr(error, "exit_code", BAD_INPUT))
    if isinstance(error, usage_error):
        text = " ".join(error.format_message().split()).rstrip(".")
        if "--perturbation" in text:
            from cellrisk.cli.perturbations import explain_refusal

            reason = explain_refusal(error)
            if reason is not None:
                return _fail(reason, BAD_INPUT)
        return _fail(f"{text}; see cellrisk --help", BAD_INPUT)
    if isinstance(error, typer.Abort):
        return _fail("interrupted", INTERRUPTED)
    if isinstance(error, BrokenPipeError):  # the reader of a pipe has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if not isinstance(error, Exception) or os.environ.get("CELLRISK_TRACEBACK"):
        raise error
    kind = type(error).__name__  # its text might hold data
    return _fail(f"internal error ({kind}); please report it. CELLRISK_TRACEBACK=1 shows where", INTERNAL)


def find_refusal(error: BaseException) -> str | None:
    """What a refusal says. One of `parsing` is inside the errors of Typer, and does not know its option."""
    from cellrisk.cli.spelling import name_options, spell

    error = explain_missing(error) or error
    if isinstance(error, CellriskError):
        root = build_command()
        return spell(error.render(name_options(root)), root)
    inner: list[Any] = getattr(error.__cause__, "errors", list)()
    found = inner[0].get("ctx", {}).get("error") if inner else None
    return f"{error.param.opts[0]} {found}" if isinstance(found, CellriskError) else None  # type: ignore[attr-defined]


def _say_interrupted(error: BaseException) -> str:
    """What stands after an interruption, as far as the one who was interrupted has said it."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, KeyboardInterrupt | CellriskError) and str(link):
            return say_interrupted(str(link))
        link = link.__cause__ or link.__context__
    return say_interrupted()


def _fail(message: str, code: int) -> int:
    print(visible(f"cellrisk: {message}", ""), file=sys.stderr)
    return code

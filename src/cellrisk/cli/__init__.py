"""The `cellrisk` command. Wrong input ends with exit code 2 and one line on standard error."""

from __future__ import annotations

import atexit
import gc
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from cellrisk.errors import CellriskError, Naming, explain_missing, name_in_python, visible
from cellrisk.system.isolated import safe_path
from cellrisk.system.progress import INTERRUPTED, describe_interruption, interrupted_by_signals

BAD_INPUT = 2
INTERNAL = 1
COMPLETION = "_CELLRISK_COMPLETE"
"""The variable by which a shell asks for completions, as in Typer's scripts."""
OBJECTS_AT_ONCE = 100_000
"""New objects between two searches for garbage: libraries make a million while they load, and hardly one is garbage."""
OTHER_NAMES = {
    "quasi_identifiers": "qid",
    "bins": "bin",
    "measures": "measure",
    "forms": "form",
    "private": "choice_epsilon",
}
"""Arguments in Python whose options have another name."""
ELSEWHERE = {"new_cohort": "ledger add --new-cohort"}
"""Options that a refusal names although the command itself lacks them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code. Without ``arguments``, the process is there for this command."""
    if arguments is not None:
        return _main(list(arguments), alone=False)
    sys.path[:] = safe_path()
    gc.set_threshold(OBJECTS_AT_ONCE)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more threads wait for each other longer than they work
    codes: list[int] = []
    atexit.register(_leave, codes)  # the first to be registered is called last
    codes.append(_main(sys.argv[1:], alone=True))
    return codes[0]


def _leave(codes: list[int]) -> None:
    """End a process that has cleaned up; Python would take a third of a second to unload the libraries."""
    with suppress(OSError, ValueError):  # Python reports it
        sys.stdout.flush()
        sys.stderr.flush()
        if codes:
            os._exit(codes[0])


def _main(arguments: list[str], alone: bool) -> int:
    with interrupted_by_signals() as signals:
        try:
            return _run(arguments)
        except BaseException as error:
            if not (signals or isinstance(error, KeyboardInterrupt)):
                return _refuse(error, arguments)
            code = _fail(_describe_interruption(error), INTERRUPTED)
            if alone:
                os._exit(code)  # threads of libraries are not waited for
            return code


def _run(arguments: list[str]) -> int:
    """Run a command and return its code; Typer's own function would swallow an interruption."""
    import typer

    from cellrisk.cli.program import HELP_ALL, PROGRAM

    completing = os.environ.get(COMPLETION)
    if completing:
        from typer.completion import shell_complete

        return shell_complete(PROGRAM, {}, "cellrisk", COMPLETION, completing)
    code = 0
    try:
        words = ["--help" if word == HELP_ALL else word for word in arguments]
        with PROGRAM.make_context("cellrisk", words, obj=arguments) as context:
            PROGRAM.invoke(context)
    except (typer.Exit, SystemExit) as end:  # SystemExit: --show-completion and --install-completion
        code = int(getattr(end, "exit_code", None) or getattr(end, "code", None) or 0)
    sys.stdout.flush()
    return code


def _refuse(error: BaseException, arguments: Sequence[str]) -> int:
    """Print in one line why a command has failed; return the exit code."""
    import typer

    usage_error: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    refusal = find_refusal(error, arguments)
    if refusal is not None:
        return _fail(refusal, getattr(error, "exit_code", BAD_INPUT))
    if isinstance(error, usage_error):
        text = " ".join(error.format_message().split()).rstrip(".").replace(": Value error, ", ": ")
        missing: Any = getattr(error, "param", None) if type(error).__name__ == "MissingParameter" else None
        if missing is not None and missing.opts[0].startswith("--"):
            text += f"; add {missing.opts[0]} {missing.metavar}"
        path = " ".join(str(getattr(getattr(error, "ctx", None), "command_path", "cellrisk")).split())
        return _fail(f"{text}; see {path} --help", BAD_INPUT)
    if isinstance(error, BrokenPipeError):  # the reader of a pipe has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if not isinstance(error, Exception) or os.environ.get("CELLRISK_TRACEBACK"):
        raise error
    kind = type(error).__name__  # its text might hold data
    return _fail(f"internal error ({kind}); please report it. CELLRISK_TRACEBACK=1 shows where", INTERNAL)


def find_refusal(error: BaseException, arguments: Sequence[str] = ()) -> str | None:
    """Return the message of a refusal. One of `parsing` is inside the errors of Typer, and lacks its option."""
    error = explain_missing(error) or error
    if isinstance(error, CellriskError):
        from cellrisk.cli.program import PROGRAM

        command = PROGRAM
        for word in arguments:
            command = getattr(command, "commands", {}).get(word, command)
        return error.render(name_options(command))
    inner: list[Any] = getattr(error.__cause__, "errors", list)()
    cause = inner[0].get("ctx", {}).get("error") if inner else None
    return f"{error.param.opts[0]} {cause}" if isinstance(cause, CellriskError) else None  # type: ignore[attr-defined]


def name_options(command: Any) -> Naming:
    """Return how the command line writes an argument; what has no option keeps its name in Python.

    >>> from types import SimpleNamespace as Of
    >>> naming = name_options(Of(params=(Of(name="force", opts=["--force"], secondary_opts=[]),)))
    >>> naming("force", "True"), naming("force", None), naming("seed", "1")
    ('--force', '--force', 'seed=1')
    """
    options = {parameter.name: parameter for parameter in command.params if parameter.opts[0].startswith("--")}

    def name_option(name: str, value: str | None) -> str:
        option = options.get(OTHER_NAMES.get(name, name))
        if option is None:
            return ELSEWHERE.get(name) or name_in_python(name, value)
        on, off = option.opts[0], next(iter(option.secondary_opts), f"no {option.opts[0]}")
        if value in ("True", None):
            return str(on)
        return str(off) if value == "False" else f"{on} {shlex.quote(str(value))}"

    return name_option


def _describe_interruption(error: BaseException) -> str:
    """Return what was written before an interruption, if the interrupted code has reported it."""
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, KeyboardInterrupt | CellriskError) and str(link):
            return describe_interruption(str(link))
        link = link.__cause__ or link.__context__
    return describe_interruption()


def _fail(message: str, code: int) -> int:
    print(visible(f"cellrisk: {message}", ""), file=sys.stderr)
    return code

"""Questions that R asks: a request as JSON and the data as CSV in memory come in, an answer as JSON goes out.

Texts and bytes pass between R and Python whatever the versions of reticulate and numpy; frames and missing values do
not.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import cellrisk as cr
from cellrisk.errors import CellriskError, explain_missing

Request = dict[str, Any]
OLDEST = (0, 2)
"""The first version of cellrisk that has all that is asked for here."""
NOT_FROM_R = {"table", "original", "released", "progress", "policy", "published"}
"""Arguments that are no text and no number."""
FAULT = "internal error ({}); please report it. CELLRISK_TRACEBACK=1 shows where"


def answer(request: str, data: bytes = b"", released: bytes = b"", perturbation: bytes = b"") -> str:
    """The answer to one question, or the refusal, as JSON. Nothing is raised that could quote a value of the data."""
    try:
        asked = json.loads(request)
        if tuple(int(part) for part in cr.__version__.split(".")[:2]) < OLDEST:
            raise cr.InvalidInput(
                "this version of the Python package cellrisk is too old",
                got=cr.__version__,
                allowed=".".join(map(str, OLDEST)) + " or later",
                fix="run: pip install --upgrade cellrisk",
            )
        found = QUESTIONS[asked["question"]](asked, {"data": data, "released": released, "perturbation": perturbation})
        return json.dumps(_plain(found), allow_nan=False)
    except Exception as error:
        refusal = explain_missing(error) or error
        if isinstance(refusal, CellriskError):
            kind = "unknown_name" if isinstance(refusal, cr.UnknownName) else "invalid_input"
            return json.dumps(
                {"error": {"kind": kind, "message": str(refusal).replace("the Arrow table", "the data frame")}}
            )
        if os.environ.get("CELLRISK_TRACEBACK"):
            raise
        return json.dumps({"error": {"kind": "fault", "message": FAULT.format(type(error).__name__)}})


def _plain(value: Any) -> Any:
    """The same with null for what is no number, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read_frame(content: bytes, kinds: dict[str, str]) -> Any:
    """The data frame of R as an Arrow table, each column of the type that R says; empty without quotes is NA."""
    import pyarrow as pa
    from pyarrow import csv

    types = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "truth": pa.bool_()}
    # A thread of Arrow's gives the memory back, later. It must not be Python's: to do that the thread would wait for
    # Python, which R holds, and R waits for the thread when it ends.
    copied = pa.BufferOutputStream()
    copied.write(content)
    return csv.read_csv(
        pa.BufferReader(copied.getvalue()),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types={name: types[kind] for name, kind in kinds.items()},
            null_values=[""],
            true_values=["TRUE"],
            false_values=["FALSE"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _source(asked: Request, sent: dict[str, bytes], which: str) -> Any:
    given = asked[which]
    return given["path"] if "path" in given else _read_frame(sent[which], given["kinds"])


def _tabulate(asked: Request, sent: dict[str, bytes]) -> Any:
    return cr.tabulate(_source(asked, sent, "data"), **asked["table"])


def _arguments(question: Callable[..., Any], asked: Request) -> dict[str, Any]:
    """The arguments of a function of cellrisk, those that it does not have refused."""
    given = dict(asked["arguments"])
    known = set(inspect.signature(question).parameters) - NOT_FROM_R
    unknown = sorted(set(given) - known)
    if unknown:
        raise cr.InvalidInput("there is no such argument", got=", ".join(unknown), allowed=", ".join(sorted(known)))
    if isinstance(given.get("priors"), dict):
        allowed = set(inspect.signature(cr.Priors).parameters)
        if not set(given["priors"]) <= allowed:
            raise cr.InvalidInput("priors has other names", allowed=", ".join(sorted(allowed)))
        given["priors"] = cr.Priors(**given["priors"])
    for name in ("preparation", "disclosures"):
        if isinstance(given.get(name), str):
            given[name] = [given[name]]
    return given


def _describe(found: Any, **more: Any) -> dict[str, Any]:
    """What R keeps of an answer: its sentence, what it prints, its frame column by column, and its JSON as text."""
    frame = found.to_frame().astype(object)
    frame = frame.where(frame.notna(), None)
    document = _plain(found.to_dict())
    return {
        "headline": found.headline,
        "text": str(found),
        "frame": {str(name): frame[name].tolist() for name in frame.columns},
        "json": json.dumps(document, allow_nan=False),
        **more,
    }


def _ask_assess(asked: Request, sent: dict[str, bytes]) -> dict[str, Any]:
    if "perturbation" not in asked:
        arguments = _arguments(cr.assess, asked)
        return _describe(cr.assess(_tabulate(asked, sent), **arguments))
    with _perturbation(asked, sent) as made:
        return _describe(
            cr.assess_perturbation(_tabulate(asked, sent), made, **_arguments(cr.assess_perturbation, asked))
        )


@contextmanager
def _perturbation(asked: Request, sent: dict[str, bytes]) -> Iterator[Any]:
    given = asked["perturbation"]
    if isinstance(given, str):
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="cellrisk-") as folder:  # of this user alone
        path = Path(folder, "perturbation.csv")
        path.write_bytes(sent["perturbation"])
        yield cr.read_perturbation(path)


def _ask_curve(asked: Request, sent: dict[str, bytes]) -> dict[str, Any]:
    return _describe(cr.curve(_tabulate(asked, sent), **_arguments(cr.curve, asked)))


def _ask_choose(asked: Request, sent: dict[str, bytes]) -> dict[str, Any]:
    return _describe(cr.choose(_tabulate(asked, sent), **_arguments(cr.choose, asked)))


def _ask_release(asked: Request, sent: dict[str, bytes]) -> dict[str, Any]:
    from cellrisk.publish.releasing.files import check_free

    output, force, book = asked.get("output"), bool(asked.get("force")), asked.get("record")
    arguments = _arguments(cr.release, asked)
    if output is not None:
        check_free(output, force)
    elif book is not None:
        raise cr.InvalidInput("a ledger records the file that was released", fix='name it: output = "released.csv"')
    table = _tabulate(asked, sent)
    if book is None:
        released = cr.release(table, **arguments)
        written = None if output is None else str(released.save(output, force=force))
        return _describe(released, written=written)
    words = ("epsilon", "delta", "neighbours", "threshold")
    mechanism = cr.mechanism(
        arguments.pop("mechanism", "geometric"), **{name: arguments.pop(name, None) for name in words}
    )
    with cr.Ledger(book.pop("ledger")) as ledger:
        ledger.check(mechanism, **{name: value for name, value in book.items() if name != "purpose"})
        released = cr.release(table, mechanism, **arguments)
        entry = ledger.save(released, output, force=force, **book)
    return _describe(released, written=output, entry=entry.number)


def _ask_audit(asked: Request, sent: dict[str, bytes]) -> dict[str, Any]:
    table, arguments = _tabulate(asked, sent), _arguments(cr.audit, asked)
    if "description" not in asked["released"]:
        from cellrisk.publish.releasing.files import find_count_column

        released = _source(asked, sent, "released")
        if isinstance(released, str) and "count" not in arguments:
            arguments["count"] = find_count_column(released)
        return _describe(cr.audit(table, released, **arguments))
    # A release that R holds is a file with its description beside it, which says how it was made and is believed.
    described = json.loads(asked["released"]["description"])
    described |= {"file": "released.csv", "sha256": hashlib.sha256(sent["released"]).hexdigest()}
    with tempfile.TemporaryDirectory(prefix="cellrisk-") as folder:  # of this user alone
        path = Path(folder, "released.csv")
        path.write_bytes(sent["released"])
        Path(folder, "released.csv.json").write_text(json.dumps(described), encoding="utf-8")
        return _describe(cr.audit(table, path, **{**arguments, "count": described["count"]}))


def _ask_report(asked: Request, sent: dict[str, bytes]) -> dict[str, Any]:
    from cellrisk.show.reporting.document import check_report_path

    arguments = _arguments(cr.report, asked)
    check_report_path(asked["output"])
    with ExitStack() as opened:
        if "ledger" in arguments:
            arguments["ledger"] = opened.enter_context(cr.Ledger(arguments["ledger"]))
        found = cr.report(_tabulate(asked, sent), **arguments)
    return _describe(found, written=str(found.save(asked["output"])))


QUESTIONS: dict[str, Callable[[Request, dict[str, bytes]], dict[str, Any]]] = {
    "assess": _ask_assess,
    "curve": _ask_curve,
    "choose": _ask_choose,
    "release": _ask_release,
    "audit": _ask_audit,
    "report": _ask_report,
}

"""Read a release from its file and the description beside it; files are hostile until their digests say otherwise."""

from __future__ import annotations

import hashlib
import io
import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cellrisk.counts.unit import Unit
from cellrisk.errors import CellriskError, InvalidInput
from cellrisk.noise.mechanisms import DiscreteGaussian, Mechanism, mechanism
from cellrisk.publish.releasing.measurement import Measurement
from cellrisk.publish.releasing.saving import check_format, sidecar_of

if TYPE_CHECKING:
    import pandas as pd

Made = TypeVar("Made")
LARGEST_DESCRIPTION, LARGEST_FILE = 1 << 28, 1 << 33
LONGEST = 10_000
"""Characters of a text of a description."""
LONGEST_EXCEPTION = 1_000
MISSING_RULES, OUTSIDE_RULES = ("category", "drop", "error"), ("drop", "error")


def read_regular(path: Path, largest: int) -> bytes:
    """The content of a regular file. Neither a pipe nor a device is opened: that can act, or wait for ever."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as stream:
        found = os.fstat(stream.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
            raise OSError(0, "not a regular file, or too large")
        return stream.read()


def read_description(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The description beside a file that `release` wrote; None for any other file."""
    try:
        described = json.loads(read_regular(sidecar_of(path), LARGEST_DESCRIPTION))
        return dict(described) if described["file"] == Path(path).name else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def find_count_column(path: str | os.PathLike[str]) -> str | None:
    """The column of counts of a file that `release` wrote, as its description says; None for any other file."""
    name = (read_description(path) or {}).get("count")
    return name if isinstance(name, str) else None


def read_content(path: Path) -> bytes:
    try:
        return read_regular(path, LARGEST_FILE)
    except OSError as error:
        raise InvalidInput("the released table cannot be read", got=f"{path} ({error.strerror})") from None


def load(path: str | os.PathLike[str], make: Callable[..., Made]) -> Made:
    """A release as `Release.save` wrote it, made of its fields.

    Refused: a file without its description (code "no-description"), one that is not, byte for byte, the one described
    ("changed"), and a description that `release` would not write ("description").
    """
    file = check_format(path)
    content = read_content(file)
    described = read_description(file)
    if described is None:
        raise InvalidInput(
            "there is no description beside the released table",
            got=file.name,
            fix=f"keep {sidecar_of(file).name} beside it",
            code="no-description",
        )
    if hashlib.sha256(content).hexdigest() != described.get("sha256"):
        raise InvalidInput(
            "the released table is not the one that its description names",
            got=f"{file.name} with another sha256",
            fix="restore the file as it was published",
            code="changed",
        )
    if described.get("spreadsheet_safe") and file.suffix.lower() == ".csv":
        raise InvalidInput(
            "the release was written for spreadsheets: its texts are not those of the table",
            got=file.name,
            fix="use one that was written without --spreadsheet-safe, or as .parquet",
            code="spreadsheet",
        )
    frame = decode(file, content)
    try:
        return make(**_read_fields(frame, described))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        why = f": {error}" if isinstance(error, CellriskError) else ""
        raise InvalidInput(
            f"the description beside {file.name} is not as cellrisk writes it{why}", code="description"
        ) from None


def decode(file: Path, content: bytes) -> pd.DataFrame:
    """The frame of a released file; texts of a CSV file stay texts."""
    import pandas as pd

    try:
        if file.suffix.lower() == ".csv":
            return pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False, encoding="utf-8")
        return pd.read_parquet(io.BytesIO(content))
    except (ValueError, OSError, MemoryError):  # pandas' and Arrow's own errors are of these kinds
        raise InvalidInput(f"the released table is no {file.suffix.lower()} file", got=file.name) from None


def read_guarantee(described: Mapping[str, Any]) -> Mechanism | None:
    """A mechanism with the guarantee that a description states; None if it states none."""
    loss = described["guarantee"]
    if loss is None:
        return None
    made = mechanism("discrete-gaussian" if loss["delta"] else "geometric", **loss)
    made = made.with_unit(Unit.from_dict(described["unit"]))
    if made.neighbours != loss["neighbours"] or made.epsilon < described["mechanism"]["epsilon"]:
        raise ValueError("the guarantee is not that of the mechanism")
    return made


def _read_fields(frame: pd.DataFrame, described: dict[str, Any]) -> dict[str, Any]:
    words = ("epsilon", "delta", "neighbours", "threshold")
    made = described["mechanism"]
    named = mechanism(made["name"], **{word: made[word] for word in words if word in made})
    named = named.with_unit(Unit.from_dict(described["unit"]))
    noise = described["noise"]
    gaussian = isinstance(named, DiscreteGaussian)
    columns = [*_texts(described["quasi_identifiers"]), _text(described["sensitive"]), _text(described["count"])]
    if [str(column) for column in frame.columns] != columns or len(frame) != described["released"]:
        raise ValueError("the columns or the rows are not those of the file")
    if frame[columns[-1]].dtype == object or frame[columns[-1]].dtype.kind not in "iu":
        frame = frame.assign(**{columns[-1]: [int(text) for text in frame[columns[-1]]]})
    if not all(text.isprintable() and len(text) <= LONGEST_EXCEPTION for text in _texts(described["not_covered"])):
        raise ValueError("a sentence is too long, or has hidden characters")
    _texts(described["statements"])
    _text(described["sentence"])
    read_guarantee(described)
    flags = {name: described[name] for name in ("clamp", "dense", "observed_cells_only")}
    if not all(isinstance(flag, bool) for flag in flags.values()):
        raise ValueError("flags must be true or false")
    if described["missing"] not in MISSING_RULES or described["outside"] not in OUTSIDE_RULES:
        raise ValueError("unknown rules for records")
    return {
        "mechanism": named,
        "measurement": Measurement(gaussian, float(noise["scale"]), float(*noise["privacy_loss"].values())),
        "quasi_identifiers": tuple(columns[:-2]),
        "sensitive": columns[-2],
        "frame": frame,
        "labels": {_text(name): _texts(labels) for name, labels in described["labels"].items()},
        "domain_size": _whole(described["domain_size"]),
        "excluded": _whole(described["excluded"]),
        "observed_levels": _texts(described["observed_levels"]),
        "may_be_missing": _texts(described["may_be_missing"]),
        "missing": described["missing"],
        "outside": described["outside"],
        "description": described,
        **flags,
    }


def _text(given: Any) -> str:
    if not isinstance(given, str) or len(given) > LONGEST:
        raise ValueError("not a text")
    return given


def _texts(given: Any) -> tuple[str, ...]:
    if not isinstance(given, list):
        raise ValueError("not a list")
    return tuple(_text(text) for text in given)


def _whole(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 0:
        raise ValueError("not a whole number")
    return given

"""Neighbouring inputs and what a reader sees of a release: everything but the noise.

Two inputs that differ in one record must look alike: labels, their order, types, categories, the description, messages,
exit codes and names of files. `look` and `look_at_command` give all that in a form that can be compared.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import cellrisk as cr
from cellrisk.cli import main
from cellrisk.errors import CellriskError
from cellrisk.publish.releasing import Release, release

Record = tuple[Any, ...]


@dataclass(frozen=True)
class Kind:
    """A way to declare a column, values inside of it, and others that a record may bring along."""

    usual: tuple[Any, ...]
    hostile: tuple[Any, ...]
    levels: tuple[Any, ...] | None = None
    edges: tuple[float, ...] | None = None


KINDS = {
    "text": Kind(("a", "b"), ("unseen", " a", "(missing)", None, "never", 'q"u,o\nte', "=1+1"), ("a", "b", "never")),
    "truth": Kind(("True", "true"), ("TRUE", "FALSE", "yes", None, "1"), (True, False)),
    "numbers": Kind(("1", "2"), ("1.0", "3.0", "2.00", "x", None, "inf"), (1.0, 2.0, 3.0)),
    "edges": Kind(
        ("5", "30"),
        ("0", "18", "65.5", "-1e300", "1e400", "nan", "inf", "thirty", None, "9" * 30),
        edges=(0.0, 18.0, 65.0),
    ),
    "typed": Kind((1, 2), (7, None, -3, 2**53), (1, 2, 3)),
    "typed edges": Kind((5, 30), (0, None, 66, -(10**15)), edges=(0, 18, 65)),
    "flags": Kind((True, False), (None,), (True, False)),
    "observed": Kind(("u", "v"), ()),
    "observed widths": Kind((1, 7), ()),
}


@dataclass(frozen=True)
class Case:
    """What is declared, and how it is released."""

    kinds: tuple[str, ...]
    """The kinds of the quasi-identifiers q0, q1, ..., and last that of the sensitive column y."""
    missing: str = "category"
    may_be_missing: tuple[str, ...] = ()
    exclude: tuple[dict[str, list[str]], ...] = ()
    counted: bool = False
    """Whether the source is a table of counts."""
    mechanism: cr.Mechanism = field(default_factory=lambda: cr.Geometric(epsilon=1.0))
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return [*(f"q{place}" for place in range(len(self.kinds) - 1)), "y"]

    @property
    def declared(self) -> dict[str, Any]:
        kinds = dict(zip(self.names, (KINDS[kind] for kind in self.kinds), strict=True))
        widths = {name: 5 for name, kind in zip(self.names, self.kinds, strict=True) if kind == "observed widths"}
        return {
            "levels": {name: list(kind.levels) for name, kind in kinds.items() if kind.levels is not None},
            "bins": {name: list(kind.edges) for name, kind in kinds.items() if kind.edges is not None} | widths,
        }

    @property
    def observed(self) -> list[str]:
        return [name for name, kind in zip(self.names, self.kinds, strict=True) if kind.startswith("observed")]

    def usual(self) -> list[Record]:
        """Records inside: every combination of usual values, so that none hangs on one record, and some twice."""
        rows: list[Record] = [()]
        for kind in self.kinds:
            rows = [(*row, value) for row in rows for value in KINDS[kind].usual]
        return rows + rows[::2] + rows[:1]

    def frame(self, records: Sequence[Record]) -> pd.DataFrame:
        """The records as a frame whose types follow from the values, as they do in practice."""
        if not self.counted:
            return pd.DataFrame(list(records), columns=self.names)
        counts = Counter(records)
        return pd.DataFrame([(*key, n) for key, n in counts.items()], columns=[*self.names, "n"])

    def neighbours(self) -> list[list[Record]]:
        """Inputs that differ from the usual records in one: added first or last, removed, or changed."""
        records = self.usual()
        found = [records[1:], records[:-1]]
        for turn, record in enumerate(self.strangers()):
            found.append([[record, *records], [*records, record], [record, *records[1:]]][turn % 3])
        return found

    def strangers(self) -> list[Record]:
        """Records with one value that is missing, unseen, extreme, on an edge, or no number where one is needed."""
        usual = self.usual()[0]
        return [
            (*usual[:place], value, *usual[place + 1 :])
            for place, kind in enumerate(self.kinds)
            for value in KINDS[kind].hostile
        ]

    def crowds(self) -> list[list[Record]]:
        """Inputs farther away, along a path of neighbours: all strangers at once, nobody, and somebody unknown."""
        crowd = [self.strangers() + self.usual()]
        return crowd if self.observed else [*crowd, [], [tuple(None for _ in self.names)]]


def look(case: Case, records: Sequence[Record], outside: str = "drop", ending: str = ".parquet") -> Any:
    """What a reader sees of a release made in Python."""
    source = case.frame(records)
    try:
        table = cr.tabulate(
            source,
            case.names[:-1],
            "y",
            **case.declared,
            missing=case.missing,
            outside=outside,
            count="n" if case.counted else None,
        )
        found = release(
            table,
            case.mechanism,
            may_be_missing=case.may_be_missing,
            exclude=case.exclude,
            observed_levels=case.observed,
            **case.options,
        )
    except CellriskError as refusal:
        return str(refusal)
    return see(found, ending)


def see(found: Release, ending: str) -> dict[str, Any]:
    """A release without its noise: where only positive counts are listed, which rows are listed is noise too."""
    content = found.encode(ending)
    described = found.to_dict()
    text = str(found)
    rows = found.frame[found.frame.columns[:-1]].astype(str).to_numpy().tolist()
    if not found.dense:
        listed = f"{described.pop('released'):,}"
        described["sentence"] = described["sentence"].removeprefix(listed)
        text = re.sub(rf"^{listed}|(?<=counts listed) +{listed}", "#", text)
        declared = [name for name in found.frame.columns[:-1] if name not in found.observed_levels]
        rows = [(name, list(found.frame[name].cat.categories)) for name in declared]
    if ending == ".csv":
        form: Any = content.decode().splitlines()[0]
        if found.dense:
            form = [line.rpartition(",")[0] for line in content.decode().splitlines()]
    else:
        schema = pq.read_schema(io.BytesIO(content))
        form = [str(schema.remove_metadata()), json.loads(schema.metadata[b"pandas"])]
        if not found.dense:  # of observed labels, those that are listed are known
            form[1]["columns"] = [each for each in form[1]["columns"] if each["name"] not in found.observed_levels]
    types = {name: str(kind) for name, kind in found.frame.dtypes.items()}
    return {"rows": rows, "described": described, "text": re.sub(" {2,}", "  ", text), "form": form, "types": types}


def look_at_command(case: Case, records: Sequence[Record], folder: Path, capture: Any, *more: str) -> Any:
    """What a reader sees of `cellrisk release`: exit code, output, names of files, and what they hold."""
    folder.mkdir()
    source = folder / "people.csv"
    case.frame(records).to_csv(source, index=False)
    before = Path.cwd()
    os.chdir(folder)
    try:
        code = main(["release", "people.csv", *arguments(case), *more, "--output", "out.csv"])
        out, err = capture.readouterr()
        files = sorted(os.listdir())
        if code:
            return code, out, err, files
        described = json.loads(Path("out.csv.json").read_text(encoding="utf-8"))
        lines = Path("out.csv").read_text(encoding="utf-8").splitlines()
    finally:
        os.chdir(before)
    del described["sha256"]
    rows: Any = [line.rpartition(",")[0] for line in lines]
    if not described["dense"]:
        listed = f"{described.pop('released'):,}"
        described["sentence"] = described["sentence"].removeprefix(listed)
        out = re.sub(rf"^{listed}|(?<=counts listed) +{listed}", "#", out)
        rows = rows[0]
    return code, re.sub(" {2,}", "  ", out), err, files, described, rows


def arguments(case: Case) -> list[str]:
    """The case as options of the command line."""
    declared = case.declared
    found = ["--qid", ",".join(case.names[:-1]), "--sensitive", "y", "--missing", case.missing]
    found += ["--epsilon", f"{case.mechanism.epsilon:g}", "--neighbours", case.mechanism.neighbours]
    found += ["--threshold", f"{case.mechanism.threshold:g}"]
    for name, levels in declared["levels"].items():
        found += ["--levels", f"{name}={'|'.join(str(level) for level in levels)}"]
    for name, bins in declared["bins"].items():
        found += ["--bin", f"{name}={'/'.join(f'{edge:g}' for edge in bins)}"]
    for name in case.may_be_missing:
        found += ["--may-be-missing", name]
    for rule in case.exclude:
        found += ["--exclude", ";".join(f"{name}={'|'.join(labels)}" for name, labels in rule.items())]
    found += ["--count", "n"] if case.counted else []
    found += ["--observed-levels", ",".join(case.observed)] if case.observed else []
    if "dense" in case.options:
        found.append("--dense" if case.options["dense"] else "--sparse")
    return found + (["--no-clamp"] if case.options.get("clamp") is False else [])


def draw_case(seed: int, kinds: Sequence[str] = tuple(KINDS)) -> Case:
    """A case by chance."""
    generator = np.random.default_rng(seed)

    def some(of: Sequence[Any]) -> Any:
        return of[int(generator.integers(len(of)))]

    sensitive = some([kind for kind in kinds if not kind.startswith("observed")])
    chosen = (*(some(kinds) for _ in range(generator.integers(1, 3))), sensitive)
    case = Case(chosen)
    threshold = float(some([0.5, 2.5]))
    options: dict[str, Any] = some([{}, {"dense": True}, {"dense": False}])
    if threshold == 0.5 and generator.random() < 0.2:
        options = {"clamp": False}
    missing = some(["category", "category", "drop"])
    maybe = tuple(name for name in case.names if generator.random() < 0.4) if missing == "category" else ()
    rule = {}
    if generator.random() < 0.4:
        first = KINDS[chosen[0]]
        rule = {"y": [label_of(KINDS[sensitive])]} | ({} if case.observed else {"q0": [label_of(first)]})
    return Case(
        chosen,
        missing=missing,
        may_be_missing=maybe,
        exclude=(rule,) if rule else (),
        counted=bool(generator.random() < 0.3),
        mechanism=cr.Geometric(epsilon=1.0, neighbours=some(["add-remove", "replace"]), threshold=threshold),
        options=options,
    )


def label_of(kind: Kind) -> str:
    """A declared label that usual records have."""
    if kind.edges is not None:
        return f"({kind.edges[0]:g}, {kind.edges[1]:g}]"
    level = (kind.levels or ("u",))[0]
    return f"{level:g}" if isinstance(level, float) else str(level)

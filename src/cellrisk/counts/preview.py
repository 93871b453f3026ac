"""A first look at a file: its columns, the kind of their values, and what they are likely to be.

Roles are suggested from the names of the columns and from how many values they have. A draft of cellrisk.toml holds
them with the levels as they occur, and bins to fill in.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cellrisk.counts.columns import has_plain_values, is_numeric, is_text, kind_of, observe, plain_value
from cellrisk.counts.engine import Relation, Resources
from cellrisk.counts.files import find_files
from cellrisk.counts.schema import AskedColumns, is_named_like_counts, locate, words_of
from cellrisk.counts.sources import open_source
from cellrisk.errors import InvalidInput
from cellrisk.system.formatting import aligned, number_of
from cellrisk.system.progress import Progress
from cellrisk.system.results import Result

MOST_COLUMNS = 2000
COUNTED = 10_001
"""Up to here the number of distinct values is given."""
READ = {
    "number": "TRY_CAST(v AS DOUBLE) IS NOT NULL AND NOT isnan(TRY_CAST(v AS DOUBLE))",
    "truth": "lower(v) IN ('true', 'false')",
    "date": "TRY_CAST(v AS TIMESTAMP) IS NOT NULL",
}
"""The kinds that text may be read as, the likeliest first, and SQL for texts that read so."""
QUASI_IDENTIFIER, SENSITIVE, COUNT, IDENTIFIER = "quasi-identifier", "sensitive", "counts", "identifier"
UNLIKELY = "none"
SENSITIVE_WORDS = """
income salary wage wages earnings wealth debt credit benefit benefits diagnosis diagnoses disease illness condition
icd hiv cancer drug drugs medication treatment outcome test result infection pregnant pregnancy disability mental
smoker smoking alcohol religion faith politics party vote orientation conviction crime offence offense arrest visa
asylum einkommen gehalt diagnose krankheit revenu salaire maladie ingreso renta
"""
IDENTIFIER_WORDS = """
id ids uid uuid key name surname firstname lastname email mail phone ssn nhs passport account iban address
"""
MOST_LEVELS = 100
"""Levels of a column that is suggested as it is; a number with more is suggested in bins."""
FEW_LEVELS = 20
MOST_SUGGESTED = 6
ALMOST_UNIQUE = 0.9


@dataclass(frozen=True)
class PreviewedColumn:
    """One column of a file."""

    name: str
    kind: str
    """text, number, truth, date; "other" if no table can be made of it."""
    levels: int | None
    """Distinct values, missing ones left out; None if there are more than 10,001."""
    missing: int
    unique_share: float
    """Distinct values over rows with a value."""

    def suggest_role(self) -> str:
        """Return what the column is likely to be.

        >>> columns = [PreviewedColumn(name, "text", 40, 0, 0.01) for name in ("region", "diagnosis", "patient_id")]
        >>> [column.suggest_role() for column in columns]
        ['quasi-identifier', 'sensitive', 'identifier']
        """
        words, many = words_of(self.name), self.levels is None or self.levels > MOST_LEVELS
        if self.kind == "other":
            return UNLIKELY
        if self.kind == "number" and is_named_like_counts(self.name):
            return COUNT
        if words & frozenset(IDENTIFIER_WORDS.split()) or (many and self.unique_share > ALMOST_UNIQUE):
            return IDENTIFIER
        if (many and self.kind != "number") or (self.levels is not None and self.levels < 2):
            return UNLIKELY
        return SENSITIVE if words & frozenset(SENSITIVE_WORDS.split()) and not many else QUASI_IDENTIFIER


@dataclass(frozen=True, repr=False)
class Preview(Result):
    """A file before anything is counted, and what its columns are likely to be. It holds no value of any column."""

    file: str
    rows: int
    columns: tuple[PreviewedColumn, ...]

    @property
    def roles(self) -> dict[str, str]:
        """The likely role of each column."""
        roles = {column.name: column.suggest_role() for column in self.columns}
        if SENSITIVE not in roles.values():
            others = [column for column in self.columns if roles[column.name] == QUASI_IDENTIFIER]
            few = [column for column in others if (column.levels or 0) <= FEW_LEVELS]
            likely = [column.name for column in few if column.kind in ("text", "truth")]
            if len(others) > 1 and likely:  # by custom, what is to be explained stands last
                roles[likely[-1]] = SENSITIVE
        return roles

    @property
    def suggested(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The quasi-identifiers and the sensitive attribute to begin with: a few of the first, one of the second."""
        roles = self.roles
        quasi, sensitive = ([name for name in roles if roles[name] == role] for role in (QUASI_IDENTIFIER, SENSITIVE))
        return tuple(quasi[:MOST_SUGGESTED]), tuple(sensitive[:1])

    @property
    def counts(self) -> list[str]:
        """The columns that are likely to hold counts."""
        return [name for name, role in self.roles.items() if role == COUNT]

    @property
    def bins(self) -> dict[str, str]:
        """Bins of those quasi-identifiers that are numbers with many values."""
        numbers = [column for column in self.columns if column.name in self.suggested[0] and column.kind == "number"]
        return {column.name: "10" for column in numbers if column.levels is None or column.levels > FEW_LEVELS}

    @property
    def command(self) -> str | None:
        """The command to type next; None where no column could be sensitive, or none could tell people apart."""
        quasi, sensitive = self.suggested
        if not quasi or not sensitive:
            return None
        words = ["cellrisk", "inspect", self.file, "--qid", ",".join(quasi), "--sensitive", sensitive[0]]
        words += ["--count", self.counts[0]] if self.counts else []
        return shlex.join([*words, *(word for bins in self.bins.items() for word in ("--bin", "=".join(bins)))])

    @property
    def headline(self) -> str:
        """How much there is, and what to do with it."""
        start = f"{number_of(self.rows, 'row')} and {number_of(len(self.columns), 'column')} in {self.file}."
        if self.command is None:
            return f"{start} Name the quasi-identifiers and the sensitive attribute: --qid and --sensitive."
        return f"{start} If the suggested roles are right, go on with: {self.command}"

    def to_dict(self) -> dict[str, Any]:
        """The columns as JSON-ready values."""
        return {"file": self.file, "rows": self.rows, "columns": self._numbers(), "next": self.command}

    def _numbers(self) -> list[dict[str, Any]]:
        names = ("column", "kind", "levels", "missing", "likely_role")
        rows = [(one.name, one.kind, one.levels, one.missing, self.roles[one.name]) for one in self.columns]
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _paragraphs(self) -> Iterable[str]:
        rows = []
        for row in self._numbers():
            levels = "over 10,001" if row["levels"] is None else f"{row['levels']:,}"
            rows.append((row["column"], row["kind"], row["likely_role"], levels, f"{row['missing']:,}"))
        yield aligned(["column", "kind", "likely role", "levels", "missing"], rows, left=3)
        yield (
            "Roles are guessed from the names of the columns and the number of their values. Whoever knows the people "
            "knows better: a quasi-identifier is what an outsider may know of a person, and the sensitive attribute is "
            "what he wants to learn."
        )


def preview_file(
    path: str | os.PathLike[str],
    progress: Progress | None = None,
    table: str | None = None,
    encoding: str | None = None,
    name: str | None = None,
) -> Preview:
    """Describe the columns of a file, of which some may be quasi-identifiers; ``name`` is what it is called.

    Counts are exact. Text of a CSV file is a number if every value that is not missing reads as one, and likewise
    for truth values and dates.

    >>> from cellrisk import datasets
    >>> preview = preview_file(datasets.adult_path())
    >>> preview.rows, [(column.name, column.kind, column.levels, column.missing) for column in preview.columns[:2]]
    (32561, [('age', 'number', 73, 0), ('workclass', 'text', 8, 1836)])
    """
    files = find_files(path)
    if len(files) != 1:
        raise InvalidInput("a preview is of one file", got=f"{len(files)} files", code="file-kind")
    names, report = AskedColumns(every=True), progress or (lambda share: None)
    report(0.0)
    with open_source(files[0], names, Resources.of(None, progress), table=table, encoding=encoding) as records:
        if len(names) > MOST_COLUMNS:
            what, got = "the file has too many columns to preview", f"{len(names):,}"
            raise InvalidInput(what, got=got, allowed=f"{MOST_COLUMNS:,}", code="too-many-columns")
        rows = int(records.fetch(f"SELECT coalesce(sum({records.rows}), 0) FROM {{rows}}")[0][0])
        columns = tuple(_describe(records, *pair, rows) for pair in zip(records.types, names, strict=True))
    report(1.0)
    return Preview(str(path) if name is None else name, rows, columns)


def _describe(records: Relation, column: str, name: str, rows: int) -> PreviewedColumn:
    kind = records.types[column]
    values = f"(SELECT {plain_value(column, kind)} AS v, sum({records.rows}) AS n FROM {{rows}} GROUP BY v)"
    facts = ["count(v)", "coalesce(sum(n) FILTER (v IS NULL), 0)"]
    facts += [f"bool_and({sql}) FILTER (v IS NOT NULL)" for sql in READ.values()] if is_text(kind) else []
    levels, missing, *reads = records.fetch(f"SELECT {', '.join(facts)} FROM {values} AS listed")[0]
    if not has_plain_values(kind):
        return PreviewedColumn(name, "other", None, int(missing), 0.0)
    named = "truth" if kind == "BOOLEAN" else "number" if is_numeric(kind) else "date"
    if is_text(kind) or missing == rows:
        named = next((read for read, is_read in zip(READ, reads, strict=False) if is_read), "text")
    share = levels / (rows - missing) if levels else 0.0
    return PreviewedColumn(name, named, None if levels > COUNTED else levels, int(missing), float(share))


MOST_LISTED = 1000
"""Levels of a column of text that are written down."""
HEAD = """\
# A draft: levels were read from the data and must be checked against a public list, such as a code book.
# Add values that can occur but do not, and delete values that the public list does not have.
# A release is covered by its guarantee only if its levels come from outside the data.
"""
BINS = """
[bin]
# Numbers with many values need bins. Write edges that do not come from the data, and delete the leading '# '.
"""


def draft_settings(
    preview: Preview,
    path: str,
    source: str | os.PathLike[str],
    quasi_identifiers: Sequence[str] = (),
    sensitive: Sequence[str] = (),
    table: str | None = None,
    encoding: str | None = None,
) -> tuple[str, str, dict[str, Any]]:
    """Return the text of a settings file, what to do with it, and what it declares, without its levels.

    Roles that are not given are those that the preview suggests. Columns in no use are written as comments.
    """
    roles, (likely, about) = preview.roles, preview.suggested
    quasi = tuple(quasi_identifiers) or tuple(name for name in likely if name not in sensitive)
    about = tuple(sensitive) or tuple(name for name in about if name not in quasi)
    if not quasi or not about:
        what = "no column looks like a quasi-identifier, or none looks sensitive"
        raise InvalidInput(what, fix="name them: --qid age,sex --sensitive income", code="no-roles")
    columns, used = {column.name: column for column in preview.columns}, [*quasi, *about]
    others = [name for name, role in roles.items() if role in (QUASI_IDENTIFIER, SENSITIVE) and name not in used]
    locate(used, list(columns), "the file")
    levels = {}
    with open_source(source, [*used, *others], Resources.of(None), table=table, encoding=encoding) as records:
        for column, name in zip(records.types, [*used, *others], strict=True):
            value, previewed = plain_value(column, records.types[column]), columns[name]
            most = FEW_LEVELS if previewed.kind == "number" else MOST_LISTED
            if previewed.kind != "other" and 0 < (previewed.levels or 0) <= most:
                rows = records.fetch(f"SELECT DISTINCT {value} AS v FROM {{rows}} WHERE v IS NOT NULL")
                levels[name] = observe([key for (key,) in rows], kind_of(records, column), None)[0]
    lines = [HEAD, f"qid = {_quote(quasi)}", f"sensitive = {_quote(about)}"]
    counts = [name for name in preview.counts if name not in used]
    lines += [f"count = {_quote(counts[0])}  # each row stands for that many people"] if counts else []
    lines += ["", "[levels]"]
    lines += [f"{'' if name in used else '# '}{_quote(name)} = {_quote(levels[name])}" for name in levels]
    unfinished = [name for name in used if name not in levels]
    many = {name: columns[name].levels for name in (*used, *others) if name not in levels}
    shown = {name: "over 10,000" if number is None else f"{number:,}" for name, number in many.items()}
    numbers = [name for name in many if columns[name].kind == "number"]
    lines += [BINS] if numbers else []
    lines += [f"# {_quote(name)} = [0, 10, 100]  # {shown[name]} different numbers" for name in numbers]
    texts = [name for name in unfinished if name not in numbers]
    lines += [f"# {_quote(name)} has too many values to be listed ({shown[name]}): leave it out" for name in texts]
    declared = [name for name in used if name in levels]
    rest = f" Write the bins or levels of {', '.join(unfinished)}." if unfinished else ""
    advice = (
        f"{path} declares the levels of {number_of(len(declared), 'column')} as they occur in the data: check them "
        f"against a public list.{rest} Every command in this folder reads a file named cellrisk.toml; others with "
        "--config."
    )
    document = {"file": path, "qid": list(quasi), "sensitive": list(about)}
    return "\n".join(lines) + "\n", advice, {**document, "declared": declared, "unfinished": unfinished}


def _quote(value: str | Sequence[str]) -> str:
    """Return a text, or a list of texts, as TOML writes it.

    >>> print(_quote(['a "b"', "c"]))
    ["a \\"b\\"", "c"]
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

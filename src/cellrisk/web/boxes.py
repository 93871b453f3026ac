"""The names of the web app's fields, for errors that name an argument."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cellrisk.errors import CellriskError, InvalidInput

LABELS = {
    "max_caused": "“Because of their own record”",
    "max_certain": "“Learnt by an informed attacker”",
    "max_person": "“Most for one person”",
    "max_error": "“Error of a count”",
    "max_ceiling": "“Worst case for one record”",
    "max_epsilon": "“Epsilon, at most”",
    "max_risk": "“Revealed”",
    "max_people": "“People revealed on average”",
    "max_tvd": "“Largest distortion”",
    "margin": "“Revealed above blind”",
    "measure": "“Measure of risk”",
    "form": "“What counts as revealed”",
    "weights": "“Averaged”",
    "epsilon": "“Epsilon”",
    "delta": "“Delta”",
    "mechanism": "“Mechanism”",
    "neighbours": "“Neighbouring tables”",
    "quasi_identifiers": "“Quasi-identifier”",
    "qid": "“Quasi-identifier”",
    "sensitive": "“Sensitive”",
    "bins": "“Bins”",
    "count": "“Each row is”",
    "missing": "“Missing values”",
    "purpose": "“Purpose”",
    "cohort": "“Cohort”",
    "new_cohort": "“A new cohort”",
    "observed_levels": "“Labels as they occur in the data”",
    "observed_cells_only": "“Only cells that are not empty”",
    "spreadsheet_safe": "“Put an apostrophe”",
}


def name_box(name: str, value: str | None) -> str:
    """Write an argument as the web app does: the label of its field; what has no field by its option.

    >>> name_box("delta", None), name_box("missing", "drop"), name_box("person", "patient")
    ('“Delta”', '“Missing values”: drop', '--person patient on the command line')
    """
    box = LABELS.get(name)
    if box is None:
        option = f"--{name.replace('_', '-')}"
        return f"{option if value in (None, 'True') else f'{option} {value}'} on the command line"
    return box if value in (None, "True") else f"{box}: {value}"


@contextmanager
def known_as(path: str, name: str) -> Iterator[None]:
    """Let refusals inside name a file as the user does, not by its path on the server."""
    try:
        yield
    except CellriskError as refusal:
        words = refusal.marked.replace(path, name).replace(Path(path).name, name)
        raise InvalidInput(words, code=refusal.code) from None

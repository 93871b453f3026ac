"""The answer of `release_together`: several tables that may be published, and what has to be said of them as a set."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing.release_result import Release
from cellrisk.publish.releasing.saving import MANIFEST, check_folder, sidecar_of, write_files
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.together.costs import Cost
from cellrisk.repeat.together.sets import SetTable
from cellrisk.risk.ceilings import Ceiling
from cellrisk.system.results import Result
from cellrisk.system.version import __version__


@dataclass(frozen=True, eq=False, repr=False)
class TogetherRelease(Result):
    """Several tables with noise, made by `release_together`. They and everything printed with them may be published.

    ``save`` writes them, each with its description, into a new folder: all or none.
    """

    wording = "set_release"

    tables: tuple[SetTable, ...]
    releases: tuple[Release, ...]
    sensitive: str
    loss: Loss
    """What all of them cost a person at most."""
    cost: Cost
    ceiling: Ceiling | None
    ending: str = ".parquet"

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Those of all tables."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table.quasi_identifiers))

    @property
    def entry(self) -> dict[str, Any]:
        """What a ledger notes of each table in the one entry of the set."""
        tables = [
            {
                "name": table.name,
                "quasi_identifiers": list(table.quasi_identifiers),
                "where": table.where,
                "loss": Loss.of(table.mechanism).to_dict(),
            }
            for table in self.tables
        ]
        return {"tables": tables}

    @property
    def statements(self) -> tuple[str, ...]:
        """What a reader of the tables has to know of them as a set."""
        worst_case = () if self.ceiling is None else (self.ceiling.of_two,)
        return self.cost.headline, *worst_case, "The tables have independent noise, so their common margins differ."

    def name_of(self, table: SetTable) -> str:
        """The file of a table in the folder."""
        return f"table-{table.number}{self.ending}"

    @cached_property
    def contents(self) -> dict[str, bytes]:
        """The counts of each table as the content of its file."""
        return {
            self.name_of(table): release.encode(self.ending)
            for table, release in zip(self.tables, self.releases, strict=True)
        }

    def describe_tables(self, **more: Any) -> dict[str, bytes]:
        """The description that stands beside each table, by its file."""
        found = {}
        for table, release in zip(self.tables, self.releases, strict=True):
            name = self.name_of(table)
            of_set = {"tables": len(self.tables), "number": table.number, "name": table.name, "where": table.where}
            described = release.describe_file(name, self.contents[name], set=of_set, **more)
            found[sidecar_of(name).name] = described.encode("utf-8")
        return found

    def to_dict(self) -> dict[str, Any]:
        """What is saved as the list of the tables: how they were made, and nothing of the records."""
        return {
            "cellrisk": __version__,
            "sentence": self.headline,
            "statements": list(self.statements),
            "sensitive": self.sensitive,
            "loss": self.loss.to_dict(),
            "cost": self.cost.to_dict(),
            "ceiling": None if self.ceiling is None else self.ceiling.to_dict(),
            "tables": [
                {**table.to_dict(), "file": self.name_of(table), "released": len(release.frame)}
                for table, release in zip(self.tables, self.releases, strict=True)
            ],
        }

    def encode(self, ending: str) -> bytes:
        """The list of the tables, with the digests of their files and of their descriptions, as JSON."""
        listed, described = self.to_dict(), self.describe_tables()
        for table in listed["tables"]:
            table["sha256"] = hashlib.sha256(self.contents[table["file"]]).hexdigest()
            table["description"] = hashlib.sha256(described[sidecar_of(table["file"]).name]).hexdigest()
        return f"{json.dumps(listed, indent=2, ensure_ascii=False)}\n".encode()

    def check_place(self, path: str | os.PathLike[str], force: bool) -> Path:
        """Refuses a folder that cannot be made; returns where the list of the tables will stand.

        Parameters
        ----------
        path
            The folder.
        force
            Is refused: a folder is not replaced.
        """
        if force:
            raise InvalidInput("a folder of released tables is never replaced", fix="name one that is not there yet")
        return check_folder(path)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes every table, its description and the list of all into a new folder: all or none.

        Parameters
        ----------
        path
            A folder that is not there yet.
        """
        target = self.check_place(path, force=False)
        return write_files(target, {**self.contents, **self.describe_tables(), MANIFEST: self.encode(".json")})

    def _numbers(self) -> list[dict[str, Any]]:
        return [
            {"table": table.number, "figure": name, "value": float(value)}
            for table, each in zip(self.tables, self.releases, strict=True)
            for name, value in zip(
                ("epsilon", "scale", "counts"),
                (each.mechanism.epsilon, each.mechanism.scale, len(each.frame)),
                strict=True,
            )
        ]

"""The answer of `release_together`: several tables that may be published, and what has to be said of them as a set."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cellrisk.errors import InvalidInput
from cellrisk.publish.releasing.release_result import Release
from cellrisk.publish.releasing.saving import FORMATS, MANIFEST, StagedFolder, check_folder, sidecar_of, write_files
from cellrisk.repeat.accounting.loss import Loss
from cellrisk.repeat.together.costs import Cost
from cellrisk.repeat.together.sets import SetTable
from cellrisk.risk.ceilings import Ceiling
from cellrisk.system.results import Result
from cellrisk.system.text import aligned, claim
from cellrisk.system.version import __version__


@dataclass(frozen=True, eq=False, repr=False)
class TogetherRelease(Result):
    """Several tables with noise, made by `release_together`. They and everything printed with them may be published.

    ``save`` writes them, each with its description, into a new folder: all or none.
    """

    tables: tuple[SetTable, ...]
    releases: tuple[Release, ...]
    sensitive: str
    loss: Loss
    """What all of them cost a person at most."""
    cost: Cost
    ceiling: Ceiling | None
    ending: str = ".parquet"

    def __post_init__(self) -> None:
        if len(self.releases) != len(self.tables) or not self.releases:
            raise InvalidInput("a set has a release for each of its tables")
        if self.ending not in FORMATS:
            raise InvalidInput("unknown format of released counts", got=self.ending, allowed=", ".join(FORMATS))

    @property
    def quasi_identifiers(self) -> tuple[str, ...]:
        """Those of all tables."""
        return tuple(dict.fromkeys(name for table in self.tables for name in table.quasi_identifiers))

    @property
    def entry(self) -> dict[str, Any]:
        """What a ledger notes of the set: one entry for all tables."""
        return describe_entry(self.tables, self.sensitive, self.loss)

    @property
    def headline(self) -> str:
        """What was released, and with which guarantee."""
        counts = sum(len(each.frame) for each in self.releases)
        more = ", with exceptions that their descriptions name" if any(each.says_more for each in self.releases) else ""
        return (
            f"{len(self.releases)} tables of {self.sensitive} about the same people, {counts:,} counts in all: "
            f"differentially private together, {self.loss.describe()}{more}."
        )

    @property
    def statements(self) -> tuple[str, ...]:
        """What a reader of the tables has to know of them as a set."""
        said = [self.cost.headline]
        if self.ceiling is not None:
            said.append(self.ceiling.of_two)
        said.append("The tables have independent noise, so that their common margins differ.")
        return tuple(said)

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
        listed = self.to_dict()
        described = self.describe_tables()
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
        folder = StagedFolder(self.check_place(path, force=False), secrets.token_hex(8))
        return write_files(folder, {**self.contents, **self.describe_tables(), MANIFEST: self.encode(".json")})

    def _numbers(self) -> list[dict[str, Any]]:
        return [
            {"table": table.number, "figure": name, "value": float(value)}
            for table, release in zip(self.tables, self.releases, strict=True)
            for name, value in (
                ("epsilon", release.mechanism.epsilon),
                ("scale", release.mechanism.scale),
                ("counts", len(release.frame)),
            )
        ]

    def _paragraphs(self) -> list[str]:
        rows = [
            [
                *(f"{table.number}: {table.name or table.describe()}", release.mechanism.name),
                *(claim(release.mechanism.epsilon), f"{release.measurement.scale:.6g}", f"{len(release.frame):,}"),
                self.name_of(table),
            ]
            for table, release in zip(self.tables, self.releases, strict=True)
        ]
        head = ["table", "mechanism", "epsilon", "scale", "counts", "file"]
        about = dict.fromkeys(said for release in self.releases for said in release.not_covered)
        obeyed = dict.fromkeys(release.policies.describe() for release in self.releases if release.policies)
        return [aligned(head, rows), "\n".join([*self.statements, *about]), *obeyed]


def describe_entry(tables: tuple[SetTable, ...], sensitive: str, loss: Loss) -> dict[str, Any]:
    """What a ledger notes of a set: one entry for all tables."""
    return {
        "attribute": sensitive,
        "quasi_identifiers": list(dict.fromkeys(name for table in tables for name in table.quasi_identifiers)),
        "loss": loss,
        "tables": [
            {
                "name": table.name,
                "quasi_identifiers": list(table.quasi_identifiers),
                "where": table.where,
                "loss": Loss.of(table.mechanism).to_dict(),
            }
            for table in tables
        ],
    }

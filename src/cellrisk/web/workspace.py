"""The sources, tables, jobs and downloads of a server, each under an id that nobody can guess."""

from __future__ import annotations

import secrets
import shutil
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cellrisk.counts.preview import Preview
from cellrisk.decide.policies import Policies
from cellrisk.errors import CellriskError
from cellrisk.system.scratch import private_folder
from cellrisk.web import fields, tables
from cellrisk.web.answers import Given
from cellrisk.web.fields import write_size
from cellrisk.web.jobs import Job, Jobs
from cellrisk.web.sources import Origin, Sources

if TYPE_CHECKING:
    from cellrisk.web.settings import Settings

WORKERS = 2
MOST_TABLES = 16
UNPACKED = 10
"""What an upload unpacks to may be so many times as large as an upload."""
MOST_DOWNLOADS = 30
Found = TypeVar("Found")


class NotThere(CellriskError):
    """The server has nothing, or nothing any more, under an id that was asked for."""


def _require(found: Found | None, what: str, fix: str) -> Found:
    if found is None:
        raise NotThere(f"there is no such {what}, or it was removed to make room", fix=fix)
    return found


class Workspace:
    """The sources, tables, jobs and downloads of one server. The oldest tables and downloads make room for new ones."""

    def __init__(self, settings: Settings, private: Path) -> None:
        self.settings = settings
        self._private = private
        for name in ("uploads", "downloads"):
            (private / name).mkdir(mode=0o700)
        self.sources = Sources(private / "uploads", settings.folder, settings.upload_limit)
        self.jobs = Jobs(WORKERS, private, tables.warm_up)
        self._tables: OrderedDict[str, tables.Counted] = OrderedDict()
        self._downloads: OrderedDict[str, Path] = OrderedDict()

    @property
    def policies(self) -> Policies:
        return Policies.in_force(self.settings.policy)

    def origin(self, source: str) -> Origin:
        return _require(self.sources.find(source), "source", "load it again")

    def job(self, job: str) -> Job:
        return _require(self.jobs.find(job), "job", "ask again")

    def table(self, table: str) -> tables.Counted:
        loaded = _require(self._tables.get(table), "table", "load it again")
        self._tables.move_to_end(table)
        return loaded

    def download(self, download: str) -> Path:
        return _require(self._downloads.get(download), "download", "make it again")

    def look(self, origin: Origin) -> Job:
        """Start a job that reads the columns of a source."""

        def finish(preview: Preview) -> dict[str, Any]:
            return {**origin.to_dict(), **tables.describe_columns(origin.name, preview, origin.suggested)}

        most = UNPACKED * self.settings.upload_limit if origin.kind == "upload" else None
        arguments = {"path": str(origin.find()), "name": origin.name, "most": most}
        return self.jobs.submit(tables.look, arguments, finish, ("look", origin.id, origin.stamp()))

    def tabulate(self, choice: fields.TableChoice) -> Job:
        """Start a job that counts a table; the same table is not counted twice."""
        origin = self.origin(choice.source)
        recipe = tables.Recipe(str(origin.find()), origin.name, origin.command, origin.stamp(), choice)
        for name in choice.sensitive:
            recipe.arguments(name)  # refuses bins that cannot be read
        table = secrets.token_urlsafe(16)

        def finish(counted: tables.Counted) -> dict[str, Any]:
            self._tables[table] = counted
            while len(self._tables) > MOST_TABLES:
                _, oldest = self._tables.popitem(last=False)
                self.jobs.forget(oldest.recipe)
            return {"table": table, **counted.described}

        return self.jobs.submit(tables.count, {"recipe": recipe}, finish, recipe)

    def given(self, loaded: tables.Counted, asked: fields.Setting) -> Given:
        """Return what a question about a table needs."""
        found = loaded.tables
        sensitive = asked.sensitive or next(iter(found))
        if sensitive not in found:
            raise NotThere("the table has no such sensitive column", allowed=", ".join(found))
        return Given(loaded.recipe, found[sensitive], self.policies, self.settings.ledger, str(self.settings.releases))

    def write(self, function: Any, arguments: dict[str, Any]) -> Job:
        """Start a job that writes a file to be downloaded."""
        download = secrets.token_urlsafe(16)
        folder = self._private / "downloads" / download
        folder.mkdir(mode=0o700)

        def finish(written: dict[str, str]) -> dict[str, str]:
            path = Path(written.pop("path"))
            self._downloads[download] = path
            while len(self._downloads) > MOST_DOWNLOADS:
                _, oldest = self._downloads.popitem(last=False)
                shutil.rmtree(oldest.parent, ignore_errors=True)
            size = write_size(path.stat().st_size)
            return {"url": f"/api/downloads/{download}", "name": path.name, "size": size, **written}

        return self.jobs.submit(function, {**arguments, "folder": str(folder)}, finish)


@contextmanager
def open_workspace(settings: Settings) -> Iterator[Workspace]:
    """Open a workspace with a private folder; workers and folder are gone after the block, however it ends."""
    with private_folder("web") as folder:
        workspace = Workspace(settings, folder)
        try:
            yield workspace
        finally:
            workspace.jobs.close()

"""The sources, tables, jobs and downloads of a server, each under an id that nobody can guess."""

from __future__ import annotations

import secrets
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cellrisk.counts.cells import Cells
from cellrisk.counts.preview import Preview
from cellrisk.counts.table import FrequencyTable
from cellrisk.errors import CellriskError
from cellrisk.system.scratch import private_folder
from cellrisk.web import work
from cellrisk.web.jobs import Job, Jobs
from cellrisk.web.recipes import Recipe, SentTable, attach_source
from cellrisk.web.settings import Settings
from cellrisk.web.sources import Origin, Sources

MOST_PREVIEWS = 100
MOST_TABLES = 16
MOST_DOWNLOADS = 30


class NotThere(CellriskError):
    """The server has nothing, or nothing any more, under an id that was asked for."""


class NotRead(CellriskError):
    """The cells of a large table have not been read, or are no longer held."""


@dataclass(frozen=True)
class LoadedTable:
    """A table, and how it was made."""

    recipe: Recipe
    origin: Origin
    tabulated: work.Tabulated
    id: str

    @property
    def keyed(self) -> bool:
        """Whether the keys of its cells were read with it."""
        return bool(self.tabulated.cells)

    @property
    def table(self) -> FrequencyTable:
        """The table, which can read its cells again; those of a small table were read with it."""
        return attach_source(self.tabulated.table, self.recipe, self.tabulated.cells)

    @property
    def sent(self) -> SentTable:
        """The table as it is sent to a worker."""
        return SentTable(self.tabulated.table, self.recipe, self.tabulated.cells)


class Workspace:
    """The sources, tables, jobs and downloads of one server.

    The least recently used tables and downloads make room for new ones.
    """

    def __init__(self, settings: Settings, private: Path) -> None:
        self.settings = settings
        self._private = private
        for name in ("uploads", "downloads"):
            (private / name).mkdir(mode=0o700)
        self.sources = Sources(private / "uploads", settings.folder, settings.upload_limit)
        self.jobs = Jobs(settings.workers, private, work.warm_up)
        self._previews: OrderedDict[str, Preview] = OrderedDict()
        self._tables: OrderedDict[str, LoadedTable] = OrderedDict()
        self._downloads: OrderedDict[str, Path] = OrderedDict()
        self._lock = threading.Lock()
        self._read: tuple[tuple[str, str, str], Cells] | None = None

    def origin(self, source: str) -> Origin:
        found = self.sources.find(source)
        if found is None:
            raise NotThere("there is no such source", fix="load it again")
        return found

    def job(self, job: str) -> Job:
        found = self.jobs.find(job)
        if found is None:
            raise NotThere("there is no such job")
        return found

    def table(self, table: str) -> LoadedTable:
        with self._lock:
            if table not in self._tables:
                raise NotThere("there is no such table, or it was dropped to make room", fix="load it again")
            self._tables.move_to_end(table)
            return self._tables[table]

    def cells(self, loaded: LoadedTable, sensitive: str | None) -> Cells:
        """The cells of a table with their keys; those of a large table have to be read first."""
        name = loaded.table.attribute(sensitive).name
        if loaded.keyed:
            return loaded.tabulated.cells[name]
        read = self._read
        if read is None or read[0] != ("cells", loaded.id, name):
            raise NotRead("the cells of so large a table have to be read first", fix="ask for them: cells")
        return read[1]

    def read_cells(self, loaded: LoadedTable, sensitive: str | None) -> Job:
        """A job that reads the cells of a table. Of large tables, only the cells that were read last are held."""
        name = loaded.table.attribute(sensitive).name
        key = ("cells", loaded.id, name)

        def finish(cells: Cells) -> dict[str, Any]:
            with self._lock:
                before, self._read = self._read, (key, cells)
            if before is not None and before[0] != key:
                self.jobs.forget(before[0])  # those cells are gone, and read again where they are asked for
            return {"cells": cells.n_cells}

        arguments = {"table": loaded.sent, "name": name}
        return self.jobs.find_key(key) or self.jobs.submit(work.read_cells, arguments, finish, key)

    def download(self, download: str) -> Path:
        path = self._downloads.get(download)
        if path is None:
            raise NotThere("there is no such download, or it was removed to make room", fix="make it again")
        return path

    def look(self, origin: Origin) -> Preview | Job:
        """The preview of a source, or the job that makes it."""
        if origin.id in self._previews:
            return self._previews[origin.id]

        def finish(preview: Preview) -> dict[str, Any]:
            with self._lock:
                self._previews[origin.id] = preview
                while len(self._previews) > MOST_PREVIEWS:
                    oldest, _ = self._previews.popitem(last=False)
                    self.jobs.forget(("look", oldest))
            return {"source": origin.id}

        running = self.jobs.find_key(("look", origin.id))
        arguments = {"path": str(origin.find()), "name": origin.name, "unpacked_limit": origin.unpacked_limit}
        return running or self.jobs.submit(work.look, arguments, finish, ("look", origin.id))

    def preview(self, origin: Origin) -> Preview | None:
        return self._previews.get(origin.id)

    def tabulate(self, origin: Origin, recipe: Recipe) -> Job:
        """A job that makes a table; the same table is not made twice."""
        key = ("table", recipe, origin.stamp())

        def finish(tabulated: work.Tabulated) -> dict[str, Any]:
            table = secrets.token_urlsafe(16)
            with self._lock:
                self._tables[table] = LoadedTable(recipe, origin, tabulated, table)
                while len(self._tables) > MOST_TABLES:
                    self._tables.popitem(last=False)
            return {"table": table}

        arguments = {"recipe": recipe, "unpacked_limit": origin.unpacked_limit}
        job = self.jobs.submit(work.count, arguments, finish, key)
        if job.result is not None and job.result["table"] not in self._tables:
            self.jobs.forget(key)
            job = self.jobs.submit(work.count, arguments, finish, key)
        return job

    def write(self, function: Any, arguments: dict[str, Any]) -> Job:
        """A job that writes a file to be downloaded."""
        download = secrets.token_urlsafe(16)
        folder = self._private / "downloads" / download
        folder.mkdir(mode=0o700)

        def finish(written: work.Written) -> dict[str, Any]:
            path = Path(written.path)
            with self._lock:
                self._downloads[download] = path
                while len(self._downloads) > MOST_DOWNLOADS:
                    _, oldest = self._downloads.popitem(last=False)
                    shutil.rmtree(oldest.parent, ignore_errors=True)
            size = path.stat().st_size
            told = {"sentence": written.sentence, "remark": written.remark}
            return {"url": f"/api/downloads/{download}", "name": path.name, "bytes": size, **told}

        return self.jobs.submit(function, {**arguments, "folder": str(folder)}, finish)


@contextmanager
def open_workspace(settings: Settings) -> Iterator[Workspace]:
    """A workspace with a private folder; workers and folder are gone after the block, however it ends."""
    with private_folder("web") as folder:
        workspace = Workspace(settings, folder)
        try:
            yield workspace
        finally:
            workspace.jobs.close()

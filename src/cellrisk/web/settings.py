"""The settings of a server: what it may read, where releases are recorded, and the secret of its link."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cellrisk.errors import InvalidInput
from cellrisk.system.checks import require_whole_number

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies

LOOPBACK = "127.0.0.1"
UPLOAD_LIMIT = 2_000_000_000
LEAD_ON = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>cellrisk</title><link rel="icon" href="data:,">'
    '<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={link}">'
    '<main><p><a href="{link}">Go on to cellrisk</a></p></main></html>\n'
)
"""A page that leads to an address."""


@dataclass(frozen=True)
class Settings:
    """What is decided before the server starts. Secrets are never printed.

    >>> Settings().origin, "token" in repr(Settings())
    ('http://127.0.0.1:8000', False)
    """

    folder: Path | None = None
    """Files below it can be loaded, and nothing else of the machine."""
    port: int = 8000
    ledger: str | None = field(default=None, repr=False)
    """Where releases are recorded: a file, or a database's address."""
    upload_limit: int = UPLOAD_LIMIT
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    policy: Policies | None = None
    """The policies in force when the server started. The administrator's files are read again at each request."""
    workers: int = 2

    def __post_init__(self) -> None:
        if self.folder is not None:
            if not Path(self.folder).is_dir():
                raise InvalidInput("does not exist", option="folder", got=self.folder, code="no-folder")
            object.__setattr__(self, "folder", Path(self.folder).resolve())
        require_whole_number("the port", self.port, 1, 65535)
        require_whole_number("the limit of uploads", self.upload_limit, 1)
        require_whole_number("the number of workers", self.workers, 1)

    @property
    def releases(self) -> Path:
        """Where recorded releases are kept: beside the ledger, or below the folder if the ledger is a database."""
        if "://" in (self.ledger or ""):
            return (self.folder or Path.cwd()) / "releases"
        return Path(self.ledger or "").absolute().parent / "releases"

    @property
    def origin(self) -> str:
        """The address of the page, as a browser on this machine names it."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def link(self) -> str:
        """The address that lets its reader in."""
        return f"{self.origin}/?token={self.token}"

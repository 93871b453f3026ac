"""`Settings`: what is decided before the server starts."""

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


@dataclass(frozen=True)
class Settings:
    """What is decided before the server starts. Secrets are never printed.

    >>> Settings(port=8765, token="secret")
    Settings(folder=None, port=8765, upload_limit=2000000000, policy=None)
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

    def __post_init__(self) -> None:
        if self.folder is not None:
            if not Path(self.folder).is_dir():
                raise InvalidInput("does not exist", option="folder", got=self.folder, code="no-folder")
            object.__setattr__(self, "folder", Path(self.folder).resolve())
        require_whole_number("the limit of uploads", self.upload_limit, 1)

    @property
    def releases(self) -> Path:
        """Where recorded releases are kept: beside the ledger, or below the folder if the ledger is a database."""
        if "://" in (self.ledger or ""):
            return (self.folder or Path.cwd()) / "releases"
        return Path(self.ledger or "").absolute().parent / "releases"

    @property
    def link(self) -> str:
        """The address that lets its reader in."""
        return f"http://{LOOPBACK}:{self.port}/?token={self.token}"

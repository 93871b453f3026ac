"""The settings of a server: where it listens, whom it lets in, and what it may read."""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cellrisk.errors import InvalidInput
from cellrisk.system.checks import require_whole_number

if TYPE_CHECKING:
    from cellrisk.decide.policies import Policies

UPLOAD_LIMIT = 2_000_000_000
SHORTEST_PASSWORD = 8
WILDCARDS = ("0.0.0.0", "::")


@dataclass(frozen=True)
class Settings:
    """What is decided before the server starts. Secrets are never printed.

    >>> Settings().origin, "token" in repr(Settings())
    ('http://127.0.0.1:8000', False)
    """

    folder: Path | None = None
    """Files below it can be loaded, and nothing else of the machine."""
    host: str = "127.0.0.1"
    port: int = 8000
    """The port that the server listens on."""
    ledger: str | None = field(default=None, repr=False)
    """Where releases are written down: a file, or a database's address."""
    upload_limit: int = UPLOAD_LIMIT
    allow_remote: bool = False
    password: str | None = field(default=None, repr=False)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    policy: Policies | None = None
    """The policies in force when the server started. They stay in force while it runs, and what the administrator's
    files say by then is added to them."""
    workers: int = 2

    def __post_init__(self) -> None:
        if self.folder is not None:
            if not Path(self.folder).is_dir():
                raise InvalidInput("the folder to read from does not exist", got=self.folder)
            object.__setattr__(self, "folder", Path(self.folder).resolve())
        if self.password is not None and len(self.password) < SHORTEST_PASSWORD:
            raise InvalidInput("the password is too short", allowed=f"{SHORTEST_PASSWORD} characters or more")
        if not is_loopback(self.host):
            if not self.allow_remote:
                raise InvalidInput(
                    "other machines could reach that address",
                    got=self.host,
                    allowed="127.0.0.1, ::1 or localhost",
                    fix="allow it with --allow-remote and a password",
                )
            if self.password is None:
                raise InvalidInput(
                    "an address that other machines can reach needs a password",
                    fix="put one into a file for --password-file, or into CELLRISK_PASSWORD",
                )
        require_whole_number("the port", self.port, 1, 65535)
        require_whole_number("the limit of uploads", self.upload_limit, 1)
        require_whole_number("the number of workers", self.workers, 1)
        if len(self.token) < 32:
            raise InvalidInput("the token is too short", allowed="32 characters or more")

    @property
    def releases(self) -> Path:
        """Where releases that the ledger records are kept: beside it, or below the folder where it is a database."""
        beside = (
            self.folder or Path.cwd() if "://" in (self.ledger or "") else Path(self.ledger or "").absolute().parent
        )
        return beside / "releases"

    @property
    def origin(self) -> str:
        """Where the page is, as a browser on this machine names it."""
        host = "127.0.0.1" if self.host in WILDCARDS else self.host
        return f"http://{bracketed(host)}:{self.port}"

    @property
    def link(self) -> str:
        """The address that lets its reader in."""
        return f"{self.origin}/?token={self.token}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bracketed(host: str) -> str:
    """The host as it stands in an address.

    >>> bracketed("::1"), bracketed("localhost")
    ('[::1]', 'localhost')
    """
    return f"[{host}]" if ":" in host else host

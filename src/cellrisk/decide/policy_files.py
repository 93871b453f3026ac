"""Where policies come from: files that an administrator names or that lie on the way up from the working folder."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cellrisk.errors import InvalidInput

SETTINGS_FILE = "cellrisk.toml"
VARIABLE = "CELLRISK_POLICY"
DIGITS = 12
LARGEST = 1_000_000
OPEN_TO_OTHERS = "others may change this file"


@dataclass(frozen=True)
class SettingsFile:
    """A settings file as it was read, once."""

    name: str
    """Without folders: this may be published."""
    digest: str
    """The first digits of its SHA-256."""
    values: dict[str, Any]
    remark: str | None = None
    """What to know of the file before it is trusted."""

    @property
    def policy(self) -> Any:
        """Its table ``[policy]``; None where it has none."""
        return self.values.get("policy")


def find_policy_files() -> list[SettingsFile]:
    """Every file with a policy that is in force in the working folder.

    That which CELLRISK_POLICY names comes first, and must be there; then each cellrisk.toml with a table ``[policy]``
    from the folder up to the root. All hold together: a file further down cannot replace one further up. What has that
    name and is no file that can be read, such as a link to nothing or a folder, is refused.
    """
    found = []
    named = os.environ.get(VARIABLE)
    if named is not None:
        if not named.strip():
            raise InvalidInput(f"{VARIABLE} names no file", fix="name the policy's file, or unset the variable")
        file = read_settings_file(Path(named))
        if file.policy is None:
            raise InvalidInput(f"the file that {VARIABLE} names has no table [policy]", got=file.name)
        found.append(file)
    try:
        here = Path.cwd().resolve()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput(f"the working folder cannot be read: {reason}", fix="change to one that exists") from None
    for place in (here, *here.parents):
        path = place / SETTINGS_FILE
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise InvalidInput("the settings file cannot be read", got=f"{path} ({error.strerror})") from None
        found.append(read_settings_file(path))
    return [file for file in found if file.policy is not None]


def read_settings_file(path: Path, named: str = "the settings file") -> SettingsFile:
    """A TOML file with its digest; refuses what cannot be read in full. ``named``: how a refusal calls it."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise InvalidInput(f"{named} is no plain file of a reasonable size", got=str(path))
        content = path.read_bytes()
    except FileNotFoundError:
        what = "is a link to nothing" if path.is_symlink() else "does not exist"
        raise InvalidInput(f"{named} {what}", got=str(path)) from None
    except OSError as error:
        raise InvalidInput(f"{named} cannot be read", got=f"{path} ({error.strerror})") from None
    values = parse_settings(content, named, str(path))
    open_to_others = os.name == "posix" and bool(status.st_mode & stat.S_IWOTH)
    digest = hashlib.sha256(content).hexdigest()[:DIGITS]
    return SettingsFile(path.name, digest, values, OPEN_TO_OTHERS if open_to_others else None)


def parse_settings(content: bytes, named: str, got: str) -> dict[str, Any]:
    """What TOML holds; refuses what is none. ``named`` and ``got``: how a refusal calls it, and where it is from."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):  # a number of thousands of digits is a plain ValueError
        raise InvalidInput(f"{named} is not valid TOML", got=got) from None

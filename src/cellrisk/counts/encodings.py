"""Text files in another encoding than UTF-8, copied into UTF-8 before an engine reads them."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from pathlib import Path

from cellrisk.counts.files import CHUNK, is_text, open_bytes, refusals_of_the_system
from cellrisk.errors import InvalidInput

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
EXAMPLES = "for example latin-1, cp1252, utf-16, shift_jis"


@dataclass(frozen=True)
class EncodedPath(os.PathLike[str]):
    """A path, or glob, of text files and the encoding that somebody says they have."""

    path: str
    encoding: str

    def __post_init__(self) -> None:
        try:
            is_text = codecs.lookup(self.encoding)._is_text_encoding
        except (LookupError, ValueError):
            is_text = False
        if not is_text:
            raise InvalidInput("the encoding is not known", got=repr(self.encoding), allowed=EXAMPLES)

    def __fspath__(self) -> str:
        return self.path


def find_encoding(path: Path) -> str | None:
    """The encoding that a text file's own mark names; None where it has none, and is UTF-8 or is refused later."""
    if not is_text(path):
        return None
    with refusals_of_the_system(path), open_bytes(path) as stream:
        start = stream.read(4)
    wide = start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE))
    return "utf-32" if wide else "utf-16" if start.startswith(UTF_16) else None


def recode(path: Path, encoding: str, target: Path) -> Path:
    """A copy of a text file in UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with refusals_of_the_system(path), open_bytes(path) as source, target.open("xb") as copy:
        try:
            while part := source.read(CHUNK):
                copy.write(decoder.decode(part).encode("utf-8"))
            copy.write(decoder.decode(b"", final=True).encode("utf-8"))
        except UnicodeError:  # it would quote the bytes
            raise InvalidInput(f"the file is not {encoding} text", got=path, allowed=EXAMPLES) from None
    return target

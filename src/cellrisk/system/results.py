"""Results: each has a headline, prints, becomes a frame or a dictionary, and can be drawn and pickled."""

from __future__ import annotations

import html
import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from cellrisk.errors import InvalidInput, visible
from cellrisk.system.atomic import write_whole
from cellrisk.system.formatting import paragraphs
from cellrisk.system.spreadsheets import write_frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PICTURES, WORDING = "cellrisk.show.pictures", "cellrisk.show.wording"
Same = TypeVar("Same", bound="LeavesKeys")
NOT_KEPT = "(not kept)"
"""Stands for a key that pickling has left behind."""


def find_words(name: str) -> ModuleType:
    """Return the module with the words of a result, which imports the results: so it is imported late."""
    return importlib.import_module(f"{WORDING}.{name}")


class LeavesKeys:
    """An object with keys of the source, which are left out when it is pickled.

    A copy in the same process is the object itself, which cannot be changed.
    """

    def without_keys(self) -> dict[str, Any]:
        """Return the fields that are not pickled as they are, with what is pickled instead."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), **self.without_keys()}

    def __copy__(self: Same) -> Same:
        return self

    def __deepcopy__(self: Same, memo: dict[int, Any]) -> Same:
        return self


class Result(LeavesKeys, ABC):
    """A result. Each kind adds its headline, its numbers and the paragraphs that it prints.

    Answers cannot be changed. Their ``repr`` is the headline on one line; a notebook shows what `print` prints.
    """

    wording: ClassVar[str] = ""
    """The module of cellrisk.show.wording with the functions ``headline`` and ``paragraphs`` of this answer, and
    ``screen`` if less than everything is printed first."""
    picture: ClassVar[str] = ""
    """The function of cellrisk.show.pictures that draws this kind of answer; empty if no picture helps."""

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        return str(find_words(self.wording).headline(self))

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON-ready values."""

    @abstractmethod
    def _numbers(self) -> Any:
        """Return what the frame is made of: rows, columns by name, or a frame."""

    def _paragraphs(self) -> Iterable[str]:
        """Return what is printed below the headline."""
        paragraphs: Iterable[str] = find_words(self.wording).paragraphs(self)
        return paragraphs

    def to_frame(self) -> pd.DataFrame:
        """Return the result as a tidy frame: one number a row."""
        import pandas as pd

        return pd.DataFrame(self._numbers())

    def to_csv(self, path: str | os.PathLike[str], *, spreadsheet_safe: bool = False) -> Path:
        """Write the tidy frame as a CSV file.

        Parameters
        ----------
        path
            The file, which is written whole or not at all.
        spreadsheet_safe
            Writes an apostrophe before what spreadsheets would take for formulas.
        """
        return write_whole(path, write_frame(self.to_frame(), spreadsheet_safe=spreadsheet_safe))

    def plot(self, path: str | os.PathLike[str] | None = None, ax: Axes | None = None) -> Any:
        """Draw the result: a figure of matplotlib.

        Parameters
        ----------
        path
            Saves the picture there, in the format of its ending (.svg, .png, .pdf), and returns the path.
        ax
            Draws the panel, without the title and the words around it, into these axes of a figure of your own, and
            returns them. A picture of several panels that say as much as each other is refused.
        """
        return self._draw(path, ax)

    def _draw(self, path: str | os.PathLike[str] | None, ax: Axes | None, **how: Any) -> Any:
        if not self.picture:
            raise InvalidInput(f"a {type(self).__name__} has no picture", code="no-picture")
        if ax is not None and path is not None:
            raise InvalidInput(
                "path and ax exclude each other", fix="draw into ax, then save its figure yourself", code="options"
            )
        # Pictures import the results that they draw, so they are imported late.
        pictures = importlib.import_module(PICTURES)
        figure = getattr(pictures, self.picture)(self, ax=ax, **how)
        return figure if path is None else pictures.save(figure, path)

    def _screen(self) -> Iterable[str] | None:
        """What is printed first, if that is not everything."""
        screen = getattr(find_words(self.wording), "screen", None) if self.wording else None
        return None if screen is None else screen(self)

    def __str__(self) -> str:
        screen = self._screen()
        return self.details if screen is None else paragraphs(screen)

    @property
    def details(self) -> str:
        """Everything that the result can print; printing the result shows the first screen of it."""
        return paragraphs([*(self._screen() or [self.headline]), *self._paragraphs()])

    def __repr__(self) -> str:
        return visible(" ".join(self.headline.split()))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __dir__(self) -> list[str]:
        """What a notebook offers after a dot: no inner names, and `plot` only where there is a picture."""
        drawn = self.picture or type(self).plot is not Result.plot
        hidden = {"picture", "wording", "without_keys", *(() if drawn else ("plot",))}
        names = (str(name) for name in super().__dir__())
        return [name for name in names if name not in hidden and (not name.startswith("_") or name.endswith("__"))]

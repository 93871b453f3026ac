"""What is left behind when something is pickled: the source, its address and its keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeVar

Same = TypeVar("Same", bound="LeavesKeys")
NOT_KEPT = "(not kept)"
"""Stands for a key that pickling has left behind."""


class LeavesKeys(ABC):
    """Something that knows keys of the source, and leaves them behind when it is pickled.

    Its numbers survive. A copy in the same process is the object itself, which cannot be changed.
    """

    @abstractmethod
    def without_keys(self) -> dict[str, Any]:
        """The fields that are pickled otherwise than they are, with what is pickled instead."""

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), **self.without_keys()}

    def __copy__(self: Same) -> Same:
        return self

    def __deepcopy__(self: Same, memo: dict[int, Any]) -> Same:
        return self

"""Packages that only some results need, and what to type if one of them is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cellrisk.errors import InvalidInput

EXTRAS = {
    "files": ("pyreadstat", "python_calamine", "yaml"),
    "ledger": ("dp_accounting",),
    "pdf": ("weasyprint",),
    "postgres": ("psycopg", "sqlalchemy"),
    "release": ("opendp",),
    "spark": ("pyspark",),
    "web": ("fastapi", "starlette", "uvicorn"),
}
"""The modules that each extra of the package brings."""


def explain_missing(error: BaseException) -> InvalidInput | None:
    """Return the refusal of an import that failed because an extra is not installed; None for every other error.

    >>> print(explain_missing(ModuleNotFoundError(name="sqlalchemy.orm")))
    this needs the package sqlalchemy, which is not installed; run: pip install 'cellrisk[postgres]'
    """
    if not isinstance(error, ModuleNotFoundError):
        return None
    missing = (error.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if missing in modules:
            return InvalidInput(
                f"this needs the package {missing.replace('_', '-')}, which is not installed",
                fix=f"run: pip install 'cellrisk[{extra}]'",
                code="missing-package",
            )
    return None


@contextmanager
def extra_needed() -> Iterator[None]:
    """Refuse an import in the block that fails because an extra is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise explain_missing(error) or error from None

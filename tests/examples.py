"""How many examples hypothesis tries: all of them in `make check`, a third of them, but five, in `make test`."""

from __future__ import annotations

import os

EVERY_EXAMPLE = os.environ.get("CELLRISK_EXAMPLES") == "all"


def examples(number: int) -> int:
    return number if EVERY_EXAMPLE else min(number, max(5, number // 3))

"""Pictures of the page, compared as somebody across the room would: blurred and shrunk.

No picture is kept to be compared with. Another font moves every letter, and a picture of yesterday would fail on every
machine but the one that drew it. What is compared is drawn by the same browser in the same minute: a step with itself
when it is drawn again, and with itself after a fault was put in, which must be seen. What a chart must hold, lines with
points and labels beside each other, is asked of its elements, in `geometry`; that it is really painted, of its pixels,
here.
"""

from __future__ import annotations

import re
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image, ImageFilter

BLUR, SHRINK, FAR = 4, 8, 24
SAME = 0.01
"""The share of the shrunk pixels that may be FAR apart, of 255. Another font alone makes 0.004 of it, a shifted or lost
label 0.018 and more."""
NEAR = 60
"""How far a pixel may be from the colour of a line, as edges of lines are mixed with what is behind them."""


def read(picture: bytes) -> Any:
    return np.asarray(Image.open(BytesIO(picture)).convert("RGB"), dtype=np.int64)


def difference(one: bytes, other: bytes) -> float:
    """The share of two pictures that is not alike; all of it where they differ in size."""
    small = []
    for each in (one, other):
        image = Image.open(BytesIO(each)).convert("RGB").filter(ImageFilter.GaussianBlur(BLUR))
        size = max(image.width // SHRINK, 1), max(image.height // SHRINK, 1)
        small.append(np.asarray(image.resize(size, Image.Resampling.BOX), dtype=np.int64))
    if small[0].shape != small[1].shape:
        return 1.0
    return float((np.abs(small[0] - small[1]).max(axis=2) > FAR).mean())


def painted(page: Any, place: str, shape: str) -> float:
    """How many columns of pixels of a chart hold the colour of one of its shapes, as a share of the chart's width."""
    said = page.locator(f"{place} {shape}").first.evaluate(
        "shape => { const { stroke, fill } = getComputedStyle(shape); return stroke === 'none' ? fill : stroke; }"
    )
    colour = [int(number) for number in re.findall(r"\d+", said)[:3]]
    found = np.abs(read(page.locator(place).screenshot()) - colour).max(axis=2) < NEAR
    return float(found.any(axis=0).mean())

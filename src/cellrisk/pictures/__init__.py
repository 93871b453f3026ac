"""Pictures of what was found. They draw the numbers that a result holds and compute no risk.

Figures are plain matplotlib figures, made without global state; matplotlib is loaded when the first one is drawn.
"""

from __future__ import annotations

from cellrisk.pictures.bars import draw_explanation
from cellrisk.pictures.boxes import draw_utility
from cellrisk.pictures.choices import draw_choice
from cellrisk.pictures.curves import draw_curve
from cellrisk.pictures.saving import ENDINGS, check_picture_path, save, to_png, to_svg
from cellrisk.pictures.sequences import draw_sequence
from cellrisk.pictures.sizes import draw_sizes

__all__ = [
    "ENDINGS",
    "check_picture_path",
    "draw_choice",
    "draw_curve",
    "draw_explanation",
    "draw_sequence",
    "draw_sizes",
    "draw_utility",
    "save",
    "to_png",
    "to_svg",
]

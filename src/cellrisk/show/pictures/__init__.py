"""Pictures of what was found. They draw the numbers that a result holds and compute no risk.

Figures are plain matplotlib figures, made without global state; matplotlib is loaded when the first one is drawn.
"""

from __future__ import annotations

from cellrisk.show.pictures.attackers import draw_assessment, draw_icons
from cellrisk.show.pictures.choices import draw_choice
from cellrisk.show.pictures.curves import draw_curve, mark_asked
from cellrisk.show.pictures.results import draw_equal_risk, draw_sequence, draw_sizes, draw_together
from cellrisk.show.pictures.saving import ENDINGS, check_picture_path, save, to_svg

__all__ = [
    "ENDINGS",
    "check_picture_path",
    "draw_assessment",
    "draw_choice",
    "draw_curve",
    "draw_equal_risk",
    "draw_icons",
    "draw_sequence",
    "draw_sizes",
    "draw_together",
    "mark_asked",
    "save",
    "to_svg",
]

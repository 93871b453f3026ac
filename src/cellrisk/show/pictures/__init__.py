"""Pictures of what was found. They draw the numbers that a result holds and compute no risk.

Figures are plain matplotlib figures, made without global state; matplotlib is loaded when the first one is drawn.
"""

from __future__ import annotations

from cellrisk.show.pictures.assessments import draw_assessment, draw_assessment_into
from cellrisk.show.pictures.bars import draw_explanation, draw_explanation_into
from cellrisk.show.pictures.boxes import draw_utility, draw_utility_into
from cellrisk.show.pictures.choices import draw_choice, draw_choice_into
from cellrisk.show.pictures.curves import draw_curve, draw_curve_into
from cellrisk.show.pictures.equal_risk import draw_equal_risk, draw_equal_risk_into
from cellrisk.show.pictures.figure_panels import draw_asked, mark_asked
from cellrisk.show.pictures.saving import ENDINGS, check_picture_path, save, to_png, to_svg
from cellrisk.show.pictures.sequences import draw_sequence, draw_sequence_into
from cellrisk.show.pictures.sets import draw_together, draw_together_into
from cellrisk.show.pictures.sizes import draw_sizes, draw_sizes_into

__all__ = [
    "ENDINGS",
    "check_picture_path",
    "draw_asked",
    "draw_assessment",
    "draw_assessment_into",
    "draw_choice",
    "draw_choice_into",
    "draw_curve",
    "draw_curve_into",
    "draw_equal_risk",
    "draw_equal_risk_into",
    "draw_explanation",
    "draw_explanation_into",
    "draw_sequence",
    "draw_sequence_into",
    "draw_sizes",
    "draw_sizes_into",
    "draw_together",
    "draw_together_into",
    "draw_utility",
    "draw_utility_into",
    "mark_asked",
    "save",
    "to_png",
    "to_svg",
]

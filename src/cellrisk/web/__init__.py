"""The web app: a local page on which a curator goes from a file to an epsilon, and the API under it."""

from __future__ import annotations

from cellrisk.web.serving import create_app, serve
from cellrisk.web.settings import Settings

__all__ = ["Settings", "create_app", "serve"]

"""The version, which every file that is written names."""

__version__ = "0.2.0"

"""The release itself, releases that are only simulated, and the audit of one that somebody made."""

"""How the privacy losses of several releases compose: each way beside the others, and the tightest that is valid."""

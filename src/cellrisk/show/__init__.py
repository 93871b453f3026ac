"""Pictures and documents: what was found, drawn and written. Nothing is computed here."""

"""What several releases cost and reveal together, and the ledger that remembers them."""

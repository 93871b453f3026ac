"""What is added to counts, and the guarantees that ask for it."""

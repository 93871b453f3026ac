"""The floor that every room stands on: files written whole, scratch space, locks, progress, interrupts, texts."""

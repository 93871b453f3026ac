"""What every package uses: files written whole, scratch space, locks, progress, interrupts, formatting."""

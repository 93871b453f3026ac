"""What attackers learn from a release, and how much of it because of the person's own record."""

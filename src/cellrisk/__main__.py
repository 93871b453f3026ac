"""`python -m cellrisk` is the command `cellrisk`."""

import sys

from cellrisk.cli import main

if __name__ == "__main__":
    sys.exit(main())

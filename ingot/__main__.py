"""`python -m ingot`: the command line, as the console script `ingot`."""

import sys

from ingot._cli import main

if __name__ == "__main__":
    sys.exit(main())

"""`python -m awp_publish` is the command `awp-publish`."""

import sys

from awp_publish.cli import main

if __name__ == "__main__":
    sys.exit(main())

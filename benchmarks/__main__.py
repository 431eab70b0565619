"""`python -m benchmarks [GROUP ...] [--quick]`: print the table, and fail when a limit is missed.

The exit status is 0 when every limit holds, 1 when one is missed, 2 when none is but something was not measured.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from benchmarks.a2a import a2a
from benchmarks.actions import actions
from benchmarks.browsing import browsing
from benchmarks.documents import documents
from benchmarks.events import events
from benchmarks.extensions import extensions
from benchmarks.extracting import extracting
from benchmarks.freezing import freezing
from benchmarks.growing import growing
from benchmarks.guarding import guarding
from benchmarks.idle import idle
from benchmarks.invoking import invoking
from benchmarks.jobs import jobs
from benchmarks.journeys import journeys
from benchmarks.mcp import mcp
from benchmarks.negotiating import negotiating
from benchmarks.ordinary import ordinary
from benchmarks.over_http import over_http
from benchmarks.pages import pages
from benchmarks.scaling import scaling
from benchmarks.search import search
from benchmarks.signing_in import signing_in
from benchmarks.simulate import simulate
from benchmarks.table import Row, exit_status, print_table

GROUPS: Final[Mapping[str, tuple[Callable[[float], list[Row]], float]]] = {
    "journeys": (journeys, 5.0),
    "ordinary": (ordinary, 36.0),
    "documents": (documents, 20.0),
    "invoking": (invoking, 20.0),
    "guarding": (guarding, 30.0),
    "signing_in": (signing_in, 20.0),
    "jobs": (jobs, 30.0),
    "a2a": (a2a, 12.0),
    "actions": (actions, 20.0),
    "mcp": (mcp, 30.0),
    "events": (events, 20.0),
    "extensions": (extensions, 12.0),
    "idle": (idle, 30.0),
    "over_http": (over_http, 96.0),
    "browsing": (browsing, 30.0),
    "negotiating": (negotiating, 16.0),
    "freezing": (freezing, 60.0),
    "pages": (pages, 40.0),
    "search": (search, 30.0),
    "extracting": (extracting, 5.0),
    "growing": (growing, 20.0),
    "scaling": (scaling, 60.0),
    "simulate": (simulate, 30.0),
}
"""What is measured, and for about how many seconds."""

QUICK: Final = 0.05
"""The part of its seconds that a group gets in a quick run: enough to see that it works, too little to judge."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say with the exit status whether every limit holds."""
    options = _read_options(arguments)
    rows: list[Row] = []
    try:
        for name in options.groups or GROUPS:
            measure, seconds = GROUPS[name]
            print(f"measuring {name} ...", file=sys.stderr, flush=True)
            rows += measure(seconds * (QUICK if options.quick else 1.0))
    finally:  # a group that fails takes nothing of what was measured before it
        print_table(rows)
    if options.quick:
        print("\nA quick run: these figures are not to be judged.")
        return 0
    return exit_status(rows)


def _read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What is fast, beside its rivals.")
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"what to measure: {', '.join(GROUPS)}")
    parser.add_argument("--quick", action="store_true", help="a short run that only shows that everything works")
    options = parser.parse_args(arguments)
    for unknown in set(options.groups) - set(GROUPS):
        parser.error(f"there is no group {unknown}; choose from {', '.join(GROUPS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())

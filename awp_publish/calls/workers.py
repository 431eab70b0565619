"""The processes that serve an application, as far as one of them can know, and what follows for stores in memory."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Final

from awp_publish.model import Catalog
from awp_publish.problems import DeclarationError

_OPTIONS: Final = ArgumentParser(add_help=False, allow_abbrev=False)
"""Options of uvicorn, hypercorn, gunicorn and granian."""
_OPTIONS.add_argument("-w", "--workers", nargs="?")


def count_workers() -> int:
    """Return how many processes serve this application, by the server's command line or WEB_CONCURRENCY, or else 1."""
    text = (_OPTIONS.parse_known_args(sys.argv[1:])[0].workers or os.environ.get("WEB_CONCURRENCY", "")).strip()
    return max(int(text), 1) if text.isdecimal() and len(text) < 9 else 1


def refuse_private_memory(catalog: Catalog, kept_by_plugins: Sequence[str]) -> None:
    """Raise DeclarationError if several workers would each keep in memory what they have to share.

    With a store in memory, one idempotency key would run a payment once in each of them. `kept_by_plugins` is what else
    would be kept, in words.
    """
    limit = catalog.site.rate_limit
    sharing = [action.id for action in catalog.actions if action.remembers or action.rate_limit or action.requires]
    if not (sharing or limit or kept_by_plugins) or (workers := count_workers()) == 1:
        return
    things = "idempotency keys, confirmations, receipts, jobs and counts of calls"
    what = [f"{things} of {', '.join(sharing)}"] if sharing else []
    what += ["counts of calls of all actions"] if limit and not sharing else []
    raise DeclarationError(
        "site",
        f"{workers} workers serve it, and each would keep {' and '.join((*what, *kept_by_plugins))} in its own memory.",
        'Give Site(store="sqlite:///agents.db"), or "redis://..." for several machines; or run one worker.',
    )

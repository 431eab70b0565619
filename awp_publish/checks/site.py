"""Checks that the documents of one site (path to document) agree with each other."""

from collections.abc import Iterator
from typing import Final

from awp_publish.checks.engine import ERROR, Check, Finding, JsonObject, Specification, finding
from awp_publish.checks.recognition import of_kind, specifications

SITE: Final = Specification("site", "awp_publish")

check = SITE.check


@check(
    "site-place",
    ERROR,
    "AWAS 1.0, AI Manifest and Discovery Endpoints; AWP agent.json section 3; WoA draft-00 section 9.1",
    hint="Serve it there; further places are allowed.",
)
def misplaced(site: JsonObject) -> Iterator[Finding]:
    """Every document is served where its specification wants it."""
    for kind in specifications():
        places = [path for path, _ in of_kind(site, kind.name)]
        # A site below a path serves all of them below it; the alternative paths do not count.
        below = [path for path in places if path.endswith(kind.paths[0]) and path not in kind.paths[1:]]
        if places and not below:
            yield finding("", f"The document is at {places[0]} and not at {kind.paths[0]}.", document=places[0])


def site_checks() -> tuple[Check, ...]:
    """Return the checks of a site's documents together: the core's, then those of each kind of document."""
    return (*SITE.checks, *(check for kind in specifications() for check in kind.site_checks))

"""Checks that the documents of one site (path to document) agree with each other."""

from collections.abc import Iterator
from typing import Final

from awp_publish.checks.engine import ERROR, Check, Finding, JsonObject, Specification, finding, shown
from awp_publish.checks.places import strings
from awp_publish.checks.recognition import of_kind, specifications
from awp_publish.checks.urls import path_of
from awp_publish.checks.woa import PLACEHOLDER_TEXT, WOA

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


@check("site-invoke-path", ERROR, "WoA draft-00 section 4.3.1", hint="Move the invoke_path.")
def shadowed_invoke_path(site: JsonObject) -> Iterator[Finding]:
    """No agent is invoked at the path of a document."""
    for path, document in of_kind(site, WOA.name):
        for pointer, template in strings(document, "/transports/rest/invoke_path"):
            names = [name for _, name in strings(document, "/agents/[]/id")] or [""]
            urls = (path_of(template.replace(PLACEHOLDER_TEXT, name)) for name in names)
            occupied = next((url for url in urls if url in site), None)
            if occupied:
                yield finding(pointer, f"{shown(occupied)} is the path of a document of the site.", document=path)


def site_checks() -> tuple[Check, ...]:
    """Return the checks of a site's documents together: the core's, then those of each kind of document."""
    return (*SITE.checks, *(check for kind in specifications() for check in kind.site_checks))

"""Checks of imports (V1, imports)."""

from collections.abc import Iterator
from typing import Final

from awp_publish.checks.engine import ERROR, WARNING, Finding, JsonObject, finding
from awp_publish.checks.places import members, objects
from awp_publish.plugins.actions_json.checks.specification import check, row, unknown_words


@check("actions-namespace", ERROR, "imports", hint="Give the import a namespace.")
def missing_namespaces(document: JsonObject) -> Iterator[Finding]:
    """Imports have a namespace, unless the composition says that none is needed."""
    if members(document.get("composition")).get("namespace_required") is not False:
        for pointer, entry in objects(document, "/imports/[]"):
            if "namespace" not in entry:
                yield finding(f"{pointer}/namespace", "The import has no namespace.")


@check("actions-conflict-policy", WARNING, "imports", hint='Write "prefer_local", and namespaces.')
def loose_compositions(document: JsonObject) -> Iterator[Finding]:
    """The conflict policy is known (with another one a conflict refuses the import), and imports have namespaces."""
    yield from unknown_words(document, ("prefer_local",), "The conflict policy", "/composition/default_conflict_policy")
    if members(document.get("composition")).get("namespace_required") is False:
        for pointer, entry in objects(document, "/imports/[]"):
            if "namespace" not in entry:
                yield finding(f"{pointer}/namespace", "Without a namespace, imported names are added to the map's own.")


_left_out: Final = row(
    "actions-import",
    WARNING,
    "actions.json V1, imports",
    "Imports can be fetched, are valid, and have names of their own.",
    hint="Correct the import, or disable it; its names are left out.",
)


def import_finding(problem: tuple[str, str]) -> Finding:
    """Return the finding about an import that was left out (see `workflows.composition`)."""
    place, reason = problem
    document, _, pointer = place.rpartition("#")
    return _left_out.complete(finding(pointer, reason, document=document))

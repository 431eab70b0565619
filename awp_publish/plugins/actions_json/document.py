"""actions.json V1: the map of a site for runtimes in browsers, made from the declarations on its pages.

Every action is a tool. It is a workflow of portable primitives if a page declares everything that this needs: the form,
a selector for each required input, the button, and what shows that the page has answered. Portable primitives can only
fill text fields, numbers, checkboxes and radio buttons. All other tools, and those that a person confirms, call the
handler `agents.invoke`, which our runtimes bind to the guarded address of the action. Names are local to a page in
Python and have the page's id as a prefix here. Deliberately not emitted: steps of `x_actions.execution` (replaced by
workflows), handlers' source files, and context that would grant anything.
"""

from typing import Final

from awp_publish.documents.members import SITE_ACTION as SITE_ACTION, extension_members, present
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.maps import reading
from awp_publish.model import Catalog, JsonObject, __version__
from awp_publish.plugins.actions_json.page_map import OWN_PARTS, imports_of, offered_by, parts_of
from awp_publish.plugins.actions_json.tools import outcome_of, tool_of

PATH: Final = "/.well-known/actions.json"
ALIAS: Final = "/actions.json"
MEDIA_TYPE: Final = "application/json"
VERSION: Final = 1

SITE_TOOL: Final = "actions.site"
"""The name of SITE_ACTION in maps: the tool with which an agent without a browser lists, calls and reads a map."""

SITE_INPUTS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "mode": {
            "type": "string",
            "enum": ["list", "call", "state_read", "state_summary", "state_diff"],
            "description": "list: what can be done and read here and now; call: carry out an action; state_...: read.",
        },
        "action": {"type": "string", "maxLength": 256, "description": "For call: the name of an action or primitive."},
        "arguments": {"type": "object", "description": "For call: the arguments of the action."},
        "projection_name": {"type": "string", "maxLength": 256, "description": "Which projection is read."},
        "summary_name": {"type": "string", "maxLength": 256, "description": "Which of its summaries is read."},
        "max_bytes": {"type": "integer", "minimum": 1, "description": "The largest summary to return, in bytes."},
        "target_runtime_id": {
            "type": "string",
            "maxLength": 256,
            "description": "Which page to use: a runtime_id of an earlier answer, or a visitor's code.",
        },
    },
    "required": ["mode"],
    "additionalProperties": False,
}


def render(catalog: Catalog) -> dict[str, object]:
    """Return the map (V1, Root Object). The same declarations always give the same bytes."""
    pages, site = [page for page in catalog.pages if page.id], catalog.site
    imports, offered = imports_of(catalog), offered_by(catalog)
    by_page = [parts_of(catalog, page, offered) for page in pages]
    parts = {section: [part for sections in by_page for part in sections[section]] for section in OWN_PARTS}
    verified = {name for part in parts["state_projections"] for name in reading.part(part, "postconditions")}
    outcomes = [outcome_of(catalog, action, pages) for action in catalog.actions if action.id not in verified]
    parts["state_projections"] += [present(outcome) for outcome in outcomes if outcome is not None]
    surface = {
        "origin": catalog.url,
        "name": site.name,
        "kind": "website",
        "description": site.description,
        "surface_id": catalog.domain if catalog.domain[:1].isalpha() else None,
    }
    members = {
        "protocol": "actions.json",
        "version": VERSION,
        "surface": present(surface),
        "imports": imports,
        "composition": {"default_conflict_policy": "prefer_local", "namespace_required": True} if imports else None,
        "context": parts.pop("context"),
        "states": parts.pop("states"),
        "transitions": parts.pop("transitions"),
        "tools": [tool_of(catalog, action, pages) for action in catalog.actions if action.id != SITE_ACTION],
        **parts,
        "provenance": {
            "created_by": f"awp-publish {__version__}",
            "source": "declarations of the site",
            "revision": site.version,
            **site.provenance,
        },
    }
    map_ = {name: value for name, value in members.items() if value or name == "tools"}
    return map_ | extension_members(site.extensions)


_write = to_json(render)  # shared by both paths, so that lists of documents have it once
PROTOCOL = Protocol(
    "actions_json",
    documents=tuple(
        Document(path, MEDIA_TYPE, _write, rel, "actions.json", door="bridge")
        for path, rel in ((PATH, "service-desc"), (ALIAS, None))
    ),
)

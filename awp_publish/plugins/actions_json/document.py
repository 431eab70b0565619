"""actions.json V1: the map of a site for runtimes in browsers, made from the declarations on its pages.

Every action is a tool. It is a workflow of portable primitives if a page declares everything that this needs: the form,
a selector for each required input, the button, and what shows that the page has answered. Portable primitives can only
fill text fields, numbers, checkboxes and radio buttons. All other tools, and those that a person confirms, call the
handler `agents.invoke`, which our runtimes bind to the guarded address of the action. Names are local to a page in
Python and have the page's id as a prefix here. Deliberately not emitted: steps of `x_actions.execution` (replaced by
workflows), handlers' source files, and context that would grant anything.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from awp_publish.documents.members import (
    SITE_ACTION as SITE_ACTION,
    SITE_TOOL as SITE_TOOL,
    extension_members,
    present,
)
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Catalog, JsonObject, Locator, Page, Projection, __version__
from awp_publish.plugins.actions_json.targets import (
    diagnostic_name,
    locator_of,
    qualified,
    scope_of,
    slot,
    target_of,
)
from awp_publish.plugins.actions_json.tools import outcome_of, tool_of

PATH: Final = "/.well-known/actions.json"
ALIAS: Final = "/actions.json"
MEDIA_TYPE: Final = "application/json"
VERSION: Final = 1
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
    imports = [
        {"id": name, "kind": one.kind, "uri": one.uri, "namespace": name, "trust": one.trust, "enabled": one.enabled}
        for name, one in site.imports.items()
    ]
    parts = {
        kind: [present(part) for page in pages for part in parts_of(catalog, page)] for kind, parts_of in _PARTS.items()
    }
    outcomes = (outcome_of(catalog, action, pages) for action in catalog.actions)
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


_Parts: TypeAlias = Iterator[dict[str, object]]


def _context(catalog: Catalog, page: Page) -> _Parts:
    if page.guide or page.actions:
        yield {
            "id": page.id,
            "title": page.title,
            "body": page.guide or page.description,
            "load_when": scope_of(catalog, page),
            "available_tools": list(page.actions) or None,
            "next_states": [qualified(page, name) for name in page.states] or None,
        }


def _states(catalog: Catalog, page: Page) -> _Parts:
    for name, state in page.states.items():
        diagnostics: dict[str, object] = {}
        for place in [state.where] if isinstance(state.where, (str, Locator)) else state.where:
            label = diagnostic_name(page, place) or name
            numbered = (f"{label}_{number}" if number else label for number in itertools.count())
            diagnostics[next(name for name in numbered if name not in diagnostics)] = target_of(catalog, page, place)
        yield {
            "name": qualified(page, name),
            "description": state.description,
            "diagnostics": [{"name": label, "target": target} for label, target in diagnostics.items()],
            "observables": [qualified(page, projection) for projection in state.shows] or None,
        }


def _transitions(catalog: Catalog, page: Page) -> _Parts:
    for name, transition in page.transitions.items():
        end = qualified(page, transition.end)
        yield {
            "name": qualified(page, name),
            "from": qualified(page, transition.start),
            "to": end,
            "tool": transition.action,
            "signal": None if transition.signal is None else qualified(page, transition.signal),
            "method": "tool_call" if transition.action else "signal" if transition.signal else "navigation",
            "rate_limit_ms": transition.every_ms,
            "preconditions": list(transition.preconditions) or None,
            "reveals": [qualified(page, place) for place in page.states[transition.end].shows] or None,
            "convergence": {"complete_when": end, "max_attempts": 1} if transition.action else None,
            "do_not_use": list(transition.do_not_use) or None,
        }


def _signals(catalog: Catalog, page: Page) -> _Parts:
    for name, signal in page.signals.items():
        yield {
            "name": qualified(page, name),
            "description": signal.description,
            "direction": "html_to_agent",
            "event": signal.event,
            "ingestion": "enabled" if signal.enabled else "disabled_by_default",
            "target": _element(catalog, page, signal.at) if signal.at is not None else None,
            "payload": signal.payload,
        }


def _attachments(catalog: Catalog, page: Page) -> _Parts:
    for name, attachment in page.attachments.items():
        affordance = {"label": attachment.label, "placement": attachment.placement, "max_instances": 1}
        yield {
            "id": qualified(page, name),
            "kind": attachment.kind,
            "description": attachment.description,
            "target": _element(catalog, page, attachment.at),
            "affordance": affordance | ({"opens": {"tool": attachment.opens}} if attachment.opens else {}),
            "lifecycle": {
                "install": "when_target_matches",
                "remove": "when_context_mismatch",
                "reattach": "on_url_or_dom_change",
            },
        }


def _element(catalog: Catalog, page: Page, place: str | Locator) -> dict[str, object]:
    return {"selector": locator_of(page, place).css, **scope_of(catalog, page)}


def _checks(catalog: Catalog, page: Page) -> _Parts:
    for name, check in page.checks.items():
        yield {
            "id": qualified(page, name),
            "description": check.description,
            "severity": check.severity,
            "assertions": [
                {"target": {"selector": locator_of(page, place).css}, "visible": True} for place in check.visible
            ],
            "on_fail": {"store_evidence": ["url", "dom_snapshot"], "contingency": "handoff_to_user"},
        }


def _projections(catalog: Catalog, page: Page) -> _Parts:
    for name, projection in page.projections.items():
        yield _projection(catalog, page, name, projection)


_PARTS: Final[Mapping[str, Callable[[Catalog, Page], _Parts]]] = {
    "context": _context,
    "states": _states,
    "transitions": _transitions,
    "signals": _signals,
    "attachments": _attachments,
    "checks": _checks,
    "state_projections": _projections,
}
"""What each page adds to the members of the map."""


def _projection(catalog: Catalog, page: Page, name: str, projection: Projection) -> dict[str, object]:
    extract = []
    for record_id, record in projection.records.items():
        fields: dict[str, object] = {}
        for field, value in record.fields.items():
            is_text = value.attribute is None and value.property is None
            described = {
                "selector": value.css,
                "attribute": value.attribute,
                "property": "innerText" if is_text else value.property,
                "trim": True if is_text else None,
                "required": True if value.required else None,
                "many": True if value.many else None,
            }
            fields[field] = present(described)
        row = {"id": record_id, "selector": record.css, "many": record.many, "fields": fields or None}
        extract.append(present(row))
    snapshot = {
        "version": 1,
        "source": "dom",
        "extract": extract,
        "projection": {"language": "jsonata", "expression": slot(projection.state)},
        "output_schema": projection.schema,
    }
    summaries = [
        {"name": summary, "max_bytes": 12_000, "expression": slot(expression)}
        for summary, expression in projection.summaries.items()
    ]
    postconditions = {
        action: {
            "projection": qualified(page, name),
            "verify": {"language": "jsonata", "expression": slot(expression)},
        }
        for action, expression in projection.after.items()
    }
    scope = scope_of(catalog, page)
    if "url_matches" not in scope:  # a projection only has patterns; a query may follow the address
        scope = {"url_matches": f"{catalog.absolute(page.path)}*"}
    return {
        "name": qualified(page, name),
        "description": projection.description,
        "scope": scope,
        "snapshot": present(snapshot),
        "summaries": summaries or None,
        "postconditions": postconditions or None,
    }


_write = to_json(render)  # shared by both paths, so that lists of documents have it once
PROTOCOL = Protocol(
    "actions_json",
    documents=tuple(
        Document(path, MEDIA_TYPE, _write, rel, "actions.json", door="bridge")
        for path, rel in ((PATH, "service-desc"), (ALIAS, None))
    ),
)

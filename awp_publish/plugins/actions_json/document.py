"""actions.json V1: the map of a site for runtimes in browsers, made from the declarations on its pages.

Every action is a tool. It is a workflow of portable primitives if a page declares everything that this needs: the form,
a selector for each required input, the button, and what shows that the page has answered. Portable primitives can only
fill text fields, numbers, checkboxes and radio buttons. All other tools, and those that a person confirms, call the
handler `agents.invoke`, which our runtimes bind to the guarded address of the action. Names are local to a page in
Python and have the page's id as a prefix here. Deliberately not emitted: steps of `x_actions.execution` (replaced by
workflows), handlers' source files, and context that would grant anything.
"""

import itertools
import json
import re
from collections.abc import Mapping
from typing import Final

from awp_publish.documents.members import SITE_ACTION as SITE_ACTION, SITE_TOOL as SITE_TOOL, extension_members, present
from awp_publish.documents.protocol import Document, Protocol, to_json
from awp_publish.model import Action, Catalog, JsonObject, Locator, Page, Place, Projection, __version__
from awp_publish.schema.embedding import answer_schema
from awp_publish.schema.reading import options, resolved

PATH: Final = "/.well-known/actions.json"
ALIAS: Final = "/actions.json"
MEDIA_TYPE: Final = "application/json"
VERSION: Final = 1
HANDLER: Final = "agents.invoke"
"""The only handler of tools: it calls the action at the site's own guarded address."""

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

SETTLE_MS: Final = 8_000
_PAGE_ANSWER: Final[JsonObject] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "url": {"type": "string"}, "title": {"type": "string"}},
    "required": ["ok", "url", "title"],
    "additionalProperties": False,
}
"""The answer of a workflow: the resulting page, not the JSON of the action."""


def render(catalog: Catalog) -> dict[str, object]:
    """Return the map (V1, Root Object). The same declarations always give the same bytes."""
    pages, site = [page for page in catalog.pages if page.id], catalog.site
    imports = [
        {"id": name, "kind": one.kind, "uri": one.uri, "namespace": name, "trust": one.trust, "enabled": one.enabled}
        for name, one in site.imports.items()
    ]
    composition = {"default_conflict_policy": "prefer_local", "namespace_required": True} if imports else None
    parts: dict[str, list[dict[str, object]]] = {}

    def add(kind: str, part: Mapping[str, object]) -> None:
        parts.setdefault(kind, []).append(present(part))

    for page in pages:
        scope = _scope(catalog, page)
        if page.guide or page.actions:
            context = {
                "id": page.id,
                "title": page.title,
                "body": page.guide or page.description,
                "load_when": scope,
                "available_tools": list(page.actions) or None,
                "next_states": [_named(page, name) for name in page.states] or None,
            }
            add("context", context)
        for name, state in page.states.items():
            diagnostics: dict[str, object] = {}
            for place in [state.where] if isinstance(state.where, (str, Locator)) else state.where:
                called = _called(page, place) or name
                numbered = (f"{called}_{number}" if number else called for number in itertools.count())
                diagnostics[next(one for one in numbered if one not in diagnostics)] = _target(catalog, page, place)
            described = {
                "name": _named(page, name),
                "description": state.description,
                "diagnostics": [{"name": called, "target": target} for called, target in diagnostics.items()],
                "observables": [_named(page, projection) for projection in state.shows] or None,
            }
            add("states", described)
        for name, transition in page.transitions.items():
            end = _named(page, transition.end)
            step = {
                "name": _named(page, name),
                "from": _named(page, transition.start),
                "to": end,
                "tool": transition.action,
                "signal": None if transition.signal is None else _named(page, transition.signal),
                "method": "tool_call" if transition.action else "signal" if transition.signal else "navigation",
                "rate_limit_ms": transition.every_ms,
                "preconditions": list(transition.preconditions) or None,
                "reveals": [_named(page, shown) for shown in page.states[transition.end].shows] or None,
                "convergence": {"complete_when": end, "max_attempts": 1} if transition.action else None,
                "do_not_use": list(transition.do_not_use) or None,
            }
            add("transitions", step)
        for name, signal in page.signals.items():
            event = {
                "name": _named(page, name),
                "description": signal.description,
                "direction": "html_to_agent",
                "event": signal.event,
                "ingestion": "enabled" if signal.enabled else "disabled_by_default",
                "target": None if signal.at is None else {"selector": _locator(page, signal.at).css, **scope},
                "payload": signal.payload,
            }
            add("signals", event)
        for name, attachment in page.attachments.items():
            affordance = {"label": attachment.label, "placement": attachment.placement, "max_instances": 1}
            attached = {
                "id": _named(page, name),
                "kind": attachment.kind,
                "description": attachment.description,
                "target": {"selector": _locator(page, attachment.at).css, **scope},
                "affordance": affordance | ({"opens": {"tool": attachment.opens}} if attachment.opens else {}),
                "lifecycle": {
                    "install": "when_target_matches",
                    "remove": "when_context_mismatch",
                    "reattach": "on_url_or_dom_change",
                },
            }
            add("attachments", attached)
        for name, check in page.checks.items():
            seen = [{"target": {"selector": _locator(page, place).css}, "visible": True} for place in check.visible]
            held = {
                "id": _named(page, name),
                "description": check.description,
                "severity": check.severity,
                "assertions": seen,
                "on_fail": {"store_evidence": ["url", "dom_snapshot"], "contingency": "handoff_to_user"},
            }
            add("checks", held)
        for name, projection in page.projections.items():
            add("state_projections", _projection(catalog, page, name, projection))
    members = {
        "protocol": "actions.json",
        "version": VERSION,
        "surface": {
            "origin": catalog.url,
            "name": site.name,
            "kind": "website",
            "description": site.description,
            "surface_id": catalog.domain if catalog.domain[:1].isalpha() else None,
        },
        "imports": imports,
        "composition": composition,
        "context": parts.get("context"),
        "states": parts.get("states"),
        "transitions": parts.get("transitions"),
        "tools": [_tool(catalog, action, pages) for action in catalog.actions if action.id != SITE_ACTION],
        **{kind: parts.get(kind) for kind in ("signals", "attachments", "checks", "state_projections")},
        "provenance": {
            "created_by": f"awp-publish {__version__}",
            "source": "declarations of the site",
            "revision": site.version,
            **site.provenance,
        },
    }
    members["surface"] = present(members["surface"])  # type: ignore[arg-type]
    map_ = {name: value for name, value in members.items() if value or name == "tools"}
    return map_ | extension_members(site.extensions)


# --- Targets ---


def _scope(catalog: Catalog, page: Page) -> dict[str, object]:
    """Return the predicate for a page's addresses: a part of the address, or a pattern if it has placeholders."""
    if page.is_template:
        parts = [part.partition("}")[2] if index else part for index, part in enumerate(page.path.split("{"))]
        return {"url_matches": catalog.absolute("*".join(parts))}
    if page.path == "/":
        return {"url_matches": catalog.absolute("/")}
    return {"url_contains": catalog.prefix + page.path}


def _locator(page: Page, place: Place) -> Locator:
    if isinstance(place, Locator):
        return place
    return page.locators.get(place) or Locator(place)


def _target(catalog: Catalog, page: Page, place: Place, *fallbacks: str, **further: object) -> dict[str, object]:
    """Return a target descriptor (V1, target)."""
    where = _locator(page, place)
    return present(
        {
            "selector": where.css,
            "role": where.role,
            "name": where.name,
            "text_equals": where.text_equals,
            "text_contains": where.text_contains,
            **_scope(catalog, page),
            **further,
            "fallback_selectors": [*where.fallbacks, *fallbacks] or None,
            "confidence": "observed",
        }
    )


def _named(page: Page, name: str) -> str:
    return f"{page.id}.{name}"


def _called(page: Page, place: Place) -> str | None:
    """Return the name of a diagnostic: its locator's name, "message" for a text, otherwise a class, id or tag."""
    if isinstance(place, str) and place in page.locators:
        return place
    where = _locator(page, place)
    if where.text_contains is not None or where.text_equals is not None:
        return "message"
    plain = re.sub(r"\[[^\]]*\]|\([^()]*\)|::?[\w-]+", "", where.css)  # attributes and pseudo-classes
    names: list[str] = re.findall(r"[A-Za-z][\w-]*", re.split(r"[\s>+~,|]+", plain.strip())[-1], re.ASCII)
    return names[-1] if names else None


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
        "projection": {"language": "jsonata", "expression": _slot(projection.state)},
        "output_schema": projection.schema,
    }
    summaries = [
        {"name": summary, "max_bytes": 12_000, "expression": _slot(expression)}
        for summary, expression in projection.summaries.items()
    ]
    postconditions = {
        action: {
            "projection": _named(page, name),
            "verify": {"language": "jsonata", "expression": _slot(expression)},
        }
        for action, expression in projection.after.items()
    }
    scope = _scope(catalog, page)
    if "url_matches" not in scope:  # a projection only has patterns; a query may follow the address
        scope = {"url_matches": f"{catalog.absolute(page.path)}*"}
    return {
        "name": _named(page, name),
        "description": projection.description,
        "scope": scope,
        "snapshot": present(snapshot),
        "summaries": summaries or None,
        "postconditions": postconditions or None,
    }


def _slot(expression: str) -> str:
    return f"{{% {expression} %}}"


# --- Tools ---


def _tool(catalog: Catalog, action: Action, pages: list[Page]) -> dict[str, object]:
    page = next((page for page in pages if action.id in page.actions), None)
    workflow = _workflow(action, page) if page is not None else None
    tool: dict[str, object] = {"name": action.id, "description": action.description, "input_schema": action.inputs}
    if page is not None and (place := _form(action, page)) is not None:
        start = (one.start for one in page.transitions.values() if one.action == action.id)
        state = next((_named(page, name) for name in start), None)
        tool["target"] = _target(catalog, page, place, f"[data-awas-action='{action.id}']", state=state)
    if workflow is not None and page is not None:
        primitives = {step["primitive"] for step in workflow["steps"]}
        form = _form(action, page)
        parts = [_locator(page, form).css if form is not None else None, *action.selectors.values()]
        tool["requires"] = sorted(str(primitive) for primitive in primitives)
        tool["x_actions"] = {
            "direction": "agent_to_html",
            "scope": "active_surface",
            "source": {"selectors": [css for css in (*parts, _part(action, page, "submit")) if css]},
            "result_schema": _PAGE_ANSWER,
        }
        tool["workflow"] = workflow
        return tool
    arguments = present(
        {"agent_id": action.agent_id, "operation": None if action.operation == "default" else action.operation}
    )
    tool["x_actions"] = {
        "direction": "agent_to_html",
        "handler": HANDLER,
        "scope": "persistent",
        "binding": {"arguments": arguments},
        "result_schema": answer_schema(action),
    }
    return tool


def _form(action: Action, page: Page) -> Place | None:
    """Return the place of an action's form: a locator with its name, the locator "form", or the action's selector."""
    return page.locators.get(action.id) or page.locators.get("form") or action.selector


def _part(action: Action, page: Page, name: str) -> str | None:
    """Return the selector of a named part of an action's form; with several forms its name begins with the id."""
    found = page.locators.get(f"{action.id}_{name}") or page.locators.get(name)
    return found.css if found is not None else None


def _workflow(action: Action, page: Page) -> dict[str, list[dict[str, object]]] | None:
    """Return the workflow that fills in and sends an action's form; None if there is no portable one.

    The first step refuses optional inputs that the form cannot take.
    """
    submit, done = _part(action, page, "submit"), _part(action, page, "done")
    properties, required = action.inputs.get("properties", {}), action.inputs.get("required", [])
    if action.needs_confirmation or submit is None or done is None or not isinstance(properties, Mapping):
        return None
    steps: list[dict[str, object]] = []
    unfit: list[str] = []
    for name, schema in properties.items():
        is_optional = not isinstance(required, list) or name not in required
        filling = _filling(action, name, resolved(schema, action.inputs), is_optional=is_optional)
        if filling is None and (not is_optional or "`" in name):
            return None
        steps += filling or ()
        unfit += [name] if filling is None else []
    if len(steps) > 25 - 5 or (properties and not steps):
        return None
    if unfit:
        given = " or ".join(f"$exists(input.`{name}`)" for name in unfit)
        refusal = json.dumps(f"The form has no field for {', '.join(unfit)}. Leave it out.", ensure_ascii=False)
        condition = _slot(f"{given} ? $error({refusal}) : false")
        steps.insert(0, {"id": "fits_the_form", "primitive": "page.info", "when": condition})
    waited = {"locator": {"selector": done}, "state": "visible", "timeout_ms": SETTLE_MS}
    steps += _click("submit", submit, {"settle_after": waited})
    steps.append({"id": "verify", "primitive": "locator.wait_for", "args": waited})
    steps.append({"id": "page", "primitive": "page.info"})
    output = _slot("{'ok': true, 'url': steps.page.output.url, 'title': steps.page.output.title}")
    return {"version": 1, "expression_language": "jsonata", "steps": steps, "output": output}  # type: ignore[dict-item]


def _filling(action: Action, name: str, facts: JsonObject, *, is_optional: bool) -> list[dict[str, object]] | None:
    """Return the steps that fill in an input's field, None if portable primitives cannot do it."""
    css, kind = action.selectors.get(name), facts.get("type")
    if css is None or not (name.isascii() and name.isidentifier()):  # it is used unquoted in an expression
        return None
    given = f"{{% $exists(input.{name}) %}}" if is_optional else None
    if "enum" in facts or "const" in facts:
        choices = options(facts, action.inputs)
        if not _RADIO.search(css) or any(isinstance(one, bool) or _QUOTED.search(str(one)) for one in choices):
            return None  # a list, from which portable primitives cannot choose
        # Which button is clicked is only known when the workflow runs.
        button = f'{json.dumps(css, ensure_ascii=False)} & "[value=\'" & input.{name} & "\']"'
        return _click(f"choose_{name}", _slot(button), {}, when=given)
    if kind in ("string", "integer", "number"):
        text = f"input.{name}" if kind == "string" else f"$string(input.{name})"
        arguments = {"text": _slot(text), "target": {"selector": css}, "mode": "replace"}
        step: dict[str, object] = {"id": f"type_{name}", "primitive": "text.insert"}
        return [step | ({} if given is None else {"when": given}) | {"args": arguments}]
    if kind == "boolean":
        observed = f"$count(steps.checked_{name}.output.matches) > 0"
        differs = f"{{% $exists(input.{name}) and input.{name} != ({observed}) %}}"
        checked = {"selector": f"{css}:checked"}
        found: dict[str, object] = {"id": f"checked_{name}", "primitive": "dom.observe.visible", "args": checked}
        return [found, *_click(f"check_{name}", css, {"when": differs})]
    return None


def _click(name: str, css: str, further: JsonObject, when: str | None = None) -> list[dict[str, object]]:
    """Return the steps of a click: find the element and click its centre, if the condition `when` holds."""
    centre = f"steps.find_{name}.output.clickable_center"
    click = {"id": name, "primitive": "pointer.click", "args": {"x": _slot(f"{centre}.x"), "y": _slot(f"{centre}.y")}}
    found: dict[str, object] = {"locator": {"selector": css}}
    condition: dict[str, object] = {} if when is None else {"when": when}
    find: dict[str, object] = {"id": f"find_{name}", "primitive": "locator.element_info", **condition, "args": found}
    return [find, click | condition | dict(further)]


_RADIO: Final = re.compile(r"""\[\s*type\s*=\s*["']?radio["']?\s*\][^\s>+~,]*$""", re.IGNORECASE)
"""A selector for radio buttons: the only choices that can be recognised without the page."""
_QUOTED: Final = re.compile(r"""['"\\\n\r\f]""")
"""Characters that cannot be quoted in a selector."""


_write = to_json(render)  # shared by both paths, so that lists of documents have it once
PROTOCOL = Protocol(
    "actions_json",
    documents=tuple(
        Document(path, MEDIA_TYPE, _write, rel, "actions.json", door="bridge")
        for path, rel in ((PATH, "service-desc"), (ALIAS, None))
    ),
)

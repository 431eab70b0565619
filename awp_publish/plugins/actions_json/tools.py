"""The tools of a site's actions.json: workflows that fill in and send forms, and calls of the guarded address.

A workflow proves that the form is there before it types (`x_state_machine.requires_state`), hides the menu with which
the published runtime may cover the page, and takes its button from the page at the moment of the click. Whether the
page has answered is a projection of its own, with the postcondition of the tool, unless the page declares one.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from awp_publish.documents.members import present
from awp_publish.maps import reading
from awp_publish.maps.rules import MAX_STEPS, POSTCONDITION, SETTLE_TIMEOUT_MS
from awp_publish.model import Action, Catalog, JsonObject, Page
from awp_publish.plugins.actions_json.page_map import map_of, names_of, targets_of
from awp_publish.plugins.actions_json.targets import at_address, css_of, scope_of, slot
from awp_publish.schema.embedding import answer_schema
from awp_publish.schema.reading import options, resolved

HANDLER: Final = "agents.invoke"
"""The only handler of tools: it calls the action at the site's own guarded address."""

_PAGE_ANSWER: Final[JsonObject] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "url": {"type": "string"}, "title": {"type": "string"}},
    "required": ["ok", "url", "title"],
    "additionalProperties": False,
}
"""The answer of a workflow: the resulting page, not the JSON of the action."""
_OPTIONAL_PRIMITIVES: Final = frozenset(("overlay.menu.hide",))
"""Primitives that a tool does not require, because its workflow goes on without them."""
_RADIO: Final = re.compile(r"""\[\s*type\s*=\s*["']?radio["']?\s*\][^\s>+~,]*$""", re.IGNORECASE)
"""A selector for radio buttons: the only choices that can be recognised without the page."""
_QUOTED: Final = re.compile(r"""['"\\\n\r\f]""")
"""Characters that cannot be quoted in a selector."""

Step = dict[str, object]


def tool_of(catalog: Catalog, action: Action, pages: list[Page]) -> dict[str, object]:
    """Return the tool of an action: a workflow if one of the pages declares its whole form, otherwise the handler."""
    page = _home(action, pages)
    workflow = _workflow(action, page) if page is not None else None
    tool: dict[str, object] = {"name": action.id, "description": action.description, "input_schema": action.inputs}
    if page is not None and (place := _form(action, page)) is not None:
        moves = [move for move in reading.objects(map_of(page), "transitions") if move.get("tool") == action.id]
        starts = (name for move in moves for name in reading.texts(move, "from"))
        state = place.get("state") or next(starts, None)
        is_local = state in names_of(map_of(page))["states"]
        target = at_address(scope_of(catalog, page), place)
        fallbacks = [*reading.texts(target, "fallback_selectors"), f"[data-awas-action='{action.id}']"]
        last = {"fallback_selectors": fallbacks, "confidence": target["confidence"]}
        first = {name: value for name, value in target.items() if name not in last}
        tool["target"] = present({**first, "state": f"{page.id}.{state}" if is_local else state, **last})
    if workflow is not None and page is not None:
        primitives = {str(step["primitive"]) for step in workflow["steps"]}
        form, submit = (css_of(part or {}) for part in (_form(action, page), _part(action, page, "submit")))
        tool["requires"] = sorted(primitives - _OPTIONAL_PRIMITIVES)
        tool["x_actions"] = {
            "direction": "agent_to_html",
            "scope": "active_surface",
            "source": {"selectors": [css for css in (form, *action.selectors.values(), submit) if css]},
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


def outcome_of(catalog: Catalog, action: Action, pages: list[Page]) -> dict[str, object] | None:
    """Return the projection of whether the page has answered the workflow of an action, None if it has none."""
    page = _home(action, pages)
    done = None if page is None else _part(action, page, "done")
    if page is None or done is None or _workflow(action, page) is None:
        return None
    matches = "records.done"
    if "text_equals" in done:
        matches += f"[$ = {json.dumps(done['text_equals'], ensure_ascii=False)}]"
    elif "text_contains" in done:
        matches += f"[$contains($, {json.dumps(done['text_contains'], ensure_ascii=False)})]"
    name = f"{page.id}.{action.id}_done"
    return {
        "name": name,
        "description": f"Whether the page shows that {action.id} is done.",
        "purpose": POSTCONDITION,
        "scope": {"url_matches": f"{catalog.absolute('/')}*"},
        "snapshot": {
            "version": 1,
            "source": "dom",
            "extract": [{"id": "done", "selector": css_of(done)}],
            "projection": {"language": "jsonata", "expression": slot(f"{{'is_shown': $count({matches}) > 0}}")},
        },
        "postconditions": {
            action.id: {"projection": name, "verify": {"language": "jsonata", "expression": slot("state.is_shown")}}
        },
    }


def _home(action: Action, pages: list[Page]) -> Page | None:
    return next((page for page in pages if action.id in page.actions), None)


def _form(action: Action, page: Page) -> JsonObject | None:
    """Return an action's form: the target with its name, the target "form", or what the action's selector matches."""
    declared = targets_of(page).get(action.id) or targets_of(page).get("form")
    return declared or ({"selector": action.selector} if action.selector else None)


def _part(action: Action, page: Page, name: str) -> JsonObject | None:
    """Return a named part of an action's form; with several forms its name begins with the action's id.

    Only one with a selector: the published runtime finds the elements of steps by nothing else.
    """
    target = targets_of(page).get(f"{action.id}_{name}") or targets_of(page).get(name)
    return None if target is None or css_of(target) is None else target


def _workflow(action: Action, page: Page) -> dict[str, Any] | None:
    """Return the workflow that fills in and sends an action's form; None if there is no portable one.

    Its first step refuses optional inputs that the form cannot take.
    """
    form, submit, done = _form(action, page), _part(action, page, "submit"), _part(action, page, "done")
    properties, required = action.inputs.get("properties", {}), action.inputs.get("required", [])
    if action.needs_confirmation or submit is None or done is None or not isinstance(properties, Mapping):
        return None
    filling: list[Step] = []
    unfit: list[str] = []
    for name, schema in properties.items():
        is_optional = not isinstance(required, list) or name not in required
        field = _filling(action, name, resolved(schema, action.inputs), is_optional=is_optional)
        if field is None and (not is_optional or "`" in name):
            return None
        filling += field or ()
        unfit += [name] if field is None else []
    if properties and not filling:
        return None
    steps = [_refusal(unfit)] if unfit else []
    required_state = _locator_of(submit if form is None or css_of(form) is None else form)
    steps.append({"id": "form_ready", "primitive": "locator.wait_for", "args": _until(required_state)})
    steps.append({"id": "hide_overlay", "primitive": "overlay.menu.hide", "on_error": "continue"})
    answered = _until(_locator_of(done))
    steps += [*filling, *_click("submit", _locator_of(submit), {"settle_after": answered})]
    steps.append({"id": "verify", "primitive": "locator.wait_for", "args": answered})
    steps.append({"id": "page", "primitive": "page.info"})
    if len(steps) > MAX_STEPS:
        return None
    return {
        "version": 1,
        "expression_language": "jsonata",
        "steps": steps,
        "output": slot("{'ok': true, 'url': steps.page.output.url, 'title': steps.page.output.title}"),
        "x_state_machine": {"requires_state": required_state},
    }


def _locator_of(target: JsonObject) -> Step:
    """Return the locator of a primitive: what the published runtime reads of a target."""
    texts = {name: target[name] for name in ("text_equals", "text_contains") if name in target}
    return {"selector": css_of(target), **texts}


def _until(locator: Step) -> Step:
    return {"locator": locator, "state": "visible", "timeout_ms": SETTLE_TIMEOUT_MS}


def _refusal(unfit: list[str]) -> Step:
    """Return a step that fails if an input is given that has no field in the form."""
    is_given = " or ".join(f"$exists(input.`{name}`)" for name in unfit)
    message = json.dumps(f"The form has no field for {', '.join(unfit)}. Leave it out.", ensure_ascii=False)
    return {"id": "fits_the_form", "primitive": "page.info", "when": slot(f"{is_given} ? $error({message}) : false")}


def _filling(action: Action, name: str, schema: JsonObject, *, is_optional: bool) -> list[Step] | None:
    """Return the steps that fill in an input's field, None if portable primitives cannot do it."""
    css, kind = action.selectors.get(name), schema.get("type")
    if css is None or not (name.isascii() and name.isidentifier()):  # it is used unquoted in an expression
        return None
    when: Step = {"when": slot(f"$exists(input.{name})")} if is_optional else {}
    if "enum" in schema or "const" in schema:
        choices = options(schema, action.inputs)
        if not _RADIO.search(css) or any(isinstance(choice, bool) or _QUOTED.search(str(choice)) for choice in choices):
            return None  # a list, from which portable primitives cannot choose
        # Which button is clicked is only known when the workflow runs.
        button = f'{json.dumps(css, ensure_ascii=False)} & "[value=\'" & input.{name} & "\']"'
        find, click = _click(f"choose_{name}", {"selector": slot(button)}, when)
        return [find | when, click]
    if kind in ("string", "integer", "number"):
        text = f"input.{name}" if kind == "string" else f"$string(input.{name})"
        arguments = {"text": slot(text), "target": {"selector": css}, "mode": "replace"}
        return [{"id": f"type_{name}", "primitive": "text.insert", **when, "args": arguments}]
    if kind == "boolean":
        is_checked = f"$count(steps.checked_{name}.output.matches) > 0"
        differs = slot(f"$exists(input.{name}) and input.{name} != ({is_checked})")
        checked = {"selector": f"{css}:checked"}
        look: Step = {"id": f"checked_{name}", "primitive": "dom.observe.visible", "args": checked}
        return [look, *_click(f"check_{name}", {"selector": css}, {"when": differs})]
    return None


def _click(name: str, locator: Step, members: Step) -> tuple[Step, Step]:
    centre = f"steps.find_{name}.output.clickable_center"
    find: Step = {"id": f"find_{name}", "primitive": "locator.element_info", "args": {"locator": locator}}
    point = {"x": slot(f"{centre}.x"), "y": slot(f"{centre}.y")}
    return find, {"id": name, "primitive": "pointer.click", "args": point, **members}

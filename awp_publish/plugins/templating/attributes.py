"""Attributes that tell agents which element of a page belongs to which action."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from awp_publish.model import Action, Catalog
from awp_publish.plugins.templating.catalog import AWAS, Style
from awp_publish.problems import DeclarationError


def action_attributes(
    catalog: Catalog, action_id: str, styles: Sequence[Style] = AWAS, context: str | None = None
) -> str:
    """Return the attributes of an element that performs an action, such as a form; "" for actions hidden from
    agents.
    """
    action = find_action(catalog, action_id)
    if not is_visible(catalog, action):
        return ""
    method, path = catalog.endpoint_of(action)
    names: dict[Style, dict[str, object]] = {
        "data-awas": {"action": action.id, "context": context},
        "data-ai": {
            "action": action.id,
            "action-type": action.type,
            "endpoint": catalog.prefix + path,
            "method": method,
            "intent": action.intent,
            "entity": context,
        },
        "tool": {
            "name": action.id,
            "description": " ".join(action.description.split()),
            "autosubmit": "" if action.effect == "read" else None,
        },
    }
    return _attributes(names, styles)


def param_attributes(catalog: Catalog, action_id: str, name: str, styles: Sequence[Style] = AWAS) -> str:
    """Return the attributes of the control for an action's input `name`."""
    action = find_action(catalog, action_id)
    properties = action.inputs.get("properties")
    if not isinstance(properties, Mapping) or name not in properties:
        choices = ", ".join(properties if isinstance(properties, Mapping) else ()) or "none"
        raise DeclarationError("template", f'action "{action.id}" has no input "{name}". There are: {choices}.')
    schema = properties[name] if isinstance(properties[name], Mapping) else {}
    if not is_visible(catalog, action):
        return ""
    required = action.inputs.get("required")
    names: dict[Style, dict[str, object]] = {
        "data-awas": {"param": name},
        "data-ai": {
            "param": name,
            "param-type": schema.get("type"),
            "param-required": isinstance(required, list) and name in required,
            "param-default": schema.get("default"),
        },
        "tool": {"paramdescription": schema.get("description") or schema.get("title") or name},
    }
    return _attributes(names, styles)


def context_attributes(context: str, styles: Sequence[Style] = AWAS) -> str:
    """Return attributes that say what a part of the page is about."""
    return _attributes({"data-awas": {"context": context}, "data-ai": {"content": context}, "tool": {}}, styles)


def result_attributes(catalog: Catalog, action_id: str, styles: Sequence[Style] = AWAS) -> str:
    """Return the attributes of the element in which an action's result appears."""
    action = find_action(catalog, action_id)
    if not is_visible(catalog, action):
        return ""
    attributes = {"content": "primary", "id": action.id}
    return _attributes({"data-awas": {"result": action.id}, "data-ai": attributes, "tool": {}}, styles)


def is_visible(catalog: Catalog, action: Action) -> bool:
    """Return True if pages may mention an action: everybody may call it, without an envelope."""
    return action.is_public and catalog.offers("plain", action)


def find_action(catalog: Catalog, action_id: str) -> Action:
    try:
        return catalog.action(action_id)
    except KeyError:
        names = ", ".join(action.id for action in catalog.actions)
        raise DeclarationError("template", f'there is no action "{action_id}". There are: {names}.') from None


def _attributes(names: Mapping[Style, Mapping[str, object]], styles: Iterable[Style]) -> str:
    written: list[str] = []
    for style in styles:
        for name, value in names[style].items():
            if isinstance(value, (str, int, float)):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                joined = style + name if style == "tool" else f"{style}-{name}"
                written.append(f'{joined}="{escape(text)}"')
    return " ".join(written)

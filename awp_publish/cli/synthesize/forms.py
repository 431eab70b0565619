"""Forms as actions, with only what their markup says."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urljoin, urlsplit

from awp_publish.browsing.markup import Control, kind_of
from awp_publish.cli.synthesize.observed import MAX_TEXT, Seen, escaped, id_of, is_here, short
from awp_publish.cli.synthesize.text import below, text_of
from awp_publish.model import Action, ActionType, JsonObject, Location, Parameter, Target
from awp_publish.pages.input_types import BUTTONS
from awp_publish.pages.tree import Node

OF_FORM: Final = 0.7
OF_BOUND_FORM: Final = 0.4
"""Confidence in an action from a form that was never sent, and from one with a token of its page."""

_WITHOUT_VALUE: Final = frozenset({"fieldset", "object", "output"})

_TOKEN: Final = re.compile(r"csrf|xsrf|token|nonce|authenticity|captcha|__viewstate|__eventvalidation", re.IGNORECASE)

_TYPES: Final[Mapping[str, JsonObject]] = {
    "number": {"type": "number"},
    "range": {"type": "number"},
    "email": {"type": "string", "format": "email"},
    "url": {"type": "string", "format": "uri"},
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "format": "time"},
    "password": {"type": "string", "format": "password", "writeOnly": True},
    "file": {"type": "string", "contentEncoding": "base64"},
}

_SEARCHING: Final = frozenset(("q", "s", "query", "search", "keyword", "keywords", "term"))


def read_form(
    form: Node, controls: Sequence[Control], labels: Mapping[str | None, str], url: str, base: str, title: str
) -> Seen | str:
    """Return the action of a form, which owns these controls, or why there is none."""
    attributes = form.attributes
    try:
        there = urljoin(base, attributes["action"].strip()) if attributes.get("action", "").strip() else url
        parts = urlsplit(there)
    except ValueError:
        return "a form has no usable address"
    method = attributes.get("method", "get").strip().upper()
    if method not in ("GET", "POST", ""):
        return f"a form with the method {short(method).lower()} sends nothing"
    method = method or "GET"
    if not is_here(there, url):
        return f"a form sends to another site: {parts.netloc[:80]}"
    fields = _Fields.read(controls, labels)
    if "search" in attributes.get("role", "").lower() or attributes.get("action", "").rstrip("/").endswith("search"):
        kind_of: ActionType = "search"
    else:
        searches = any(name.lower() in _SEARCHING for name in fields.properties)
        kind_of = "form_submission" if method == "POST" else "search" if searches else "filter"
    legends = (text_of(node) for node in below(form) if node.tag in ("legend", "h1", "h2", "h3"))
    caption = (
        attributes.get("aria-label")
        or next((button for button in fields.buttons if button.strip()), "")
        or next(legends, "")
    )
    label = short(caption) or (kind_of.replace("_", " ").capitalize())
    where = f' on the page "{title}"' if title else ""
    path = parts.path or "/"
    content_type = None
    if method == "POST":
        content_type = "multipart/form-data" if fields.has_file else "application/x-www-form-urlencoded"
    place: Location = "query" if method == "GET" else "form"
    parameters = tuple(
        Parameter(name, "file" if schema.get("contentEncoding") == "base64" else place, name)
        for name, schema in fields.properties.items()
    )
    action = Action(
        id=id_of(label if label.isascii() else path, path),
        agent_id="",
        name=label,
        description=f"{label}: the form{where}.",
        inputs=fields.schema,
        outputs={},
        target=Target(method, escaped(path), parameters, content_type),
        type=kind_of,
        effect="read" if method == "GET" else "write",
        selector=f"#{attributes['id']}" if re.fullmatch(r"[A-Za-z][\w-]*", attributes.get("id", "")) else None,
        page=urlsplit(url).path or "/",
    )
    return Seen(action, url, OF_BOUND_FORM if fields.bound else OF_FORM, "form", fields.bound)


@dataclass(frozen=True, slots=True)
class _Fields:
    """The controls of a form: schemas of its fields, tokens that only its page has, and the labels of its buttons."""

    properties: dict[str, dict[str, object]]
    required: list[str]
    bound: tuple[str, ...]
    buttons: list[str]
    has_file: bool

    @property
    def schema(self) -> JsonObject:
        required = {"required": self.required} if self.required else {}
        return {"type": "object", "properties": self.properties, **required}

    @classmethod
    def read(cls, controls: Sequence[Control], labels: Mapping[str | None, str]) -> Self:
        properties: dict[str, dict[str, object]] = {}
        required: list[str] = []
        bound: list[str] = []
        buttons: list[str] = []
        has_file = False
        for control in controls:
            attributes, name, kind = control.node.attributes, control.name, kind_of(control.node)
            if kind in BUTTONS:
                if kind in ("submit", "image"):
                    is_input = control.node.tag == "input"
                    buttons.append(attributes.get("value", "") if is_input else text_of(control.node))
                continue
            if not name or control.disabled or kind in _WITHOUT_VALUE:
                continue
            if kind == "hidden":
                if _TOKEN.search(name):
                    bound.append(name)
                    continue
            elif "required" in attributes and name not in required:
                required.append(name)
            schema = _schema_of(control.node, kind, labels)
            has_file = has_file or kind == "file"
            before = properties.get(name)
            if before is not None and kind == "radio":
                values = before.setdefault("enum", [])
                if isinstance(values, list):
                    values.append(attributes.get("value", "on"))
            elif before is None:
                properties[name] = schema
        return cls(properties, required, tuple(dict.fromkeys(bound)), buttons, has_file)


def _schema_of(control: Node, kind: str, labels: Mapping[str | None, str]) -> dict[str, object]:
    """Return the schema of one control, with only what its markup says."""
    attributes = control.attributes
    above, wrapping = control.parent, ""
    while above is not None and above.tag not in ("form", "body", "label"):
        above = above.parent
    if above is not None and above.tag == "label":
        wrapping = text_of(above)
    label = (
        labels.get(attributes.get("id")) or wrapping or attributes.get("aria-label") or attributes.get("placeholder")
    )
    schema: dict[str, object] = dict(_TYPES.get(kind, {"type": "string"}))
    if control.tag == "select":
        options = [node for node in below(control) if node.tag == "option" and "disabled" not in node.attributes]
        values = [option.attributes.get("value", text_of(option)) for option in options]
        chosen = list(dict.fromkeys(value for value in values if value))[:200]
        schema = {"type": "string", **({"enum": chosen} if chosen else {})}
        if "multiple" in attributes:
            schema = {"type": "array", "items": schema}
        words = [(value, text_of(option)) for value, option in zip(values, options, strict=True) if value]
        meanings = ", ".join(f"{value}: {text}" for value, text in words[:20] if text and text != value)
        label = f"{label or ''}{' (' if label else ''}{meanings}{')' if label else ''}" if meanings else label
    elif kind in ("radio", "checkbox"):
        schema = {"type": "string", "enum": [attributes.get("value", "on")]}
    elif kind == "hidden" and attributes.get("value"):
        schema["default"] = attributes["value"][:MAX_TEXT]
    for name, keyword in (("minlength", "minLength"), ("maxlength", "maxLength")):
        if schema.get("type") == "string" and attributes.get(name, "").isdecimal() and len(attributes[name]) < 10:
            schema[keyword] = int(attributes[name])
    for name, keyword in (("min", "minimum"), ("max", "maximum")):
        if schema.get("type") == "number" and re.fullmatch(r"-?\d{1,15}(?:\.\d{1,9})?", attributes.get(name, "")):
            number = float(attributes[name])
            schema[keyword] = int(number) if number.is_integer() else number
    if label and short(label):
        schema["description"] = short(label)
    return schema

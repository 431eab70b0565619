"""The form of an action: its fields, and the input that they make."""

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast
from urllib.parse import urlencode

import orjson

from awp_publish.http.field_reader import FieldReader
from awp_publish.model import Action, Catalog, JsonObject
from awp_publish.plugins.overview.html import Html, inner, tag
from awp_publish.plugins.overview.markup import fill, pretty
from awp_publish.plugins.overview.words import kind_words, limits_of
from awp_publish.schema import is_secret
from awp_publish.schema.media import BINARY
from awp_publish.schema.reading import branches, kinds, members, object_facts, options, resolved
from awp_publish.schema.redaction import HIDDEN


class BesideField(NamedTuple):
    """A field of the form besides the inputs: its name, label, hint, and HTML input type."""

    name: str
    label: str
    hint: str
    kind: str = "text"


PREFIX: Final = "awp-"
"""The prefix of fields that are not inputs."""

CHOSEN_DOOR: Final = "awp-door"

BESIDE: Final = (
    BesideField("awp-key", "Idempotency key", "The same key with the same input returns the first answer."),
    BesideField("awp-confirmation", "Confirmation", "The token of a refusal whose summary a person has agreed to."),
    BesideField(
        "awp-receipts", "Receipts", "Receipts of the earlier calls that the action requires, separated by commas."
    ),
    BesideField("awp-session", "Session", "The AWP-Session that an earlier answer returned."),
    BesideField(
        "awp-authorization", "Authorization", 'A header such as "Bearer ...". It is sent but never shown.', "password"
    ),
)
_FORMATS: Final = {"date": "date", "email": "email", "uri": "url", "password": "password", "time": "time"}
LONG_TEXT: Final = 500
"""Characters above which a text gets a multi-line field."""

MAX_SHOWN_FILE: Final = 1000
"""Maximum characters of base64 on a page; of a larger file, only its size is displayed."""

CUT: Final = "(not shown:"


def input_field(name: str, schema: object, root: JsonObject, required: bool, value: str) -> Html:
    """Return the field for one input, with its label, type, limits and description."""
    facts, ident = resolved(schema, root), f"in-{name}"
    types, values = kinds(facts, root), options(facts, root)
    limits, typed, current_file = limits_of(facts), kind_words(schema, root), None
    common = {"name": name, "id": ident, "aria_describedby": f"{ident}-hint"}
    if (media_type := file_type(schema, root)) is not None:
        typed, limits = "files" if "array" in types else "a file", []
        if value:  # pages cannot preset a file field, so a hidden field keeps the file until another one is chosen
            current_file = tag("input", type="hidden", name=name, value=value)
            typed += f"; the current one, {size_words(value)}, is sent until you choose another"
        accept = media_type if media_type != BINARY else None
        many, described = "array" in types, f"{ident}-hint"
        field = tag("input", type="file", name=name, id=ident, multiple=many, accept=accept, aria_describedby=described)
    elif types == ["boolean"] or (values and all(isinstance(value, (str, int, float)) for value in values)):
        texts = [json.dumps(value) if isinstance(value, bool) else str(value) for value in values] or ["true", "false"]
        listed = texts if not value or value in texts else [*texts, value]
        choices = (tag("option", text, value=text, selected=text == value) for text in listed)
        field = tag("select", tag("option", "(left out)", value=""), choices, **common)
    else:
        is_list, is_object = "array" in types, "object" in types or not types
        items = kind_words(facts["items"], root) if is_list and "items" in facts else ""
        if is_list:
            typed += ", one in each line"
        elif is_object:
            typed += ", as JSON"
        long = int(cast(int, facts.get("maxLength", 0)) or 0) > LONG_TEXT or len(value) > LONG_TEXT or "\n" in value
        if is_list or is_object or long or name in ("text", "body", "message") or items == "object":
            field = tag("textarea", Html("\n") + inner(value), rows=4, **common)
        else:
            kind = "password" if is_secret(facts) else _FORMATS.get(str(facts.get("format")), "text")
            mode = "numeric" if types == ["integer"] else "decimal" if "number" in types else None
            placeholder = {"placeholder": str(facts["default"])} if "default" in facts else {}
            field = tag("input", type=kind, value=value, inputmode=mode, autocomplete="off", **common, **placeholder)
    hints = (str(facts.get("description", "")).rstrip("."), ", ".join([typed, *limits]))
    hint = " ".join(f"{hint[0].upper()}{hint[1:]}." for hint in hints if hint)
    needed = " required" if required else ""
    return fill("field", ident=ident, label=name, needed=needed, kept=current_file, field=field, hint=hint)


def file_type(schema: object, root: JsonObject) -> str | None:
    """Return the media type of an input that takes a file or a list of files, None for any other input."""
    facts = resolved(schema, root)
    for part in (facts, *(resolved(branch, root) for branch in branches(facts))):
        inner = resolved(part.get("items"), root) if "items" in part else part
        if inner.get("contentEncoding") == "base64":
            return str(inner.get("contentMediaType", BINARY))
    return None


def size_words(content: str) -> str:
    """Describe the total size of files, given as lines of base64."""
    return f"{sum(len(line.strip()) * 3 // 4 - line.count('=') for line in content.splitlines()):,} bytes"


def shortened(action: Action, inputs: Mapping[str, object]) -> dict[str, object]:
    """Return an input for display, with large files replaced by their sizes."""
    short = dict(inputs)
    for name, part in members(object_facts(action.inputs, action.inputs)).items():
        if name in short and file_type(part, action.inputs) is not None:
            content = shown_value(short[name])
            if len(content) > MAX_SHOWN_FILE:
                short[name] = f"{CUT} {size_words(content)} as base64)"
    return short


def credential_headers(catalog: Catalog, action: Action) -> list[str]:
    """Return the headers, other than Authorization, from which the site or the action's route reads credentials."""
    site = catalog.site.authentication.api_key_header if catalog.site.authentication is not None else None
    names = [site or "", *(credential.name for credential in action.route_credentials if credential.place == "header")]
    return list({name.lower(): name for name in names if name and name.lower() != "authorization"}.values())


def read_input(action: Action, pairs: Sequence[tuple[str, str | bytes]]) -> dict[str, object]:
    """Return the input from the fields of the form or of a deep link. Empty fields are left out."""
    facts = object_facts(action.inputs, action.inputs)
    chosen = {name for name, value in pairs if isinstance(value, bytes) and value}
    fields: list[tuple[str, str | bytes]] = []
    for name, value in pairs:
        if isinstance(value, bytes):
            fields += [(name, value)] if value else []
            continue
        if name.startswith(PREFIX) or not value.strip() or name in chosen:
            continue
        types = kinds(resolved(members(facts).get(name), action.inputs), action.inputs)
        if "array" not in types:
            fields.append((name, value.replace("\r\n", "\n")))
            continue
        try:
            listed = orjson.loads(value)
        except orjson.JSONDecodeError:
            listed = None
        if isinstance(listed, list):
            fields += [(name, item if isinstance(item, str) else json.dumps(item)) for item in listed]
        else:
            fields += [(name, line) for line in value.splitlines() if line.strip()]
    inputs = FieldReader(action.inputs).read(fields)
    # In the order of the schema, because the text of a confirmation may depend on it.
    declared = {name: inputs[name] for name in members(facts) if name in inputs}
    return declared | inputs


def shown_value(value: object) -> str:
    """Return the text of an input's value in its form field."""
    if isinstance(value, list):
        is_plain = all(isinstance(item, (str, int, float)) and "\n" not in str(item) for item in value)
        return "\n".join(map(shown_value, value)) if is_plain else pretty(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def public_part(inputs: Mapping[str, object]) -> dict[str, object]:
    """Return an input without the members that are not displayed: secrets and large files."""
    written = {name: orjson.dumps(value).decode() for name, value in inputs.items()}
    return {name: value for name, value in inputs.items() if HIDDEN not in written[name] and CUT not in written[name]}


def fields_of_form(inputs: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return an input as fields of the form."""
    return [(name, shown_value(value)) for name, value in inputs.items()]


def link_to(here: str, inputs: Mapping[str, object], controls: Mapping[str, str] | None = None) -> str:
    """Return the address of the form with these values."""
    query = urlencode([*fields_of_form(inputs), *(controls or {}).items()])
    return f"{here}?{query}" if query else here

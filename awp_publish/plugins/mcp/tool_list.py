"""Actions as entries of `tools/list`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from awp_publish.model import Action, Catalog, JsonObject
from awp_publish.plugins.mcp.dialect import CONFIRMATION, META, RECEIPTS, SESSION
from awp_publish.schema import compile_schema, media
from awp_publish.schema.embedding import answer_schema, embedded
from awp_publish.schema.reading import DIALECT

LIST_TTL: Final = 300_000
"""Milliseconds for which a client may cache a list, which changes when the site is restarted."""

LISTED: Final = {"ttlMs": LIST_TTL, "cacheScope": "public", "resultType": "complete"}
"""Members of the answer with a list that is the same for everybody."""


STRUCTURED_SINCE: Final = "2025-06-18"
"""The revision that introduced `structuredContent`."""


@dataclass(frozen=True, slots=True)
class Tool:
    """An action as one generation of the protocol lists it. If `is_wrapped`, answers are `{"result": ...}`.

    If `is_plain`, an answer is its own structured content, and never a task. `suits` says whether an answer matches the
    `outputSchema`, None if all do. `own` are the arguments beside the action's input, which correspond to the envelope
    of other doors.
    """

    action: Action
    entry: Mapping[str, object]
    is_wrapped: bool
    is_plain: bool
    suits: Callable[[object], bool] | None = None
    own: frozenset[str] = frozenset()

    def is_object(self, output: object) -> bool:
        """Return True if an output is an object that clients accept as it is."""
        return type(output) is dict and (self.suits is None or self.suits(output))


def is_known_by_token(catalog: Catalog) -> bool:
    """Return True if callers are known by nothing but tokens of sign-in, each of which has a session of its own."""
    authentication = catalog.site.authentication
    is_own = (
        authentication is not None
        and authentication.is_own_server
        and {*authentication.methods} <= {"oauth", "session"}
    )
    return is_own and catalog.sign_in is None


def takes_session(catalog: Catalog, action: Action) -> bool:
    """Return True if anybody whom an action serves may have a session beside their credentials."""
    return not (action.auth_required and is_known_by_token(catalog))


def session_argument(catalog: Catalog) -> JsonObject:
    """Return the argument with a session."""
    use = "if you call without a token" if is_known_by_token(catalog) else "which keeps you signed in"
    return {
        "type": "string",
        "description": f"The session that an earlier answer returned, {use}. Leave it out at first.",
    }


def _schemes_of(action: Action) -> list[dict[str, object]]:
    """Return with which tokens an action may be called, as ChatGPT and others read it before they sign a person in."""
    if not action.auth_required:
        return [{"type": "noauth"}]
    return [{"type": "oauth2", "scopes": list(action.scopes)}]


_VALUES: Final = frozenset({"const", "default", "enum", "examples"})


def _loosened(schema: object, *, is_enforced: bool, is_member: bool = False) -> Any:
    """Return a schema that clients do not hold against answers: without formats of texts, and where outputs are derived
    with null for numbers inside.

    Frameworks call a time without a zone `date-time`, which it is not (RFC 3339), an empty text an e-mail address, and
    write NaN as null.
    """
    if isinstance(schema, Mapping):
        loosened = {
            word: value if word in _VALUES else _loosened(value, is_enforced=is_enforced, is_member=True)
            for word, value in schema.items()
            if word != "format" or not isinstance(value, str)
        }
        if is_member and not is_enforced and schema.get("type") == "number":
            loosened["type"] = ["number", "null"]
        return loosened
    if isinstance(schema, list):
        return [_loosened(part, is_enforced=is_enforced, is_member=True) for part in schema]
    return schema


def make_tools(catalog: Catalog, *, only_objects: bool, has_sessions: bool) -> Mapping[str, Tool]:
    """Make the tools of a catalog, by name. `only_objects` is for the revisions up to 2025-11-25."""
    tools, authentication = {}, catalog.site.authentication
    signs_in = authentication is not None and authentication.is_own_server
    for action in catalog.actions:
        answered, is_wrapped = _loosened(answer_schema(action), is_enforced=action.enforces_outputs), False
        if media.declared_type(answered):
            answered = {}  # images, sounds and files are content of their own, not structured
        properties, own = cast(JsonObject, action.inputs.get("properties", {})), dict[str, JsonObject]()
        if action.needs_confirmation and CONFIRMATION not in properties:
            own[CONFIRMATION] = {
                "type": "string",
                "description": "confirmation.token of the refused call, once your user has agreed to its summary.",
            }
        if action.requires and RECEIPTS not in properties:
            required = ", ".join(action.requires)
            own[RECEIPTS] = {
                "type": "array",
                "items": {"type": "string"},
                "description": f"The receipts in the answers of {required}, if you are not signed in.",
            }
        if has_sessions and SESSION not in properties and takes_session(catalog, action):
            own[SESSION] = session_argument(catalog)
        inputs = {**action.inputs, "properties": {**properties, **own}} if own else action.inputs
        entry: dict[str, object] = {
            "name": action.id,
            "title": action.name,
            "description": action.description,
            "inputSchema": {"type": "object", **inputs},
            "annotations": {  # all of them: the defaults are destructive and open to the world
                "title": action.name,
                "readOnlyHint": action.intent == "read",
                "destructiveHint": action.side_effect == "destructive",
                "idempotentHint": action.is_repeatable,
                "openWorldHint": False,
            },
        }
        described: dict[str, object] = {f"{META}tags": list(action.tags)} if action.tags else {}
        if signs_in:
            described["securitySchemes"] = _schemes_of(action)
        if described:
            entry["_meta"] = described
        is_object = answered.get("type") == "object"
        if action.outputs_vary:
            answered = {}  # clients refuse all answers that do not match
        suits = compile_schema(answered).is_valid if answered and not action.enforces_outputs else None
        if only_objects:
            is_wrapped = not is_object
        elif answered:
            is_wrapped = compile_schema(answered).is_valid(None)
        if answered and is_wrapped:
            result, definitions = embedded(answered, f"{action.id}_result")
            dialect = {"$schema": answered["$schema"]} if answered.get("$schema", DIALECT) != DIALECT else {}
            wrapper: JsonObject = {"type": "object", "properties": {"result": result}, "required": ["result"]}
            answered = {**dialect, **wrapper, **({"$defs": definitions} if definitions else {})}
        if answered:
            entry["outputSchema"] = answered
        is_plain = not (is_wrapped or action.is_background)
        tools[action.id] = Tool(action, entry, is_wrapped, is_plain, suits, frozenset(own))
    return tools

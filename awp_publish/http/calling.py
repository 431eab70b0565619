"""Calls made of HTTP requests to a door, with the caller's credentials on them.

A door reads its envelope and names the action; everything else is the same at every door. A call of which nobody has
said how its credentials are read is a call by nobody.
"""

from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol

from awp_publish.calls.call import KEY, RECEIPT, SESSION_HEADER, Call, Members, read_key
from awp_publish.calls.invoke import Invoker
from awp_publish.http.admission import Admission
from awp_publish.http.body import read_body
from awp_publish.http.cors import Cors
from awp_publish.http.credentials import read_credentials
from awp_publish.http.endpoint import Endpoint
from awp_publish.http.exchange import Fields, Scope
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import DoorRequest
from awp_publish.http.strict_json import is_json, json_kind, parse_json
from awp_publish.model import Action, JsonObject
from awp_publish.plugin import Context
from awp_publish.problems import (
    EnvelopeNotAnObject,
    InvalidEnvelope,
    InvalidIdempotencyKey,
    InvalidInput,
    Problem,
    UnknownAction,
    UnsupportedMediaType,
    Violation,
)

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


_INPUT_NAMES: Final = ("input", "inputs", "args", "arguments", "params", "parameters")
"""Names of an action's input at our doors and in other protocols."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words of a door for what is in its calls.

    `input` is its name for the input of an action. `places` say where it expects what callers put among the inputs by
    mistake. `recoveries` replace recovery texts, by code.
    """

    input: str = "input"
    places: Mapping[str, str] = field(default_factory=dict)
    recoveries: Mapping[str, str] = field(default_factory=dict)

    def misnamed(self, envelope: Container[str]) -> str | None:
        """Return the name that an envelope has for the input instead of the door's own, None if it has none."""
        return next((name for name in _INPUT_NAMES if name != self.input and name in envelope), None)


class Source(Protocol):
    """The request of a call."""

    @property
    def scope(self) -> Scope: ...
    @property
    def fields(self) -> Fields: ...
    @property
    def request_id(self) -> str: ...
    @property
    def disconnected(self) -> Callable[[], Awaitable[None]]: ...


class Calls:
    """Makes the calls of one door."""

    def __init__(self, door: str, invoker: Invoker, admission: Admission, dialect: Dialect) -> None:
        self.door = door
        self._places = dialect.places
        self._guarded = invoker.guarded
        self._admission = admission
        self._small = admission.smallest_body_bytes

    def make(
        self,
        action: Action,
        inputs: JsonObject,
        source: Source,
        members: Mapping[str, object] = _NONE,
        *,
        size: int = 0,
        unknown: Callable[[], Problem] | None = None,
        objection: Problem | None = None,
    ) -> Call:
        """Return the call that a request makes of an action.

        `members` accompany the input in the door's own envelope: key, confirmation, receipts, session. `size` is that
        of the request's body, in bytes. `unknown` makes the door's problem for an unknown action, `objection` is what
        is wrong with the request so far. Both this and what is found here are raised at once only for public actions;
        for others the gates raise it once the caller may know of the action.
        """
        call = Call(action, inputs, source.request_id, self.door, source.scope, source.disconnected)
        call.places = self._places
        is_guarded = action.id in self._guarded
        if is_guarded or size > self._small or objection is not None:
            if unknown is not None:
                call.unknown = unknown
            call.credentials = partial(read_credentials, source.scope, source.fields, self._admission.trusted_proxies)
            try:
                if size > self._small:
                    self._admission.check_size(action, size)
                if is_guarded:
                    call.members = read_members(action, members, source.fields)
            except Problem as problem:
                objection = objection or problem
            if not action.is_public:  # in as many steps with an objection as without one
                call.objection = objection
            elif objection is not None:
                raise objection
        return call


class CallEndpoint(Endpoint):
    """Base class of a door at which actions are called: `handle` reads its envelope, and `call` does the rest.

    `context` is the address of the site at which the door is opened.
    """

    request_type = DoorRequest
    dialect: ClassVar[Dialect] = Dialect()

    def __init__(self, door: str, context: Context, renderer: ProblemRenderer | None = None) -> None:
        admission: Admission = context.admission
        renderer = renderer or ProblemRenderer(context.catalog, self.dialect.recoveries)
        super().__init__(renderer, Cors(admission.allow_origins), admission.own_origins)
        self.door = door
        self._admission = admission
        self._invoker: Invoker = context.invoker
        self._calls = Calls(door, context.invoker, admission, self.dialect)
        self._catalog = context.catalog

    @cached_property
    def actions(self) -> Mapping[str, Action]:
        """The actions that are offered here, by id. Not all of them are public."""
        return {action.id: action for action in self._catalog.actions}

    async def read_object(self, request: DoorRequest) -> tuple[dict[str, Any], int]:
        """Return the JSON object in a request's body, and the body's size in bytes.

        Raises UnsupportedMediaType, BodyTooLarge, NotJson, EnvelopeNotAnObject.
        """
        fields = request.fields
        if fields.get(b"content-type") != b"application/json" or b"content-encoding" in fields:
            require_json(fields)
        body = await read_body(request.scope, fields, request.receive, self._admission.max_body_bytes)
        sent = parse_json(body)
        if not isinstance(sent, dict):
            raise EnvelopeNotAnObject(f"The body is {json_kind(sent)}, not an object.")
        return sent, len(body)

    async def call(
        self,
        request: DoorRequest,
        action_id: object,
        inputs: object,
        members: Mapping[str, object] = _NONE,
        *,
        size: int = 0,
    ) -> None:
        """Call an action through all of its gates, and answer the request.

        `members` are what may accompany the input: `idempotency_key`, `confirmation`, `receipts`, `session`; the
        headers of the same meaning are read as well. `size` is that of the body in bytes. Raises UnknownAction,
        InvalidInput and the problems of the gates.
        """
        action = self.actions.get(action_id) if isinstance(action_id, str) else None
        if action is None:
            raise self.unknown(action_id)
        if not isinstance(inputs, dict):
            raise not_an_object(inputs)
        unknown = partial(self.unknown, action_id)
        request.call = self._calls.make(action, inputs, request, members, size=size, unknown=unknown)
        await self._invoker.run(request.call, request.deliver)

    def unknown(self, action_id: object) -> Problem:
        """Return the problem for an unknown action, and for one that the caller may not know of."""
        named = f'"{action_id[:100]}"' if isinstance(action_id, str) else f"whose name is {json_kind(action_id)}"
        return UnknownAction(f"This site has no action {named}.")

    def note_refusal(self, request: DoorRequest, problem: Problem) -> None:
        self._invoker.note_refusal(self.door, request.request_id, problem)


def require_json(fields: Fields, *further: bytes) -> None:
    """Raise UnsupportedMediaType unless a request says that its body is JSON, or another of these types, as it is."""
    if not is_json(content_type := fields.get(b"content-type", b""), *further):
        raise UnsupportedMediaType(
            f"The body must be application/json in UTF-8; the request has {describe_type(content_type)}."
        )
    refuse_encoded(fields)


def refuse_encoded(fields: Fields) -> None:
    """Raise UnsupportedMediaType for a body with a content coding (RFC 9110 section 12.5.3)."""
    if fields.get(b"content-encoding", b"identity") != b"identity":
        raise UnsupportedMediaType("The body must not be content-encoded.", headers=(("Accept-Encoding", "identity"),))


def describe_type(content_type: bytes) -> str:
    """Return the Content-Type of a request as a message quotes it."""
    return f'"{content_type[:100].decode("latin-1")}"' if content_type else "no Content-Type"


def not_an_object(inputs: object) -> InvalidInput:
    detail = f"must be an object, not {json_kind(inputs)}"
    return InvalidInput(f"The input {detail}.", errors=[Violation("", detail)])


CONFIRMATION: Final = (b"awp-confirmation", "confirmation")
RECEIPTS: Final = (RECEIPT, "receipts")
SESSION: Final = (SESSION_HEADER, "session")
"""Pairs of a header and an envelope member; a caller may use either."""


def read_members(action: Action, members: Mapping[str, object], fields: Fields) -> Members:
    """Return key, confirmation, receipts and session of a call, from headers or envelope. Raises a Problem."""
    header = fields.get(b"idempotency-key")
    key = header.decode("latin-1") if header is not None else None
    if _ENVELOPE.issuperset(members) and _ACCOMPANYING.isdisjoint(fields):  # as at most calls
        return Members(fields.get(b"authorization"), key)
    declared = action.idempotency
    name = declared.key_field if declared is not None else KEY
    name = name if name in members else KEY
    if (member := _text(members, name)) is not None:
        if key is not None and read_key(member) != read_key(key):
            raise InvalidIdempotencyKey(f"The header Idempotency-Key and the envelope's member {name} differ.")
        key = member if key is None else key

    listed = members.get(RECEIPTS[1])
    if listed is None:
        listed = []
    elif not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise InvalidEnvelope(f"{RECEIPTS[1]}: must be a list of strings.")
    sent = [part.strip() for part in fields.get(RECEIPTS[0], b"").decode("latin-1").split(",")]
    return Members(
        fields.get(b"authorization"),
        key,
        _either(CONFIRMATION, members, fields),
        tuple(receipt for receipt in (*sent, *listed) if receipt),
        _either(SESSION, members, fields),
    )


_ACCOMPANYING: Final = frozenset({CONFIRMATION[0], RECEIPTS[0], SESSION[0]})

_ENVELOPE: Final = frozenset({"agent", "operation", "input"})
"""The members of an envelope that `read_members` does not read."""


def _either(places: tuple[bytes, str], members: Mapping[str, object], fields: Fields) -> str | None:
    """Return what a call has in a header or in a member; None if it is empty."""
    header, name = places
    member, sent = _text(members, name), fields.get(header, b"").decode("latin-1").strip()
    if member and sent and member != sent:
        raise InvalidEnvelope(f"The header AWP-{name.title()} and the member {name} differ.")
    return sent or member or None


def _text(members: Mapping[str, object], name: str) -> str | None:
    value = members.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidEnvelope(f"{name}: must be a string, not {json_kind(value)}.")
    return value

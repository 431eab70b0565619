"""The plain door: each action at an address of its own, with its own method, and without an envelope.

AWAS and agent.json name this address for every action whose own route does not behave as they promise
(`Catalog.own_route`). A client that knows only one of these documents sends the inputs in the query, as a form or as
the members of a JSON object, and gets JSON or problem+json. All gates apply, as at every other door.
"""

from collections.abc import Callable
from difflib import get_close_matches
from functools import cached_property, partial
from typing import ClassVar, Final

from awp_publish.http.body import read_body
from awp_publish.http.calling import CallEndpoint, Dialect, describe_type, refuse_encoded
from awp_publish.http.exchange import Fields, Receive, Scope, Send
from awp_publish.http.field_reader import FieldReader
from awp_publish.http.forms import is_form, read_form, read_query
from awp_publish.http.origins import is_cross_site, refuse_foreign_pages
from awp_publish.http.problem_details import PLAIN_RECOVERIES, ProblemRenderer
from awp_publish.http.request import DoorRequest, PlainRequest
from awp_publish.http.strict_json import is_json, parse_json
from awp_publish.model import Action
from awp_publish.plugin import AnswerRest, Context, Endpoints
from awp_publish.problems import (
    CrossSiteCookies,
    InvalidInput,
    MethodNotAllowed,
    Problem,
    UnknownAction,
    UnsupportedMediaType,
    Violation,
)
from awp_publish.schema import pointer_to
from awp_publish.schema.reading import kind_of, members, resolved

DOOR: Final = "plain"

BROWSER_SCHEMES: Final = (b"basic", b"digest", b"negotiate", b"ntlm")
"""Authorization schemes (RFC 9110 section 11) whose credentials browsers send automatically, even for other sites."""

MAX_COMPARED: Final = 1000
"""Maximum action ids that an unknown one is compared with for suggestions."""

DIALECT: Final = Dialect(
    places={
        "input": "send its members directly, in the query, a form or the body",
        "idempotency_key": "send it in the header Idempotency-Key",
        "confirmation": "send it in the header AWP-Confirmation",
        "receipts": "send them in the header AWP-Receipt, separated by commas",
        "session": "send it in the header AWP-Session",
    },
    recoveries=PLAIN_RECOVERIES,
)


def open_plain(context: Context) -> Endpoints:
    """Open the door at one address of the site: an endpoint for each action, and one for all other ids.

    For who may not know of an action for a limited audience, its endpoint takes the same steps as that of the action
    which nobody may know of.
    """
    catalog, absent = context.catalog, context.invoker.absent
    renderer = ProblemRenderer(catalog, DIALECT.recoveries)
    public_ids = [action.id for action in catalog.public.actions[:MAX_COMPARED]]

    def unknown(action_id: str) -> Problem:
        near = get_close_matches(action_id[:100], public_ids, n=3)
        suggestion = f" Did you mean {' or '.join(near)}?" if near else ""
        return UnknownAction(f'This site has no action "{action_id[:100]}".{suggestion}')

    make = partial(PlainDoor, context=context, renderer=renderer, unknown=unknown)
    exact = {catalog.plain_path_of(action): make(action) for action in catalog.actions if action.is_public}
    if absent is None:
        rest: AnswerRest = UnknownActionDoor(context, renderer, unknown)
    else:
        hidden = {action.id: make(action) for action in catalog.actions if not action.is_public}
        of_nobody = make(absent)

        async def rest(scope: Scope, receive: Receive, send: Send, named: str) -> None:
            await hidden.get(named, of_nobody).answer(named, scope, receive, send)

    return Endpoints(exact=exact, below={f"{catalog.paths.actions}/": rest})


class UnknownActionDoor(CallEndpoint):
    """Answers at the addresses of actions that a site does not have."""

    methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
    usage = "Actions are called with their own methods"

    def __init__(self, context: Context, renderer: ProblemRenderer, unknown: Callable[[str], Problem]) -> None:
        super().__init__(DOOR, context, renderer)
        self._unknown = unknown

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        """Raise the problem for an unknown action, with suggestions."""
        raise self._unknown(named or "")


class PlainDoor(CallEndpoint):
    """Answers calls of one action at its own address. `unknown` makes the problem for an unknown action from its id."""

    request_type = PlainRequest
    dialect: ClassVar[Dialect] = DIALECT

    def __init__(
        self, action: Action, context: Context, renderer: ProblemRenderer, unknown: Callable[[str], Problem]
    ) -> None:
        self._own_methods = "GET, HEAD, OPTIONS" if action.method == "GET" else f"{action.method}, OPTIONS"
        self._own_usage = f"Action {action.id} is called with {action.method}"
        self.methods = self._own_methods if action.is_public else UnknownActionDoor.methods
        self.usage = self._own_usage if action.is_public else UnknownActionDoor.usage
        super().__init__(DOOR, context, renderer)
        self._action = action
        self._unknown = unknown
        # Members that may accompany the inputs, unless the action itself has an input of that name.
        beside = {
            action.idempotency.key_field if action.idempotency is not None else "": action.idempotency,
            "confirmation": action.needs_confirmation,
            "receipts": action.requires,
        }
        self._beside = frozenset(name for name, is_used in beside.items() if is_used)
        if self._beside:
            self._beside -= members(resolved(action.inputs, action.inputs)).keys()

    @cached_property
    def _reader(self) -> FieldReader:
        """The reader of fields. Most actions of a large site are never called here."""
        return FieldReader(self._action.inputs, keeps_names=True)

    @staticmethod
    def refuse_foreign(fields: Fields, own_origins: frozenset[str]) -> None:
        """Refuse a request from another site's page if it has cookies or credentials that a browser adds itself."""
        refuse_foreign_pages(fields, own_origins)
        scheme = fields.get(b"authorization", b"").partition(b" ")[0].lower()
        if scheme in BROWSER_SCHEMES and is_cross_site(fields, own_origins):
            raise CrossSiteCookies(
                "The call has a browser's own credentials, but it comes from a page of another site."
            )

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        inputs: dict[str, object] = {}
        beside: dict[str, object] = {}
        objection: Problem | None = None
        method = request.scope["method"]
        try:
            inputs = await self._read(request)
            beside = {name: inputs.pop(name) for name in self._beside & inputs.keys()}
            if isinstance(receipts := beside.get("receipts"), str):
                beside["receipts"] = [receipt.strip() for receipt in receipts.split(",")]
            if not self._action.is_public:  # whatever its own method is, it takes the same steps as an unknown action
                detail = f"{self._own_usage}, not {method[:20]}."
                wrong = MethodNotAllowed(detail, headers=[("Allow", self._own_methods)])
                objection = wrong if method not in self._own_methods.split(", ") else None
        except Problem as problem:
            objection = problem
        unknown = partial(self._unknown, self._action.id if named is None else named)
        call = self._calls.make(self._action, inputs, request, beside, unknown=unknown, objection=objection)
        request.call = call
        call.on_part = request.take_part if isinstance(request, PlainRequest) else None
        await self._invoker.run(call, request.deliver)

    async def _read(self, request: DoorRequest) -> dict[str, object]:
        """Return the inputs of the query and the body. Raises a Problem."""
        fields, scope = request.fields, request.scope
        inputs = self._reader.read(read_query(scope["query_string"])) if scope["query_string"] else {}
        for credential in self._action.route_credentials:
            if credential.place == "query" and credential.name not in members(self._action.inputs):
                inputs.pop(credential.name, None)  # an API key
        body = await read_body(scope, fields, request.receive, self._admission.max_body_bytes)
        self._admission.check_size(self._action, len(body))
        if not body:
            return inputs
        refuse_encoded(fields)
        content_type = fields.get(b"content-type", b"")
        if is_json(content_type):
            sent = parse_json(body)
            if not isinstance(sent, dict):
                detail = f"must be an object of the inputs, not {kind_of(sent)}"
                raise InvalidInput(f"The body {detail}.", errors=[Violation("", detail)])
        elif is_form(content_type):
            if body.lstrip()[:1] == b"{":  # what curl -d sends without -H
                raise UnsupportedMediaType("The body is JSON, and Content-Type says that it is a form.")
            sent = self._reader.read(read_form(content_type, body))
        else:
            raise UnsupportedMediaType(
                "The body must be application/json in UTF-8, application/x-www-form-urlencoded or multipart/form-data; "
                f"the request has {describe_type(content_type)}."
            )
        if twice := sorted(inputs.keys() & sent.keys()):
            raise InvalidInput.of(
                [Violation(pointer_to([name]), "was sent in the query and in the body") for name in twice]
            )
        return inputs | sent

"""What the endpoints of sign-in share: parameters, and refusals as programs and people expect them."""

import logging
from base64 import b64decode
from functools import partial
from typing import Final, cast
from urllib.parse import parse_qsl, unquote_plus

from awp_publish.http.body import ClientDisconnect, read_body
from awp_publish.http.calling import refuse_encoded
from awp_publish.http.cors import Cors
from awp_publish.http.endpoint import Endpoint
from awp_publish.http.exchange import Reply
from awp_publish.http.origins import refuse_foreign_host
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.http.request import DoorRequest
from awp_publish.http.strict_json import is_json, parse_json
from awp_publish.plugins.sign_in.at import SignInAt
from awp_publish.plugins.sign_in.clients import KnownClient
from awp_publish.plugins.sign_in.errors import OAuthError, Shown
from awp_publish.plugins.sign_in.grants import digest_of
from awp_publish.problems import NotJson, Problem, StoreUnavailable, TemporarilyUnavailable
from awp_publish.stores.store import Add, Count, Look

MAX_BODY: Final = 16_384
MAX_PARAMETERS: Final = 60
"""Bytes of a body, and parameters in one."""

JWT_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
"""The type of assertion that clients may authenticate with (RFC 7523 section 2.2)."""

FORM: Final = b"application/x-www-form-urlencoded"

MAX_WRONG_SECRETS: Final = 20
WRONG_WINDOW: Final = 60.0
"""Wrong secrets or assertions of one client that an address may send within so many seconds.

With one more it is refused for as long, whatever it sends. The client itself has another address, so that nobody else
keeps it out.
"""


_TOO_MANY_WRONG: Final = OAuthError(
    "slow_down", "Too many wrong secrets or assertions of this client came from this address.", WRONG_WINDOW
)
_NOT_NOW: Final = OAuthError("temporarily_unavailable", "The site cannot answer at the moment. Try again.")
_LATER: Final = "The site cannot answer at the moment. Please try again in a minute."
_FAILED: Final = "sign-in failed (request_id=%s)"

logger: Final = logging.getLogger("awp_publish.calls")


class Parameters:
    """The parameters of a request. One that is empty counts as left out (RFC 6749 section 3.1)."""

    def __init__(self, text: str) -> None:
        """Read them. Raises OAuthError."""
        self._values: dict[str, list[str]] = {}
        try:
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_PARAMETERS, errors="replace")
        except ValueError as error:
            raise OAuthError("invalid_request", f"There are more than {MAX_PARAMETERS} parameters.") from error
        for name, value in pairs:
            if value:
                self._values.setdefault(name, []).append(value)

    def get(self, name: str) -> str | None:
        """Return a parameter, None without it. Raises OAuthError if it is there twice (RFC 6749 section 3.1)."""
        values = self._values.get(name, [])
        if len(values) > 1:
            raise OAuthError("invalid_request", f"The parameter {name} is given more than once.")
        return values[0] if values else None

    def need(self, name: str) -> str:
        """Return a parameter. Raises OAuthError without it."""
        value = self.get(name)
        if value is None:
            raise OAuthError("invalid_request", f"The parameter {name} is missing.")
        return value

    def all(self, name: str) -> list[str]:
        """Return all values of a parameter that may be there several times."""
        return self._values.get(name, [])


async def read_form(request: DoorRequest) -> Parameters:
    """Return the parameters in a request's body. Raises OAuthError, and a Problem for a body that is too large."""
    kind = request.fields.get(b"content-type", b"").split(b";")[0].strip().lower()
    if kind != FORM:
        raise OAuthError("invalid_request", f"The body must be {FORM.decode()}.")
    refuse_encoded(request.fields)
    body = await read_body(request.scope, request.fields, request.receive, MAX_BODY)
    return Parameters(body.decode("utf-8", "replace"))


async def read_json(request: DoorRequest) -> object:
    """Return the JSON in a request's body. Raises OAuthError, and a Problem for a body that is too large."""
    if not is_json(request.fields.get(b"content-type", b"")):
        raise OAuthError("invalid_client_metadata", "The body must be application/json.")
    refuse_encoded(request.fields)
    body = await read_body(request.scope, request.fields, request.receive, MAX_BODY)
    try:
        return parse_json(body)
    except NotJson as problem:
        raise OAuthError("invalid_client_metadata", problem.detail) from problem


class ProgramRequest(DoorRequest):
    """A request of a client, which may be a page of any origin."""

    __slots__ = ()

    async def answer_with(self, reply: Reply) -> None:
        """Answer the request with a reply, which the page may read."""
        headers = (*reply.headers, *self._cors, (b"x-request-id", self.request_id.encode()))
        await self.reply(Reply(reply.status, headers, reply.body))


class ProgramEndpoint(Endpoint):
    """An endpoint that clients call themselves: it reads no cookies, and answers pages of any origin."""

    methods = "POST, OPTIONS"
    usage = "This endpoint is called with POST"
    refuse_foreign = staticmethod(refuse_foreign_host)
    request_type = ProgramRequest

    def __init__(self, at: SignInAt) -> None:
        super().__init__(ProblemRenderer(at.catalog), Cors(("*",)), at.admission.own_origins)
        self.at = at

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        program = cast(ProgramRequest, request)
        try:
            await self.answer_program(program)
        except OAuthError as error:
            await program.answer_with(error.reply)
        except (ClientDisconnect, Problem) as error:
            if not isinstance(error, (StoreUnavailable, TemporarilyUnavailable)):
                raise
            await program.answer_with(_NOT_NOW.reply)
        except Exception:
            logger.exception(_FAILED, request.request_id)
            await program.answer_with(_NOT_NOW.reply)

    async def answer_program(self, request: ProgramRequest) -> None:
        """Answer a request. Raises OAuthError and StoreUnavailable."""
        raise NotImplementedError

    async def authenticate(self, request: DoorRequest, form: Parameters) -> KnownClient:
        """Return the client that sends a request (RFC 6749 section 2.3). Raises OAuthError."""
        name, secret, assertion = form.get("client_id"), form.get("client_secret"), form.get("client_assertion")
        header = request.fields.get(b"authorization")
        basic = _read_basic(header) if header is not None else None
        if header is not None and basic is None:
            raise OAuthError("invalid_client", "Authorization must be Basic, with the client's id and secret.")
        ways = sum(way is not None for way in (basic, secret, assertion))
        if ways > 1 or (basic is not None and name not in (None, basic[0])):
            raise OAuthError("invalid_request", "The client must authenticate in exactly one way.")
        if basic is not None:
            name, secret = basic
        if assertion is not None:
            if form.need("client_assertion_type") != JWT_ASSERTION:
                raise OAuthError("invalid_client", f"client_assertion_type must be {JWT_ASSERTION}.")
            name = name or self.at.clients.named_by(assertion)
        if name is None:
            raise OAuthError("invalid_client", "client_id is missing.")
        address = self.at.address_of(request)
        try:
            client = await self.at.clients.find(name, address if assertion is not None else None)
        except Shown as error:
            raise OAuthError(error.code, str(error)) from error
        if client is None:
            raise OAuthError("invalid_client", "The client is unknown. Register again.")
        if not client.is_confidential or (secret is None and assertion is None):
            await self.at.clients.check(client, secret, assertion, self.at.audiences)
            return client
        guesses = f"sign-in:wrong-secrets:{digest_of(f'{client.id} {address}')}"
        locked = Add(f"{guesses}:locked", b"1", WRONG_WINDOW)
        if (await self.at.store.run((Look(locked.key),))).seen[0] is not None:
            raise _TOO_MANY_WRONG
        try:
            await self.at.clients.check(client, secret, assertion, self.at.audiences)
        except OAuthError as error:
            if (await self.at.store.run((Count(guesses, MAX_WRONG_SECRETS, WRONG_WINDOW),))).failed is not None:
                await self.at.store.run((locked,))
                raise _TOO_MANY_WRONG from error
            raise
        return client


def _read_basic(header: bytes) -> tuple[str, str] | None:
    """Return the id and the secret of a client (RFC 6749 section 2.3.1: each is form-encoded)."""
    scheme, _, encoded = header.strip().partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        name, colon, secret = b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError:
        return None
    return (unquote_plus(name), unquote_plus(secret)) if colon else None


class PageEndpoint(Endpoint):
    """An endpoint to which a person's browser comes, from wherever it is sent. It shows what goes wrong."""

    methods = "GET, HEAD, POST, OPTIONS"
    usage = "This page is opened with GET"
    refuse_foreign = staticmethod(refuse_foreign_host)  # what forms send is checked by their tokens

    def __init__(self, at: SignInAt) -> None:
        super().__init__(ProblemRenderer(at.catalog), Cors(()), at.admission.own_origins)
        self.at = at

    async def handle(self, request: DoorRequest, named: str | None) -> None:
        message = partial(self.at.pages.message, request.scope)
        try:
            await self.answer_person(request)
        except Shown as refusal:
            reply = await message(refusal.title, refusal.detail, refusal.status, START_AGAIN, refusal.back)
            await request.reply(reply)
        except OAuthError as error:
            await request.reply(await message("This request cannot be answered", error.detail, 400, START_AGAIN))
        except StoreUnavailable:
            await request.reply(await message("Not now", _LATER, 503))
        except Problem as problem:
            await request.reply(await message(problem.title, problem.detail, problem.status, START_AGAIN))
        except ClientDisconnect:
            raise
        except Exception:
            logger.exception(_FAILED, request.request_id)
            await request.reply(await message("Not now", _LATER, 503))

    async def answer_person(self, request: DoorRequest) -> None:
        """Answer a request. Raises Shown, OAuthError and Problems, which are shown."""
        raise NotImplementedError


START_AGAIN: Final = "Go back to your agent, and connect it again."

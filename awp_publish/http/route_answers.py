"""A route's HTTP answer as the outcome or the problem of a call. Depends on no framework.

The route's own refusals are passed on. So is the JSON body of a failure, which the application chose to send. A failure
without one, and an exception, are reported without details.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from html import unescape
from typing import Final, cast
from urllib.parse import parse_qsl

import orjson

from awp_publish.browsing.addresses import REDIRECTS
from awp_publish.calls.call import PART_OF_ANSWER, Call, Content, Outcome, Result
from awp_publish.calls.challenges import ask_to_sign_in, challenges_of_route
from awp_publish.http.client_address import TrustedProxies
from awp_publish.http.credentials import read_credentials
from awp_publish.http.exchange import Fields, Pair, Scope, read_fields
from awp_publish.http.redirects import AFTER_WRITE, asks_to_sign_in, location_of
from awp_publish.model import Action, RouteCredential
from awp_publish.problems import (
    AuthenticationRequired,
    HandlerFailed,
    HandlerRedirected,
    HandlerUnavailable,
    InsufficientPermissions,
    InvalidCredentials,
    InvalidInput,
    InvalidOutput,
    Problem,
    Refused,
    Violation,
    phrase_of,
    refusal,
)
from awp_publish.schema import media, pointer_to, read_errors

CARRIED_HEADERS: Final = PART_OF_ANSWER | {
    b"set-cookie",
    b"www-authenticate",
    b"retry-after",
    b"location",
    b"ratelimit",
    b"ratelimit-policy",
    b"x-ratelimit-limit",
    b"x-ratelimit-remaining",
    b"x-ratelimit-reset",
}
_REPEATED: Final = b", "


def read_answer(
    call: Call, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes, codes: Mapping[str, str]
) -> Result:
    """Convert a route's HTTP answer. `codes` are the site's declared error codes, which a route's refusal may use.

    A success has a 2xx status and a JSON value (WoA section 5.2): an empty answer becomes null, text a string, and any
    other content base64. The Content-Type decides, or else the media type that the action declares. Without either, the
    answer has to be text.
    """
    action = call.action
    content_type = disposition = b""
    carried: list[Pair] = []
    for name, value in headers:
        if name == b"content-type":
            content_type = _REPEATED if content_type else value
        elif name in CARRIED_HEADERS or name in action.answer_headers:
            carried.append((name, value))
        elif name == b"content-disposition":
            disposition = value
    if content_type is _REPEATED:
        content_type = read_fields(headers)[b"content-type"]
    if status in REDIRECTS and (location := location_of(carried)):
        others = [pair for pair in carried if pair[0] != b"location"]
        if asks_to_sign_in(action, location):
            return read_answer(call, 401, [*others, (b"content-type", b"application/json")], _SIGN_IN_HERE, codes)
        if status in AFTER_WRITE and action.is_write:
            sent: object = None
            with suppress(orjson.JSONDecodeError):
                sent = orjson.loads(body) if body and media.is_json(media.media_type_of(content_type)) else None
            output = {**(sent if isinstance(sent, dict) else {}), "location": location}
            return Outcome(orjson.dumps(output), output, 200, tuple(others), redirect=location)
    if status != 200 and not 200 <= status < 300:
        if status == 403 and action.security_schemes and body in _OLD_FASTAPI_REFUSALS:
            status = 401
        elif status == 403 and action.asker == "code" and body in _STARLETTE_REFUSALS:
            status = 403 if call.principal or _shows_credentials(call, any_cookie=True) else 401
        problem = _read_refusal(call, status, read_fields(headers), body, codes)
        if status == 401 and action.route_authenticates and all(name != b"www-authenticate" for name, _ in carried):
            # A 401 always has a challenge (RFC 9110 section 15.5.2).
            carried += [(b"www-authenticate", kind.encode("latin-1")) for kind in challenges_of_route(action)]
        problem.headers = (*problem.headers, *((k.decode("latin-1"), v.decode("latin-1")) for k, v in carried))
        return problem
    if status == 204 or status == 205:
        status = 200
    if not body:
        return Outcome(b"null", None, status, tuple(carried))
    if content_type != b"application/json" and not media.is_json(media.media_type_of(content_type)):
        return _read_content(action, status, content_type, disposition, carried, body)
    try:
        content = Content(content_type.decode("latin-1"), "", disposition.decode("latin-1")) if disposition else None
        return Outcome(body, orjson.loads(body), status, tuple(carried) if carried else (), content)
    except orjson.JSONDecodeError:
        return InvalidOutput(f"Action {action.id} answered with a body that is declared as JSON and is not.")


def _read_content(
    action: Action, status: int, content_type: bytes, disposition: bytes, carried: Iterable[Pair], body: bytes
) -> Result:
    """Return a body that is not JSON as a JSON string: text as it is, any other content in base64."""
    kind, declared = media.media_type_of(content_type), media.declared_type(action.outputs)
    if kind in ("", media.BINARY) and isinstance(named := action.outputs.get("contentMediaType"), str):
        kind = media.media_type_of(named.encode("utf-8", "replace")) or kind
    if not (kind := kind or declared):
        kind = media.TEXT
        try:
            body.decode()
        except UnicodeDecodeError:
            detail = f"Action {action.id} answered with bytes that are not text, and without a Content-Type."
            return InvalidOutput(detail)
    if media.is_text(kind) and not declared:
        text, charset = media.decode(body, content_type.decode("latin-1"))
    else:
        charset, text = "", base64.b64encode(body).decode("ascii")
        kind = declared if media.is_text(kind) else kind
    filename = media.file_name(disposition)
    headers = (*carried, media.write_header(kind, filename)) if kind != media.TEXT or filename else tuple(carried)
    content = Content(content_type.decode("latin-1") or kind, charset, disposition.decode("latin-1"))
    return Outcome(orjson.dumps(text), text, status, headers, content)


_SIGN_IN_HERE: Final = b'{"detail":"The site asks its visitors to sign in here."}'

_OLD_FASTAPI_REFUSALS: Final = frozenset(
    (b'{"detail":"Not authenticated"}', b'{"detail":"Invalid authentication credentials"}')
)
"""Bodies with which FastAPI before 0.122 answered 403 if credentials were missing or of another scheme."""

_STARLETTE_REFUSALS: Final = frozenset((b"Forbidden", b'{"detail":"Forbidden"}'))
"""Bodies of the 403 with which Starlette's `@requires` refuses whoever lacks a scope, and whoever is unknown."""


def _read_refusal(call: Call, status: int, fields: Fields, body: bytes, codes: Mapping[str, str]) -> Problem:
    action = call.action
    if 300 <= status < 400:
        location = location_of(fields)
        if not location:
            return HandlerRedirected(f"Action {action.id} answered {status} without an address.")
        words = f"Action {action.id} answered {status} with a redirect."
        return HandlerRedirected(words, members={"location": location})
    content_type, document = fields.get(b"content-type", b""), cast(object, None)
    if media.is_json(media.media_type_of(content_type)):
        with suppress(orjson.JSONDecodeError):
            document = orjson.loads(body)
    elif content_type.startswith(b"text/plain"):
        document = body.decode("utf-8", "replace")
    elif content_type.startswith(b"text/html"):
        page = body.decode("utf-8", "replace") if len(body) <= MAX_ERROR_PAGE else ""
        document = " ".join(unescape(_BESIDE.sub(" ", page)).split())
    if status >= 500 or status < 300:
        kind: type[Problem] = HandlerUnavailable if status == 503 else HandlerFailed
        words = f"Action {action.id} failed. The site's log has the cause under this request_id."
        if status == 503:
            words = f"Action {action.id} is unavailable."
        if status < 500 or not isinstance(document, Mapping):
            return kind(words)
        return refusal(kind, status, document, codes, words)
    if status == 422:
        # FastAPI reports a missing header with credentials as a validation error, but it is not an input.
        listed = document.get("detail") if isinstance(document, Mapping) else None
        errors_of_route = [error for error in listed if isinstance(error, Mapping)] if isinstance(listed, list) else []
        names = {credential.name for credential in action.route_credentials if credential.place == "header"}
        for error in errors_of_route:
            place = error.get("loc")
            if isinstance(place, list) and len(place) == 2 and place[0] == "header" and str(place[1]).lower() in names:
                return ask_to_sign_in(action, f"The action needs the header {place[1]}, which says who calls.")
        if errors := _fastapi_errors(call, document):
            return InvalidInput.of(errors)
    kinds: Mapping[int, type[Problem]] = {403: InsufficientPermissions}
    if status == 401:
        kinds = {401: InvalidCredentials if _shows_credentials(call) else AuthenticationRequired}
    refused = refusal(kinds.get(status, Refused), status, document, codes, phrase_of(status))
    if status in kinds:
        refused.usual_recovery = Refused.recoveries.get(status)
    return refused


MAX_ERROR_PAGE: Final = 2_000
"""Bytes of a page on which Flask, Quart or Django says why it refuses; a larger one has the site's own layout."""

_BESIDE: Final = re.compile(r"<(head|h1|script|style|title)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.IGNORECASE | re.DOTALL)
"""What is not the reason: the status in words stands in the title and in the heading."""


def check_credentials(call: Call, *, of_route: bool = False) -> None:
    """Raise AuthenticationRequired if an action needs a caller, and only its route's security can know one.

    The route may answer an unknown caller, too: its security is optional, and the owner asks for sign-in. The refusal
    of a route that asks by itself is only anticipated with `of_route`.
    """
    action = call.action
    is_asked = action.asker == "site" or (of_route and action.asker is not None)
    if is_asked and action.route_credentials and call.principal is None and not _shows_credentials(call):
        raise ask_to_sign_in(action)


def _shows_credentials(call: Call, *, any_cookie: bool = False) -> bool:
    """Return True if a request has credentials that the route reads, or `Authorization`; or, if wanted, any cookie."""
    if call.has_credentials:
        presented = call.credentials()
    elif isinstance(call.context, Mapping) and "headers" in call.context:
        scope = cast(Scope, call.context)
        presented = read_credentials(scope, read_fields(scope["headers"]), TrustedProxies())
    else:
        return False
    places = {
        "header": {name for name, value in presented.headers.items() if value},
        "cookie": {pair.partition("=")[0].strip() for pair in presented.headers.get("cookie", "").split(";")},
        "query": {name for name, _ in parse_qsl(presented.query.decode("latin-1"))},
    }
    credentials = (*call.action.route_credentials, RouteCredential("header", "authorization"))
    is_known = any(credential.name in places[credential.place] for credential in credentials)
    return is_known or (any_cookie and places["cookie"] != {""})


def _fastapi_errors(call: Call, document: object) -> tuple[Violation, ...]:
    """Convert FastAPI's request validation errors, which name parts of the request, to violations of the input."""
    listed = document.get("detail") if isinstance(document, Mapping) else None
    if not isinstance(listed, list):
        return ()
    parameters, vague = call.action.way.parameters if call.action.way else (), []
    sure: list[Violation] = []
    whole = next((parameter.name for parameter in parameters if parameter.location == "body"), None)
    for error in listed:
        if not isinstance(error, Mapping) or not isinstance(error.get("loc"), list):
            continue
        place, *rest = error["loc"] or [""]
        if place == "body" and whole is not None:
            rest = [whole, *rest]
        elif rest:
            places = ("json", "form", "file", "rows") if place == "body" else (place,)
            named = (
                parameter.name
                for parameter in parameters
                if parameter.location in places and parameter.wire_name == rest[0]
            )
            rest = [next(named, rest[0]), *rest[1:]]
        if error.get("type") == SURE_PLACE:
            sure.append(Violation(pointer_to(rest), str(error.get("msg", "is invalid"))))
        else:
            vague.append((rest, str(error.get("msg", "is invalid")), str(error.get("type"))))
    return (*dict.fromkeys(sure), *read_errors(vague, call.input))


SURE_PLACE: Final = "awp_publish.place"
"""The `type` of an error whose location consists only of input members, whether they were given or not."""

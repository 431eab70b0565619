"""From a route's HTTP answer to an outcome or a problem.

The route's own refusals are carried, not masked; its failures stay opaque. Nothing here knows a framework.
"""

import base64
import http
import re
from collections.abc import Mapping
from typing import Final

import orjson

from awp_publish.model import Action
from awp_publish.policy.call import Outcome, Result
from awp_publish.problems import (
    HandlerFailed,
    HandlerRedirected,
    HandlerUnavailable,
    InvalidInput,
    InvalidOutput,
    Problem,
    Refused,
    Violation,
    shorten,
)
from awp_publish.schema import pointer_to
from awp_publish.serve.reply import Fields, Headers, RawHeaders, read_fields

CARRIED_HEADERS: Final = frozenset(
    {
        b"set-cookie",
        b"www-authenticate",
        b"retry-after",
        b"location",
        b"link",
        b"ratelimit",
        b"ratelimit-policy",
        b"x-ratelimit-limit",
        b"x-ratelimit-remaining",
        b"x-ratelimit-reset",
    }
)
_CHARSET: Final = re.compile(r"charset\s*=\s*\"?([\w.:-]+)", re.IGNORECASE)
_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]*")
_WORDS: Final = ("detail", "message", "error", "title")


def read_answer(action: Action, status: int, headers: Headers, body: bytes, codes: Mapping[str, str]) -> Result:
    """What a route answered. `codes` are the site's declared error codes, which a route's refusal may use."""
    fields = read_fields(headers)
    carried = (
        () if CARRIED_HEADERS.isdisjoint(fields) else tuple(pair for pair in headers if pair[0] in CARRIED_HEADERS)
    )
    if 200 <= status < 300:
        return _read_success(action, status, fields.get(b"content-type", b""), body, carried)
    problem = _read_refusal(action, status, fields, body, codes)
    problem.headers = (*problem.headers, *((k.decode("latin-1"), v.decode("latin-1")) for k, v in carried))
    return problem


# --- 2xx ---


def _read_success(action: Action, status: int, content_type: bytes, body: bytes, carried: RawHeaders) -> Result:
    """WoA section 5.2: a 2xx status and a JSON body, so an empty answer is null, and text a string."""
    shown = 200 if status in (204, 205) else status
    if not body:
        return Outcome(b"null", None, shown, carried)
    if content_type != b"application/json" and not _is_json(content_type):
        text = _as_text(content_type, body)
        return Outcome(orjson.dumps(text), text, shown, carried)
    try:
        return Outcome(body, orjson.loads(body), shown, carried)
    except orjson.JSONDecodeError:
        return InvalidOutput(f"Action {action.id} answered with a body that is declared as JSON and is not.")


def _is_json(content_type: bytes) -> bool:
    media_type = content_type.split(b";", 1)[0].strip().lower()
    return media_type == b"application/json" or media_type.endswith(b"+json")


def _as_text(content_type: bytes, body: bytes) -> str:
    """Text as it is; anything else as base64, which is what JSON Schema's contentEncoding calls it."""
    charset = _CHARSET.search(content_type.decode("latin-1"))
    try:
        return body.decode(charset[1] if charset else "utf-8")
    except (UnicodeDecodeError, LookupError):
        return base64.b64encode(body).decode("ascii")


# --- Everything else ---


def _read_refusal(action: Action, status: int, fields: Fields, body: bytes, codes: Mapping[str, str]) -> Problem:
    if status == 503:
        return HandlerUnavailable(f"Action {action.id} is unavailable.")
    if status >= 500 or status < 300:
        return HandlerFailed(f"Action {action.id} failed. The site's log has the cause under this request_id.")
    if status < 400:
        location = fields.get(b"location", b"").decode("latin-1")
        return HandlerRedirected(
            f"Action {action.id} answered {status} with a redirect.", members={"location": location} if location else {}
        )
    document = _parse(fields.get(b"content-type", b""), body)
    if status == 422 and (errors := _fastapi_errors(action, document)):
        return InvalidInput.of(errors)
    return _refused(status, document, codes)


def _refused(status: int, document: object, codes: Mapping[str, str]) -> Refused:
    """A 4xx: with its own words, a code that the site declares, and its own body. problem+json keeps its members."""
    words = _words(status, document)
    if isinstance(document, Mapping) and isinstance(document.get("type"), str) and "title" in document:
        members = {str(name): value for name, value in document.items() if name not in ("status", "detail", "instance")}
        if document["type"] == "about:blank":
            del members["type"]  # ours says more
        return Refused(words, status=status, code=_code_in(document), members=members)
    inner = document.get("detail") if isinstance(document, Mapping) else None
    found = (_code_in(source) for source in (document, inner))
    code = next((code for code in found if code in codes), None)
    answered = {"response": document} if isinstance(document, (Mapping, list)) else {}
    return Refused(words, status=status, code=code, members=answered)


def _code_in(source: object) -> str | None:
    code = source.get("code") if isinstance(source, Mapping) else None
    return code if isinstance(code, str) and _CODE.fullmatch(code) else None


def _words(status: int, document: object) -> str:
    """What the route says, in its own words, or the phrase of its status."""
    if isinstance(document, str) and document.strip():
        return shorten(document.strip())
    if isinstance(document, Mapping):
        for name in _WORDS:
            found = document.get(name)
            if isinstance(found, Mapping):
                return _words(status, found)
            if isinstance(found, str) and found.strip():
                return shorten(found.strip())
    try:
        return f"{http.HTTPStatus(status).phrase}."
    except ValueError:
        return f"The action answered with status {status}."


def _parse(content_type: bytes, body: bytes) -> object:
    if _is_json(content_type):
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError:
            return None
    return body.decode("utf-8", "replace") if content_type.startswith(b"text/plain") else None


def _fastapi_errors(action: Action, document: object) -> tuple[Violation, ...]:
    """FastAPI's request validation errors as pointers into the input."""
    listed = document.get("detail") if isinstance(document, Mapping) else None
    if not isinstance(listed, list):
        return ()
    found = [error for error in listed if isinstance(error, Mapping) and isinstance(error.get("loc"), list)]
    return tuple(Violation(_pointer(action, error["loc"]), str(error.get("msg", "is invalid"))) for error in found)


def _pointer(action: Action, place: list[str | int]) -> str:
    """FastAPI names a place by its location in the request; the caller knows only the input."""
    parameters = action.target.parameters if action.target else ()
    location, rest = place[0] if place else "", place[1:]
    if location == "body":
        whole = next((parameter.name for parameter in parameters if parameter.location == "body"), None)
        return pointer_to(rest if whole is None else [whole, *rest])
    named = (p.name for p in parameters if p.location == location and rest and p.wire_name == rest[0])
    return pointer_to([next(named, rest[0] if rest else ""), *rest[1:]])

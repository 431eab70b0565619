"""`Reply`: a neutral HTTP answer that every gateway translates in a few lines, and the little HTTP grammar we need."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]
Fields: TypeAlias = Mapping[bytes, bytes]
RawHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]

ANY_ORIGIN: Final = (b"access-control-allow-origin", b"*")
NO_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
PREFLIGHT_MAX_AGE: Final = b"86400"


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, headers (lower-case names) and body of an answer."""

    status: int
    headers: RawHeaders
    body: bytes = b""


async def send_reply(reply: Reply, send: Send) -> None:
    """Answer an ASGI request. Headers are copied: middleware outside of us may change its copy."""
    await send({"type": "http.response.start", "status": reply.status, "headers": list(reply.headers)})
    await send({"type": "http.response.body", "body": reply.body})


def read_fields(headers: Headers) -> Fields:
    """Headers by name; several of one name are joined as RFC 9110 section 5.3 says, cookies as RFC 9113 section 8.2.3.

    What may stand once only (Authorization, Content-Type, Host) is joined too, and then is nothing that anybody takes:
    of two, none is chosen that somebody else, in front of us or behind, might not have chosen.
    """
    pairs = headers if isinstance(headers, list) else list(headers)
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    listed: dict[bytes, list[bytes]] = {}
    for name, value in pairs:
        listed.setdefault(name, []).append(value)
    return {name: (b"; " if name == b"cookie" else b", ").join(values) for name, values in listed.items()}


@lru_cache(maxsize=256)
def accepts(accept: bytes, media_type: str) -> bool:
    """Whether an `Accept` header lets `media_type` through (RFC 9110 section 12.5.1). An empty one accepts all."""
    text = accept.decode("latin-1")
    return not text.strip() or quality(text, (media_type, media_type.split("/")[0] + "/*", "*/*")) > 0


@lru_cache(maxsize=256)
def choose_coding(accept_encoding: bytes, codings: tuple[str, ...]) -> int:
    """Which of `codings`, best first and identity last, a client likes best (RFC 9110 section 12.5.3)."""
    weights = [_coding_weight(accept_encoding.decode("latin-1"), coding) for coding in codings]
    best = max(weights)
    return weights.index(best) if best > 0 else len(codings) - 1


def _coding_weight(accept_encoding: str, coding: str) -> float:
    weight = quality(accept_encoding, (coding, "*"), absent=-1.0)
    return weight if weight >= 0 else float(coding == "identity")


def quality(field: str, names: Iterable[str], absent: float = 0.0) -> float:
    """The weight of the first of `names`, most specific first, that a weighted list names."""
    weights = dict(_weighted(field))
    return next((weights[name] for name in names if name in weights), absent)


_WEIGHT: Final = re.compile(r";\s*q\s*=\s*([01](?:\.\d{0,3})?)", re.IGNORECASE)


def _weighted(field: str) -> Iterable[tuple[str, float]]:
    for element in field.split(","):
        name = element.split(";", 1)[0].strip().lower()
        weight = _WEIGHT.search(element)
        if name:
            yield name, float(weight[1]) if weight else 1.0


def preflight(methods: str, origin: bytes = b"*", extra: RawHeaders = (), headers: bytes = b"*") -> Reply:
    """The answer to a CORS preflight and to any other OPTIONS."""
    return Reply(
        204,
        (
            (b"allow", methods.encode()),
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", methods.encode()),
            (b"access-control-allow-headers", headers),
            (b"access-control-max-age", PREFLIGHT_MAX_AGE),
            *extra,
        ),
    )


def route_path(scope: Scope) -> str:
    """The path below the point where the application is mounted: without `root_path`, if the server left it in."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    if not root or not path.startswith(root):
        return path
    rest = path[len(root) :]
    return rest if rest == "" or rest.startswith("/") else path


def mount_of(scope: Scope) -> str:
    """The path under which the application is mounted, as far as it is part of a request's path."""
    path: str = scope["path"]
    return path[: len(path) - len(route_path(scope))]

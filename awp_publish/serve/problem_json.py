"""Problems as application/problem+json (RFC 9457)."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

import orjson

from awp_publish.problems import Problem, slug_of
from awp_publish.serve.reply import NO_SNIFFING, RawHeaders, Reply

MEDIA_TYPE: Final = b"application/problem+json"
_RESERVED: Final = frozenset(
    {"type", "title", "status", "detail", "instance", "code", "recovery", "request_id", "errors"}
)


def describe_problem(
    problem: Problem,
    types: str = "",
    recoveries: Mapping[str, str] | None = None,
    instance: str = "",
    request_id: str = "",
) -> dict[str, object]:
    """The members of a problem, in the order of RFC 9457 section 3.1, then ours.

    `types` is the address below which problem types are documented, `recoveries` what the site declared for a code.
    """
    described: dict[str, object] = {
        "type": f"{types}/{slug_of(problem.code)}" if types else "about:blank",
        "title": problem.title,
        "status": problem.status,
        "detail": problem.detail,
    }
    if instance:
        described["instance"] = f"{instance}#{request_id}" if request_id else instance
    described["code"] = problem.code
    described["recovery"] = problem.recovery or (recoveries or {}).get(problem.code) or problem.default_recovery
    if request_id:
        described["request_id"] = request_id
    if problem.errors:
        described["errors"] = [asdict(violation) for violation in problem.errors]
    described |= {name: value for name, value in problem.members.items() if name not in _RESERVED or name in _CARRIED}
    return described


_CARRIED: Final = frozenset({"type", "title", "errors", "recovery"})
"""Members that a route's own problem+json answer brings along in place of ours."""


def render_problem(
    problem: Problem,
    types: str = "",
    recoveries: Mapping[str, str] | None = None,
    instance: str = "",
    request_id: str = "",
    extra: RawHeaders = (),
) -> Reply:
    """The reply for a problem."""
    body = _dump(describe_problem(problem, types, recoveries, instance, request_id))
    return Reply(
        problem.status,
        (
            (b"content-type", MEDIA_TYPE),
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            NO_SNIFFING,
            *((name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in problem.headers),
            *extra,
        ),
        body,
    )


def _dump(described: dict[str, object]) -> bytes:
    """Text from a request may hold what JSON cannot say, a lone surrogate: it is replaced, never a failure."""
    try:
        return orjson.dumps(described)
    except TypeError:
        return orjson.dumps(_printable(described))


def _printable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {str(key): _printable(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_printable(member) for member in value]
    return value if isinstance(value, (int, float, bool)) or value is None else str(value)

"""Problems as application/problem+json (RFC 9457)."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Final
from urllib.parse import quote

import orjson

from awp_publish.documents.members import own_recoveries, unlinked_recoveries
from awp_publish.http.exchange import NO_SNIFFING, RawHeaders, Reply, Scope, content_length, route_path
from awp_publish.model import Catalog
from awp_publish.problems import Problem, below, slug_of

PROBLEM_TYPE: Final = b"application/problem+json"

_RESERVED: Final = frozenset(
    {"type", "title", "status", "detail", "instance", "code", "recovery", "request_id", "errors"}
)

_CARRIED: Final = frozenset({"type", "title", "errors", "recovery"})
"""Members of a route's own problem+json answer that replace ours."""


class ProblemRenderer:
    """Renders problems for all doors, with the URLs of their types and the site's own recovery texts.

    `recoveries` replace recovery texts, by code, at a door whose callers send keys and the like in another way than at
    the WoA door. Without a `catalog`, problems are of no site.
    """

    __slots__ = ("_prefix", "_recoveries", "_types")

    def __init__(self, catalog: Catalog | None, recoveries: Mapping[str, str] | None = None) -> None:
        self._types, self._prefix, self._recoveries = "", "", dict(recoveries or {})
        if catalog is not None:
            self._types, self._prefix = catalog.absolute(catalog.paths.problems), catalog.prefix
            own = unlinked_recoveries(catalog) | own_recoveries(catalog)
            self._recoveries = {**own, **self._recoveries, **catalog.site.errors}

    def instance_of(self, scope: Scope) -> str:
        """Return the path of a request as its caller sent it, with a prefix that a proxy may have removed."""
        return quote(self._prefix + route_path(scope))

    def describe(self, problem: Problem, instance: str = "", request_id: str = "") -> dict[str, object]:
        """Return the members of a problem: those of RFC 9457 section 3.1 in that order, then ours."""
        described: dict[str, object] = {
            "type": f"{self._types}/{slug_of(problem.code)}" if self._types else "about:blank",
            "title": problem.title,
            "status": problem.status,
            "detail": problem.detail,
        }
        if instance:
            described["instance"] = f"{instance}#{request_id}" if request_id else instance
        described["code"] = problem.code
        recovery = problem.recovery or problem.with_time(self._recoveries.get(problem.code, ""))
        described["recovery"] = recovery or below(self._prefix, problem.advice)
        if request_id:
            described["request_id"] = request_id
        if problem.errors:
            described["errors"] = [asdict(violation) for violation in problem.errors]
        members = problem.members.items()
        return described | {name: value for name, value in members if name not in _RESERVED or name in _CARRIED}

    def reply(self, problem: Problem, instance: str = "", request_id: str = "", extra: RawHeaders = ()) -> Reply:
        """Return the problem+json reply for a problem."""
        described = self.describe(problem, instance, request_id)
        try:
            body = orjson.dumps(described)
        except TypeError:  # text from a request may contain lone surrogates, which JSON cannot represent: replace them
            body = orjson.dumps(_printable(described))
        own = ((name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in problem.headers)
        return Reply(
            problem.status,
            (
                (b"content-type", PROBLEM_TYPE),
                content_length(len(body)),
                (b"cache-control", b"no-store"),
                NO_SNIFFING,
                *own,
                *extra,
            ),
            body,
        )


def _printable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {str(key): _printable(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_printable(member) for member in value]
    return value if isinstance(value, (int, float, bool)) or value is None else str(value)


PLAIN_RECOVERIES: Final = {
    "CONFIRMATION_REQUIRED": "Show confirmation.summary to your user. Only if they agree, send the same request again "
    "with confirmation.token in the header AWP-Confirmation.",
    "PREREQUISITE_REQUIRED": "Call the actions listed in missing, unless they have already succeeded, then send this "
    "request again. If you are not authenticated, add the AWP-Receipt header of each of their answers, separated by "
    "commas, in the header AWP-Receipt. Do not repeat a call only to get its receipt.",
    "INVALID_ENVELOPE": "Send the idempotency key and the confirmation as strings, and receipts as a list of strings.",
    "UNSUPPORTED_MEDIA_TYPE": "Send the inputs as application/json in UTF-8, or as a form, without a content encoding.",
}
"""Recovery texts by code, for doors without an envelope."""

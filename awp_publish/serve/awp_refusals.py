"""How the AWP door says a Problem: the code of the eleven that its status means, and in `details` all that is known."""

from collections.abc import Mapping
from typing import Final

from awp_publish.browsing.errors import AwpError, Code
from awp_publish.model import Catalog
from awp_publish.policy.call import RawHeaders
from awp_publish.problems import ConfirmationRequired, PrerequisiteRequired, Problem, StoreUnavailable, code_of
from awp_publish.serve.exchange import Telling
from awp_publish.serve.problem_json import describe_problem

_CODES: Final[dict[int, Code]] = {
    401: "PERMISSION_DENIED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "CONFLICT",
    410: "NOT_FOUND",
    428: "PERMISSION_DENIED",
    429: "RATE_LIMITED",
    504: "TIMEOUT",
}
RECOVERIES: Final[Mapping[str, str]] = {
    code_of(ConfirmationRequired.slug): (
        "Show details.confirmation.summary to your user. Only if they agree, send the same skills.invoke again with "
        "details.confirmation.token as params.confirmation."
    ),
    code_of(PrerequisiteRequired.slug): (
        "Invoke the skills that details.missing names, then retry with params.receipts: the list of the awp-receipt "
        "that result.headers of each of their answers has."
    ),
}
"""What callers of this door are told to do, where the way to do it is its own."""

_NOT_TOLD: Final = (b"set-cookie", b"x-ratelimit-")
"""Beginnings of headers that an agent must not see, or sees under another name."""


def telling_of(catalog: Catalog) -> Telling:
    """How this door tells problems."""
    return Telling(catalog, RECOVERIES)


def tell_problem(problem: Problem, telling: Telling, request_id: str, added: RawHeaders = ()) -> AwpError:
    """The error that a problem is. `details` is the problem as every door tells it, its headers beside it."""
    details = describe_problem(problem, telling.types, telling.recoveries, "", request_id)
    headers = headers_told((*_headers_of(problem), *added))
    if headers:
        details["headers"] = headers
    if headers.get("retry-after", "").isdigit():
        details["retry_after"] = int(headers["retry-after"])
        details["retry_after_ms"] = int(headers["retry-after"]) * 1000
    return AwpError(_code_of(problem), problem.detail, details)


def headers_told(headers: RawHeaders) -> dict[str, str]:
    """What other doors say in headers, by lower-case name."""
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in headers
        if not name.startswith(_NOT_TOLD) and name not in (b"content-type", b"content-length")
    }


def _headers_of(problem: Problem) -> RawHeaders:
    return tuple(
        (name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in problem.headers
    )


def _code_of(problem: Problem) -> Code:
    if isinstance(problem, StoreUnavailable):
        return "INTERNAL"
    return _CODES.get(problem.status) or ("SKILL_ERROR" if problem.status >= 500 else "INVALID_REQUEST")

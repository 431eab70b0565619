"""Problems as errors of AWP, and the words of the door for what is in its calls."""

from typing import Final

from awp_publish.browsing.errors import AwpError, Code
from awp_publish.calls.call import RawHeaders
from awp_publish.http.calling import Dialect
from awp_publish.http.exchange import header_members
from awp_publish.http.problem_details import ProblemRenderer
from awp_publish.problems import Problem, StoreUnavailable

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
DIALECT: Final = Dialect(
    input="args",
    places={
        "skill": "it is a parameter of skills.invoke, beside args",
        "args": "put its members directly into args",
        "input": "put its members directly into args",
        "idempotency_key": "send it as meta.idempotency_key of the message",
        "confirmation": "it is a parameter of skills.invoke, beside args",
        "receipts": "they are a parameter of skills.invoke, beside args",
    },
    recoveries={
        "CONFIRMATION_REQUIRED": (
            "Show details.confirmation.summary to your user. Only if they agree, send the same skills.invoke again "
            "with details.confirmation.token as params.confirmation."
        ),
        "PREREQUISITE_REQUIRED": (
            "Invoke the skills listed in details.missing, unless they have already succeeded, then retry. If you are "
            "not authenticated, add params.receipts: a list of the awp-receipt in result.headers of each of their "
            "answers. Do not repeat a call only to get its receipt."
        ),
    },
)

_NOT_SHOWN: Final = (b"set-cookie", b"x-ratelimit-", b"content-type", b"content-length")
"""Prefixes of headers that an agent must not see, sees under another name, or that describe only the body."""


def error_of(problem: Problem, renderer: ProblemRenderer, trace: str, added: RawHeaders = ()) -> AwpError:
    """Return the error for a problem. `details` is the problem as every door renders it, with its headers."""
    details = renderer.describe(problem, "", trace)
    own = ((name.lower().encode("latin-1"), text.encode("latin-1", "replace")) for name, text in problem.headers)
    headers = shown_headers((*own, *added))
    if headers:
        details["headers"] = headers
    if headers.get("retry-after", "").isdigit():
        details["retry_after"] = int(headers["retry-after"])
        details["retry_after_ms"] = int(headers["retry-after"]) * 1000
    otherwise: Code = "SKILL_ERROR" if problem.status >= 500 else "INVALID_REQUEST"
    code = "INTERNAL" if isinstance(problem, StoreUnavailable) else _CODES.get(problem.status, otherwise)
    return AwpError(code, problem.detail, details)


def shown_headers(headers: RawHeaders) -> dict[str, str]:
    """Return the headers of other doors' responses under the names of members: retry_after, awp_receipt."""
    pairs = ((key.decode("latin-1"), text.decode("latin-1")) for key, text in headers if not key.startswith(_NOT_SHOWN))
    return {name.replace("-", "_"): text for name, text in header_members(pairs).items()}

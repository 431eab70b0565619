"""`AwpError`: every refusal and failure of a browsing session, with the eleven codes of the AWP paper (Table 1)."""

from collections.abc import Mapping
from typing import Final, Literal, NoReturn, TypeAlias, get_args

from awp_publish.schema import JsonObject

Code: TypeAlias = Literal[
    "INVALID_REQUEST",
    "UNSUPPORTED",
    "NOT_FOUND",
    "TIMEOUT",
    "CONFLICT",
    "RATE_LIMITED",
    "PERMISSION_DENIED",
    "NAVIGATION_FAILED",
    "SCRIPT_ERROR",
    "SKILL_ERROR",
    "INTERNAL",
]
CODES: Final[tuple[str, ...]] = get_args(Code)


class AwpError(Exception):
    """A refusal or a failure: `code` (Table 1), a `message` for people, `details` for programs.

    `details` is JSON and may be empty; the protocol's envelope omits empty details.
    """

    def __init__(self, code: Code, message: str, details: Mapping[str, object] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code: Code = code
        self.message = message
        self.details: JsonObject = dict(details or {})

    def describe(self) -> JsonObject:
        """Return the `error` member of a response: code, message, and details if there are any."""
        error: JsonObject = {"code": self.code, "message": self.message}
        return {**error, "details": self.details} if self.details else error


def refuse(message: str, **details: object) -> NoReturn:
    """Raise INVALID_REQUEST: the request cannot be carried out, and sending it again will not help."""
    raise AwpError("INVALID_REQUEST", message, details)


def missing(name: str) -> AwpError:
    """Return the refusal of a request that lacks a required parameter."""
    return AwpError("INVALID_REQUEST", f"Missing required param: {name}", {"param": name})

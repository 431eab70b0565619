"""Refusals of an authorization server, in the words of the RFC that names each (RFC 6749 sections 4.1.2.1 and 5.2)."""

import math
import re
from collections.abc import Mapping
from typing import Final

import orjson

from awp_publish.http.exchange import NO_SNIFFING, RawHeaders, Reply, content_length

STATUSES: Final[Mapping[str, int]] = {"invalid_client": 401, "temporarily_unavailable": 503, "slow_down": 429}
"""Statuses of errors that are not 400."""

_CHALLENGE: Final = (b"www-authenticate", b'Basic realm="sign-in"')
"""What each answer with the status 401 has to have (RFC 9110 section 15.5.2), also to a client without a secret."""

_NOT_OF_ERRORS: Final = re.compile(r"[^ !#-\[\]-~]")
"""Characters that an error_description must not have (RFC 6749 sections 4.1.2.1 and 5.2)."""


class OAuthError(Exception):
    """A request that is refused. `code` is the error of the RFC, `detail` says what was wrong.

    After `seconds`, if there are any, the same may be tried again.
    """

    def __init__(self, code: str, detail: str, seconds: float = 0.0) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.seconds = seconds
        self.detail = _NOT_OF_ERRORS.sub("'", detail)

    @property
    def reply(self) -> Reply:
        """The answer of the endpoints that programs call (RFC 6749 section 5.2)."""
        described = {"error": self.code, "error_description": self.detail}
        status = STATUSES.get(self.code, 400)
        later = ((b"retry-after", str(math.ceil(self.seconds)).encode()),) if self.seconds else ()
        return json_reply(described, status, (_CHALLENGE,) if status == 401 else later)


class Shown(Exception):
    """A refusal that is shown to the person, because it is not safe to send it back to where the request came from.

    `back` is the address to which the person may go with it nevertheless, "" for none. `code` is the error for a
    program that meets it.
    """

    def __init__(
        self, title: str, detail: str, status: int = 400, back: str = "", code: str = "invalid_client"
    ) -> None:
        super().__init__(detail)
        self.title = title
        self.detail = detail
        self.status = status
        self.back = back
        self.code = code


def json_reply(value: Mapping[str, object], status: int = 200, headers: RawHeaders = ()) -> Reply:
    """Return an answer in JSON that nobody may cache (RFC 6749 section 5.1)."""
    body = orjson.dumps(value)
    fixed: RawHeaders = (
        (b"content-type", b"application/json"),
        content_length(len(body)),
        (b"cache-control", b"no-store"),
        (b"pragma", b"no-cache"),
        NO_SNIFFING,
    )
    return Reply(status, (*fixed, *headers), body)

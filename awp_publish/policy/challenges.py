"""WWW-Authenticate: how a refused caller is told what to send (RFC 9110 section 11.6.1, RFC 6750, RFC 9728)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from awp_publish.policy.bearer import BEARER
from awp_publish.policy.principal import Authenticator
from awp_publish.problems import AuthenticationRequired, InsufficientScope, Problem

FIELD: Final = "WWW-Authenticate"
MOST_DESCRIBED: Final = 200
"""Characters of an error_description: a header is no place for more."""

_UNPRINTABLE: Final = re.compile(r"[^ -~]")
_ESCAPED: Final = re.compile(r'["\\]')


@dataclass(frozen=True, slots=True)
class Challenges:
    """The challenges of one action: one for each kind of credentials that it takes, in the order they are tried."""

    kinds: tuple[str, ...]
    realm: str
    scopes: tuple[str, ...] = ()
    metadata_url: str | None = None

    def put_on(self, problem: Problem, refused: str | None = None) -> Problem:
        """Give a problem its challenges; `refused` is the challenge of the credentials that were wrong, if any were.

        Those of an earlier refusal are replaced: a site may raise one and the same exception again and again.
        """
        others = [header for header in problem.headers if header[0].lower() != FIELD.lower()]
        problem.headers = (*others, *((FIELD, self._challenge(kind, problem, refused)) for kind in self.kinds))
        return problem

    def _challenge(self, kind: str, problem: Problem, refused: str | None) -> str:
        if kind != BEARER:
            return kind
        told = {"realm": self.realm, **self._error(problem, refused), "resource_metadata": self.metadata_url}
        return f"{BEARER} " + ", ".join(f"{name}={_quote(value)}" for name, value in told.items() if value)

    def _error(self, problem: Problem, refused: str | None) -> dict[str, str]:
        """RFC 6750 section 3: no error where no credentials were sent; the scopes that the action needs."""
        scope = {"scope": " ".join(self.scopes)}
        if isinstance(problem, InsufficientScope):
            return {"error": "insufficient_scope"} | scope
        if isinstance(problem, AuthenticationRequired) or refused != BEARER:
            return scope
        return {"error": "invalid_token", "error_description": _describe(problem.detail)}


def challenges_of(
    authenticators: Iterable[Authenticator], realm: str, scopes: tuple[str, ...], metadata_url: str | None
) -> Challenges:
    """The challenges of these authenticators: those that are the same are made once."""
    kinds = dict.fromkeys(authenticator.challenge for authenticator in authenticators)
    return Challenges(tuple(_printable(kind) for kind in kinds if kind), realm, scopes, metadata_url)


def _quote(value: str) -> str:
    """A quoted-string (RFC 9110 section 5.6.4) of ASCII alone."""
    return '"' + _ESCAPED.sub(r"\\\g<0>", _printable(value)) + '"'


def _describe(detail: str) -> str:
    """RFC 6750 section 3 wants a description without quotes and backslashes."""
    return _ESCAPED.sub("'", _printable(detail))[:MOST_DESCRIBED]


def _printable(value: str) -> str:
    return _UNPRINTABLE.sub("?", value)

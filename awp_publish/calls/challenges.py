"""WWW-Authenticate: the challenges that refusals carry (RFC 9110 section 11.6.1)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from awp_publish.calls.callers import Authenticator
from awp_publish.model import Action
from awp_publish.problems import AuthenticationRequired, InsufficientScope, InvalidBinding, InvalidProof, Problem

BEARER: Final = "Bearer"
"""The scheme, and challenge, of bearer tokens (RFC 6750)."""

PROOF_ALGORITHMS: Final = ("ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
DPOP: Final = f'DPoP algs="{" ".join(PROOF_ALGORITHMS)}"'
"""The challenge for tokens that are bound to a key, with the accepted algorithms of proofs (RFC 9449 section 7.1)."""

COOKIE: Final = "Cookie"
"""The challenge for sessions. There is no such registered scheme, but a 401 must have a challenge."""

FIELD: Final = "WWW-Authenticate"
MAX_ERROR_DESCRIPTION: Final = 200
"""Characters of an error_description, which is part of a header."""

_UNPRINTABLE: Final = re.compile(r"[^ -~]")
_ESCAPED: Final = re.compile(r'["\\]')


@dataclass(frozen=True, slots=True)
class Challenges:
    """The challenges of one action: one for each kind of credentials that it accepts, in the order of trying them."""

    kinds: tuple[str, ...]
    realm: str
    scopes: tuple[str, ...] = ()
    metadata_url: str | None = None

    def put_on(self, problem: Problem, refused: str | None = None) -> Problem:
        """Add the challenges to a problem; `refused` is the challenge for the credentials that were wrong, if any were.

        Earlier challenges are replaced, because a site may raise the same exception object repeatedly.
        """
        takes_proofs = refused == DPOP or isinstance(problem, InvalidBinding)
        kinds = dict.fromkeys((*self.kinds, DPOP) if takes_proofs else self.kinds)
        others = [header for header in problem.headers if header[0].lower() != FIELD.lower()]
        problem.headers = (*others, *((FIELD, self._write(kind, problem, refused)) for kind in kinds))
        return problem

    def _write(self, kind: str, problem: Problem, refused: str | None) -> str:
        """Return one challenge. Those for tokens say what is wrong (RFC 6750 section 3, RFC 9449 section 7.1)."""
        if kind not in (BEARER, DPOP):
            return kind
        parameters = {"realm": self.realm}
        if isinstance(problem, InsufficientScope):  # no error if no credentials were sent
            parameters["error"] = "insufficient_scope"
        elif not isinstance(problem, AuthenticationRequired) and refused == kind:  # without quotes and backslashes
            description = _ESCAPED.sub("'", _printable(problem.detail))[:MAX_ERROR_DESCRIPTION]
            is_proof = isinstance(problem, InvalidProof) and not isinstance(problem, InvalidBinding)
            error = "invalid_dpop_proof" if is_proof else "invalid_token"
            parameters |= {"error": error, "error_description": description}
        if "error_description" not in parameters:
            parameters["scope"] = " ".join(self.scopes)
        parameters["resource_metadata"] = self.metadata_url or ""
        # Each value is a quoted-string (RFC 9110 section 5.6.4) in ASCII.
        quoted = ((name, _ESCAPED.sub(r"\\\g<0>", _printable(value))) for name, value in parameters.items() if value)
        return kind + (" " if kind == BEARER else ", ") + ", ".join(f'{name}="{value}"' for name, value in quoted)


def challenges_of(
    authenticators: Iterable[Authenticator], realm: str, scopes: tuple[str, ...], metadata_url: str | None
) -> Challenges:
    """Return the challenges of these authenticators, without duplicates."""
    kinds = dict.fromkeys(authenticator.challenge for authenticator in authenticators)
    return Challenges(tuple(_printable(kind) for kind in kinds if kind), realm, scopes, metadata_url)


def ask_to_sign_in(action: Action, detail: str = "The action requires authentication.") -> AuthenticationRequired:
    """Return the refusal of a caller who has shown nothing that the route of an action could know them by."""
    return AuthenticationRequired(detail, headers=[(FIELD, kind) for kind in challenges_of_route(action)])


def challenges_of_route(action: Action) -> tuple[str, ...]:
    """Return challenges for a route's own security schemes, for when the route itself gives none."""
    kinds: dict[str, None] = {}
    for scheme in action.security_schemes.values():
        if scheme.get("type") in ("http", "oauth2", "openIdConnect"):
            kinds[str(scheme.get("scheme", "Bearer")).capitalize()] = None
    for credential in action.route_credentials:
        if credential.name != "authorization":
            kinds["Cookie" if credential.place == "cookie" else f'ApiKey {credential.place}="{credential.name}"'] = None
        elif not kinds:
            kinds["Bearer"] = None
    return tuple(kinds) or ("Bearer",)


def _printable(value: str) -> str:
    return _UNPRINTABLE.sub("?", value)

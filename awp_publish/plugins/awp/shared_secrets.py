"""Callers who prove that they share a secret, without sending it: `auth.hmac` of the AWP door.

The door issues a one-time challenge, and the caller signs it: HMAC-SHA256 (RFC 2104) of `signed_text` with its secret,
in hexadecimal. A signature that was intercepted is of no further use.
"""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from hashlib import sha256
from typing import ClassVar, Final

from awp_publish.calls.call import Credentials, Principal
from awp_publish.calls.callers import Scheme
from awp_publish.calls.verifiers import check_people, people_of, read_verdict, vouched
from awp_publish.problems import DeclarationError, InvalidCredentials

MIN_SECRET: Final = 16
"""Characters of a shared secret; a shorter one could be guessed from a signature."""

_SHARED_SECRET_HELP: Final = 'Give the secrets by caller: SharedSecret({"warehouse": os.environ["WAREHOUSE_SECRET"]}).'


@dataclass(frozen=True, slots=True)
class SharedSecret:
    """Callers who share a secret with the site (AWP, `auth.hmac`).

    `known` maps each caller (a Principal or its id, with which the caller signs) to the secret. Only the AWP door
    issues challenges to sign; other doors know nobody in this way. Raises DeclarationError.
    """

    scheme: ClassVar[Scheme | None] = None
    method: ClassVar[str] = "custom"
    challenge: ClassVar[str] = ""
    kind: ClassVar[str] = "shared-secret"

    known: InitVar[Mapping[Principal | str, str]]
    people: str | None = None
    is_instant: bool = field(init=False, repr=False, default=True)
    _callers: Mapping[str, tuple[Principal, bytes]] = field(init=False, repr=False)

    def __post_init__(self, known: Mapping[Principal | str, str]) -> None:
        if not isinstance(known, Mapping) or not known:
            raise DeclarationError("site", "SharedSecret was given no secrets.", _SHARED_SECRET_HELP)
        check_people("SharedSecret", self.people)
        callers: dict[str, tuple[Principal, bytes]] = {}
        for caller, secret in known.items():  # messages never contain the secret: they end up in start-up logs
            principal = vouched(read_verdict(caller) if isinstance(caller, (str, Principal)) else None, people_of(self))
            if principal is None:
                raise DeclarationError("site", "A secret given to SharedSecret has no caller.", _SHARED_SECRET_HELP)
            if not isinstance(secret, str) or len(secret) < MIN_SECRET:
                detail = f"The secret of {principal.id} given to SharedSecret has fewer than {MIN_SECRET} characters."
                raise DeclarationError("site", detail, _SHARED_SECRET_HELP)
            callers[principal.id] = principal, secret.encode("utf-8", "surrogatepass")
        object.__setattr__(self, "_callers", callers)

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, None if nothing was signed. Raises InvalidCredentials."""
        signed = credentials.signed
        if signed is None:
            return None
        nobody = Principal(signed.name), secrets.token_bytes(32)  # so that an unknown name takes as long
        principal, secret = self._callers.get(signed.name, nobody)
        expected = sign(secret, signed.name, signed.challenge)
        if not hmac.compare_digest(expected.encode(), signed.signature.lower().encode("utf-8", "replace")):
            raise InvalidCredentials("The signature is not that of this caller and this challenge.")
        return principal


def sign(secret: bytes, name: str, challenge: str) -> str:
    """Return a caller's signature of a challenge."""
    return hmac.new(secret, signed_text(name, challenge), sha256).hexdigest()


def signed_text(name: str, challenge: str) -> bytes:
    """Return the text to sign: the method, the caller's name and the challenge, each on a line of its own."""
    return f"awp.hello\n{name}\n{challenge}".encode("utf-8", "surrogatepass")

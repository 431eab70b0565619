"""Callers who prove that they share a secret, without sending it: `auth.hmac` of the AWP door.

The door gives a challenge of its own making, once; the caller signs it: HMAC-SHA256 (RFC 2104) under its secret of the
text that `signed_text` makes, in hexadecimal digits. A signature that was overheard is good for nothing else.
"""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from hashlib import sha256
from typing import Final

from awp_publish.policy.principal import Credentials, Principal, Scheme
from awp_publish.policy.verifier import read_verdict
from awp_publish.problems import DeclarationError, InvalidCredentials

SHORTEST: Final = 16
"""Characters of a shared secret: what is shorter could be guessed from one signature."""

_REMEDY: Final = 'Give the secrets by caller: SharedSecret({"warehouse": os.environ["WAREHOUSE_SECRET"]}).'


@dataclass(frozen=True, slots=True)
class SharedSecret:
    """Callers known by a secret that they share with the site (AWP, `auth.hmac`).

    `known` are the secrets by caller, a Principal or its id, under which the caller signs. Only the AWP door gives
    challenges to sign; at every other door nobody is known in this way. Raises DeclarationError.
    """

    known: InitVar[Mapping[Principal | str, str]]
    is_instant: bool = field(init=False, repr=False, default=True)
    _callers: Mapping[str, tuple[Principal, bytes]] = field(init=False, repr=False)

    def __post_init__(self, known: Mapping[Principal | str, str]) -> None:
        if not isinstance(known, Mapping) or not known:
            raise DeclarationError("site", "SharedSecret was given no secrets.", _REMEDY)
        object.__setattr__(self, "_callers", dict(_read_caller(caller, known[caller]) for caller in known))

    @property
    def scheme(self) -> Scheme | None:
        return None

    @property
    def method(self) -> str:
        return "custom"

    @property
    def challenge(self) -> str:
        return ""

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """The caller, None where nothing was signed. Raises InvalidCredentials."""
        signed = credentials.signed
        if signed is None:
            return None
        nobody = Principal(signed.name), secrets.token_bytes(32)  # whoever is not known takes as long
        principal, secret = self._callers.get(signed.name, nobody)
        expected = sign(secret, signed.name, signed.challenge)
        if not hmac.compare_digest(expected.encode(), signed.signature.lower().encode("utf-8", "replace")):
            raise InvalidCredentials("The signature is not that of this caller and this challenge.")
        return principal


def sign(secret: bytes, name: str, challenge: str) -> str:
    """A caller's signature of a challenge."""
    return hmac.new(secret, signed_text(name, challenge), sha256).hexdigest()


def signed_text(name: str, challenge: str) -> bytes:
    """What is signed: the method, the caller's name and the challenge, each on a line of its own."""
    return f"awp.hello\n{name}\n{challenge}".encode("utf-8", "surrogatepass")


def _read_caller(caller: object, secret: object) -> tuple[str, tuple[Principal, bytes]]:
    """Messages never hold the secret: they end up in start-up logs."""
    principal = read_verdict(caller) if isinstance(caller, (str, Principal)) else None
    if principal is None:
        raise DeclarationError("site", "A secret given to SharedSecret has no caller.", _REMEDY)
    if not isinstance(secret, str) or len(secret) < SHORTEST:
        detail = f"The secret of {principal.id} given to SharedSecret has less than {SHORTEST} characters."
        raise DeclarationError("site", detail, _REMEDY)
    return principal.id, (principal, secret.encode("utf-8", "surrogatepass"))

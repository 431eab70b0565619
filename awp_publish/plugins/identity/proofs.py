"""Proofs of keys: DPoP, RFC 9449. A proof names the method and the address of a request, and is good for this one.

The address is compared with the site's own. Deliberately left out: server-provided nonces (section 9), because the
store remembers every proof until it expires.
"""

import base64
import hashlib
import json
import logging
import re
import string
import time
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from awp_publish.calls.challenges import DPOP, PROOF_ALGORITHMS
from awp_publish.http.signed import SIGNED
from awp_publish.plugins.identity.fetching import MIN_RSA_BITS
from awp_publish.plugins.identity.own_address import address_of
from awp_publish.problems import InvalidBinding, InvalidProof
from awp_publish.schema.origins import Origin
from awp_publish.stores.store import Add, Store

logger: Final = logging.getLogger("awp_publish.calls")

PROOF_WINDOW: Final = 300.0
"""Seconds by which a proof's `iat` may differ from the present time."""

MAX_PROOF: Final = 8_192
"""Characters of a proof at most."""

PUBLIC_MEMBERS: Final = ("kty", "crv", "n", "e", "x", "y", "alg")
"""Members of a public key that are read (RFC 7518 section 6)."""

PRIVATE_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""Members of a key that only its owner may have (RFC 7518 section 6)."""

_IDENTITY: Final = {"RSA": ("e", "kty", "n"), "EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x")}
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset(string.ascii_letters + string.digits + "-._~")


@dataclass(frozen=True, slots=True)
class Proofs:
    """Checks the proofs in requests to a site at these addresses. Needs PyJWT.

    The `store` remembers which were used.
    """

    origins: Sequence[str]
    store: Store | None

    async def check(
        self,
        request: MutableMapping[str, Any] | None,
        proof: str | None,
        token: str | None = None,
        bound_to: str | None = None,
    ) -> str:
        """Return the thumbprint of the key that a request proves to have (section 4.3). Raises InvalidProof.

        `token` is the access token that it shows, if it is to be used, and `bound_to` the key to which this is bound;
        for another key InvalidBinding is raised.
        """
        from jwt import PyJWK, decode, get_unverified_header

        if not proof or request is None:
            raise _unproven("The header DPoP is missing.")
        if len(proof) > MAX_PROOF or "," in proof:
            raise _unproven(f"There is more than one header DPoP, or it has more than {MAX_PROOF} characters.")
        noted: MutableMapping[str, Any] = request.setdefault(SIGNED, {})
        if (checked := noted.get(DPOP)) and checked[:2] == (proof, token) and bound_to in (None, checked[2]):
            return str(checked[2])  # several gates may check one request, but its proof may be used once
        try:
            header = get_unverified_header(proof)
            algorithm, jwk = header.get("alg"), header.get("jwk")
            if header.get("typ") != "dpop+jwt" or algorithm not in PROOF_ALGORITHMS or "crit" in header:
                raise ValueError("another kind of token")
            if not isinstance(jwk, Mapping) or not PRIVATE_MEMBERS.isdisjoint(jwk):
                raise ValueError("no public key")
            key = PyJWK({name: jwk[name] for name in PUBLIC_MEMBERS if name in jwk}, algorithm)
            if jwk["kty"] == "RSA" and key.key.key_size < MIN_RSA_BITS:
                raise ValueError("a key too small")
            # A proof needs no exp and no nbf, but they hold for any JWT (RFC 7519 section 4.1).
            unchecked = {f"verify_{name}": False for name in ("iat", "aud", "iss", "sub", "jti")}
            options: Any = {"verify_signature": True, **unchecked}
            claims = decode(proof, key, algorithms=[algorithm], leeway=PROOF_WINDOW, options=options)
            facts = json.dumps({name: jwk[name] for name in _IDENTITY[jwk["kty"]]}, separators=(",", ":"))
            thumbprint = digest_of(facts)  # RFC 7638
        except Exception as error:  # a hostile proof may make its decoder raise anything
            logger.info("a proof was not valid: %s", type(error).__name__)
            raise _unproven(
                "It has expired, or is not a JWT of type dpop+jwt that is signed with the public key in its header."
            ) from None
        issued, once = claims.get("iat"), claims.get("jti")
        address, own = claims.get("htu"), address_of(request, self.origins).partition("?")[0]
        now = time.time()
        is_timely = isinstance(issued, (int, float)) and now - PROOF_WINDOW <= issued <= now + PROOF_WINDOW
        if bound_to not in (None, thumbprint):
            raise InvalidBinding("The proof is not valid. Its key is not the one that the token is bound to (cnf.jkt).")
        wrong = {
            "It is for another token (ath).": token is not None and claims.get("ath") != digest_of(token),
            "It is for another method (htm).": claims.get("htm") != request.get("method", "GET"),
            "It is for another address (htu).": not own
            or not isinstance(address, str)
            or _normal(address) != _normal(own),
            f"It was not made within {PROOF_WINDOW:g} seconds of now (iat).": not is_timely,
            "It has no id (jti).": not isinstance(once, str) or not 0 < len(once) <= MAX_PROOF,
        }
        for detail, is_so in wrong.items():
            if is_so:
                raise _unproven(detail)
        if self.store is not None:  # only valid proofs are remembered, so that nobody else can fill the store
            used = Add(f"dpop:{digest_of(f'{thumbprint}.{once}')}", b"1", 2 * PROOF_WINDOW)
            if (await self.store.run((used,))).failed is not None:
                raise _unproven("It has already been used for a request (jti).")
        noted[DPOP] = proof, token, thumbprint
        return thumbprint


def digest_of(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()).decode().rstrip("=")


def _normal(address: str) -> str:
    """Normalise an address without query and fragment (RFC 9449 section 4.3; RFC 3986 sections 6.2.2 and 6.2.3)."""
    try:
        parts = urlsplit(address)
        origin = Origin.of(parts)
    except ValueError:
        return ""
    if parts.username is not None or not address.isprintable():  # `urlsplit` drops tabs and line breaks
        return ""
    path = _ESCAPE.sub(
        lambda escape: char if (char := chr(int(escape[1], 16))) in _UNRESERVED else escape[0].upper(), parts.path
    )
    return f"{origin}{path or '/'}"


def _unproven(detail: str) -> InvalidProof:
    return InvalidProof(f"The proof is not valid. {detail}")

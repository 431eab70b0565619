"""The forms of our pages, each for one person, one purpose and one browser: nobody else can send them."""

import secrets
from collections.abc import Mapping
from typing import Any, Final

from awp_publish.calls.tokens import Expired, NotOurs, Tokens
from awp_publish.http.exchange import Fields
from awp_publish.plugins.sign_in.grants import digest_of
from awp_publish.plugins.sign_in.people import Visitor

COOKIE: Final = "awp_sign_in"
"""The cookie to which forms are bound."""


class Forms:
    """The tokens of forms below a `path` of an address, and the cookie with the nonce of a browser."""

    def __init__(self, tokens: Tokens, path: str, url: str) -> None:
        self._tokens = tokens
        secure = "; Secure" if url.startswith("https:") else ""
        self._attributes = f"Path={path}; HttpOnly; SameSite=Lax{secure}"

    def token_for(self, purpose: str, signed: Visitor, fields: Fields) -> tuple[str, tuple[bytes, bytes]]:
        """Return the token of a form in answer to a request with these `fields`, and the header with the cookie."""
        nonce = _nonce_of(fields) or secrets.token_urlsafe(24)
        token, _ = self._tokens.write(_facts(purpose, signed, nonce))
        return token, (b"set-cookie", f"{COOKIE}={nonce}; {self._attributes}".encode("latin-1"))

    def is_valid(self, token: str | None, purpose: str, signed: Visitor, fields: Fields) -> bool:
        """Return True if the form with this token was made for the person, the purpose and the browser of a request."""
        nonce, facts = _nonce_of(fields), read_signed(self._tokens, token or "")
        return bool(nonce) and facts is not None and _facts(purpose, signed, nonce).items() <= facts.items()


def _facts(purpose: str, signed: Visitor, nonce: str) -> dict[str, str]:
    return {"f": digest_of(purpose), "p": signed.principal.key, "n": digest_of(nonce)}


def _nonce_of(fields: Fields) -> str:
    pairs = (pair.strip().partition("=") for pair in fields.get(b"cookie", b"").decode("latin-1").split(";"))
    return next((value for name, _, value in pairs if name == COOKIE), "")


def read_signed(tokens: Tokens, token: str) -> Mapping[str, Any] | None:
    """Return the facts of a signed text, None if it is not ours or is over."""
    try:
        return tokens.read(token)
    except (NotOurs, Expired):
        return None

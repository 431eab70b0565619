"""Credentials of a request: headers, session, user and address."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from awp_publish.calls.call import Credentials
from awp_publish.http.client_address import TrustedProxies, client_address
from awp_publish.http.exchange import Fields, Scope

_NO_SCOPES: Final[frozenset[str]] = frozenset()


def read_credentials(scope: Scope, fields: Fields, trusted_proxies: TrustedProxies) -> Credentials:
    """Return the credentials of an ASGI request. `fields` are its headers, as returned by `read_fields`."""
    granted, scopes = scope.get("auth"), _NO_SCOPES
    if granted is not None and isinstance(given := getattr(granted, "scopes", ()), (list, tuple, set, frozenset)):
        scopes = frozenset(given)  # from Starlette's AuthCredentials
    signed = scope if b"signature-input" in fields or b"dpop" in fields else None
    address, query = client_address(scope, fields, trusted_proxies), scope.get("query_string", b"")
    user = scope.get("user")
    return Credentials(_Headers(fields), address, scope.get("session"), user, scopes, None, query, signed)


class _Headers(Mapping[str, str]):
    """Headers as text, decoded on access: authenticators read only one of many."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Fields) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        return self._fields[name.encode("latin-1")].decode("latin-1")

    def get(self, name: str, default: Any = None) -> Any:
        """Return a header or the default. Unlike `Mapping.get`, this needs no exception."""
        value = self._fields.get(name.encode("latin-1"))
        return default if value is None else value.decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._fields)

    def __len__(self) -> int:
        return len(self._fields)

"""Origins of web addresses: scheme, host and port, with the default port of the scheme."""

from typing import Final, NamedTuple, Self
from urllib.parse import SplitResult

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Scheme, host and port of an address (RFC 6454 section 4). As text it is without the scheme's default port."""

    scheme: str
    host: str
    port: int | None

    @classmethod
    def of(cls, parts: SplitResult) -> Self:
        """Return the origin of an address. The host is in lower case, without brackets.

        Raises:
            ValueError: the port is not a number up to 65535.
        """
        port = parts.port
        return cls(parts.scheme, parts.hostname or "", DEFAULT_PORTS.get(parts.scheme) if port is None else port)

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """The host, in brackets if it is an IPv6 address, and the port where it is not the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in (None, DEFAULT_PORTS.get(self.scheme)) else f"{host}:{self.port}"

"""Reads the URLs of Redis and Valkey: of one server, of the nodes of a cluster, of the sentinels of a primary."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import unquote, urlsplit

import redis
from redis.connection import SSLConnection, parse_url
from redis.exceptions import RedisError

from awp_publish.problems import DeclarationError

REMEDY: Final = (
    'Write store="redis://host:6379/0", store="redis+cluster://host:6379,host:6379" or '
    'store="redis+sentinel://host:26379,host:26379/name-of-the-primary", with a percent-encoded password before the '
    "first host: redis://:password@host:6379/0."
)
SENTINEL_PORT: Final = 26379


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """The address of a store: `hosts` are servers, the first nodes of a cluster, or sentinels that know the `primary`.

    `url` is that of a single server; `options` are those of redis-py for each connection.
    """

    kind: Literal["", "cluster", "sentinel"]
    url: str
    hosts: tuple[tuple[str, int], ...]
    primary: str = ""
    options: dict[str, Any] = field(default_factory=dict, repr=False)


def read_address(url: str) -> RedisAddress:
    """Parse a URL. Raises DeclarationError without repeating it: it may contain a password."""
    try:  # so that mistakes are found at start-up; this does not connect
        return _read(url)
    except (ValueError, TypeError, RedisError):
        raise DeclarationError("site", "store= is a Redis URL that cannot be read.", REMEDY) from None


def _read(url: str) -> RedisAddress:
    scheme, separator, rest = url.partition(":")
    plain, _, kind = scheme.replace("valkey", "redis").partition("+")
    url = plain + separator + rest
    if kind not in ("cluster", "sentinel"):
        pool = redis.ConnectionPool.from_url(url)
        pool.connection_class(**pool.connection_kwargs)
        number = urlsplit(url).path.removeprefix("/")
        if plain != "unix" and number and not number.isdecimal():
            raise ValueError(number)
        return RedisAddress("", url, ())
    parts = urlsplit(url)
    login, _, hosts = parts.netloc.rpartition("@")
    primary, _, number = unquote(parts.path.removeprefix("/")).partition("/")
    if kind == "cluster":
        primary, number = "", primary  # a cluster has one database
    if (kind == "sentinel") != bool(primary) or not (number or "0").isdecimal() or (kind == "cluster" and number > "0"):
        raise ValueError(parts.path)
    parse: Callable[[str], dict[str, Any]] = parse_url
    options = parse(f"{plain}://{login}@host/{number}?{parts.query}")
    if options.pop("connection_class", None) is SSLConnection:
        options["ssl"] = True
    del options["host"]
    if kind == "cluster":
        options.pop("db", None)
    redis.Redis(**options)  # refuses options that do not exist
    port = SENTINEL_PORT if kind == "sentinel" else 6379
    read = [urlsplit(f"//{host}") for host in hosts.split(",")]
    addresses = tuple((host.hostname or "", host.port or port) for host in read)
    if not all(host for host, _ in addresses):
        raise ValueError(hosts)
    return RedisAddress(kind, url, addresses, primary, options)  # type: ignore[arg-type]  # one of the two

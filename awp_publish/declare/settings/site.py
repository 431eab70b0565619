"""The options of `Site(...)`."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Final, cast
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from awp_publish.declare.settings.about import About
from awp_publish.declare.settings.proxies import Proxies, check_proxies
from awp_publish.declare.settings.rates import Rate
from awp_publish.model import Paths
from awp_publish.schema.options import (
    Count,
    Duration,
    Flag,
    LazyAdapter,
    Link,
    Option,
    Seconds,
    Text,
    check_origin,
    check_url,
    matching,
    strict,
    unpack,
)

URL_VARIABLE: Final = "AWP_PUBLISH_URL"

URL_SOURCES: Final[list[Callable[[], object]]] = []
"""Functions that return a framework's setting for the address of a site that does not give one, or None."""

_PATH: Final = re.compile(r"/(?!/)[A-Za-z0-9._~!$&'()*+,;=:@{}/-]*")


def check_paths(paths: Paths) -> Paths:
    """Check that paths have no placeholders, except {agent_id} in `invoke`, at most once, in its path or its query."""
    path, _, query = paths.invoke.partition("?")
    if not _PATH.fullmatch(path) or path == "/" or not re.fullmatch(r"[!-~]*", query) or "#" in query:
        raise ValueError(f'invoke {paths.invoke!r} must be a path such as "/agents/{{agent_id}}/invoke"')
    if paths.invoke.count("{agent_id}") > 1 or re.search(r"[{}]", paths.invoke.replace("{agent_id}", "")):
        raise ValueError(f"invoke {paths.invoke!r} may hold {{agent_id}} once and no other placeholder")
    for name in ("root", "mcp", "a2a", "awp", "bridge"):
        plain = getattr(paths, name)
        if not _PATH.fullmatch(plain) or re.search(r"[{}]|/$", plain):
            raise ValueError(f'{name} {plain!r} must be a path such as "{getattr(Paths(), name)}"')
    return paths


SHORTEST_KEY: Final = 16
"""Characters of a secret key at least: shorter keys could be guessed."""

check_error_code: Final = matching(
    r"[A-Z][A-Z0-9_]*", '{!r} is not an error code; write it in capitals, such as "SOLD_OUT"'
)


def read_secret_keys(value: object) -> tuple[str, ...]:
    """Read one key or several, the newest first: the newest signs, all of them verify."""
    keys = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else ()
    if not keys or not all(isinstance(key, str) and len(key) >= SHORTEST_KEY for key in keys):
        raise ValueError(
            f"must be one or several texts of at least {SHORTEST_KEY} characters, the newest first; "
            'make one with: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        )
    return keys


def check_authorization_server(value: str) -> str:
    """Check an issuer identifier (RFC 8414 section 2) and return it exactly as written."""
    check_url(value)
    return value


def read_urls(value: object) -> tuple[str, ...]:
    """Return the site's addresses; the environment variable may hold several, separated by commas."""
    if value is None:
        value = next((setting for source in URL_SOURCES if (setting := source()) is not None), None)
    if value is None:
        listed: list[object] = [url.strip() for url in os.environ.get(URL_VARIABLE, "").split(",") if url.strip()]
    else:
        listed = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not listed or listed == [""]:
        raise ValueError(f"is required; give Site(url=...) or set {URL_VARIABLE}")
    urls: list[str] = []
    for url in listed:
        if not isinstance(url, str):
            raise ValueError("must be text")
        urls.append(check_url(url))
    hosts = [urlsplit(url).netloc for url in urls]
    for host in hosts:
        if hosts.count(host) > 1:
            raise ValueError(f"two addresses are at {host}, and requests could not tell them apart")
    return tuple(urls)


@strict
@dataclass(frozen=True, slots=True)
class OAuth:
    """The issuers of the tokens that a site accepts.

    `authorization_servers` are their issuer identifiers (RFC 9728 section 2). `token_expiry` is a duration such as
    "24h"; `refresh_endpoint` and the values of `endpoints` are paths or URLs.
    """

    authorization_servers: tuple[Annotated[str, AfterValidator(check_authorization_server)], ...] = ()
    endpoints: Mapping[str, Link] = field(default_factory=dict)
    token_expiry: Duration | None = None
    refresh_endpoint: Link | None = None


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that hold for each call. An action may have its own."""

    rate_limit: Annotated[
        Rate | None,
        Option(
            'for all actions together, per caller: `"100/hour"`, `"9 per 5 minutes"` and [others](guards.md#limits)',
            "AWAS `rateLimit`",
        ),
    ] = None
    timeout: Annotated[Seconds, Option("seconds for a handler; 30 by default", "not published")] = 30.0
    max_body_bytes: Annotated[Count, Option("bytes of a call's body; 1 MiB by default", "not published")] = 1_048_576


@strict
@dataclass(frozen=True, slots=True)
class SiteSettings:
    """All options of a `Site`. docs/site.md has one line on each."""

    name: Annotated[Text, Option("the site's name; required", "everywhere")]
    description: Annotated[
        Text, Option("its purpose, in a sentence; required", "everywhere, as `intent` in agent.json")
    ]
    url: Annotated[
        str | Sequence[str] | None,
        PlainValidator(read_urls),
        Field(validate_default=True),
        Option("the public address, or several", "everywhere"),
    ] = None
    _: KW_ONLY
    about: Annotated[
        About,
        BeforeValidator(unpack),
        Option("`About(...)`: facts about the site", "see below"),
    ] = field(default_factory=About)
    oauth: Annotated[
        OAuth | None,
        BeforeValidator(unpack),
        Option(
            "`OAuth(authorization_servers, endpoints, token_expiry, refresh_endpoint)`: where callers get tokens",
            "agent.json `auth`, AWAS `authentication`, RFC 9728 metadata, the agent card",
        ),
    ] = None
    errors: Annotated[
        Mapping[Annotated[str, AfterValidator(check_error_code)], Text],
        Option(
            "recovery texts by error code, for [refusals](calls.md#refusing-in-a-handler)",
            "agent.json `errors`, problems",
        ),
    ] = field(default_factory=dict)
    paths: Annotated[
        Paths,
        BeforeValidator(unpack),
        AfterValidator(check_paths),
        Option(
            '`Paths(root="/agents", invoke="/agents/{agent_id}/invoke", mcp="/mcp", a2a="/a2a", awp="/awp", '
            'bridge="/actions-bridge")`; actions, jobs, problem types and the status are below `root`',
            "wherever an address is",
        ),
    ] = field(default_factory=Paths)
    plugins: Annotated[object, Option("the site's [features](#features)", "see each")] = ()
    limits: Annotated[
        Limits,
        BeforeValidator(unpack),
        Option("`Limits(...)`: limits of each call", "see below"),
    ] = Limits()
    allow_origins: Annotated[
        Sequence[Annotated[str, AfterValidator(check_origin)]],
        Option('origins whose pages may call from a browser, `["*"]` for all', "AWAS `security`"),
    ] = ()
    guard_routes: Annotated[
        Flag,
        Option(
            "whether gates also apply to [direct requests](guards.md#routes-themselves) of actions' routes",
            "not published",
        ),
    ] = False
    store: Annotated[
        object,
        Option("where the state of calls is kept: a [store](stores.md)", "not published"),
    ] = "memory:"
    secret_keys: Annotated[
        str | Sequence[str],
        PlainValidator(read_secret_keys),
        Option(
            "the keys that sign confirmations and receipts, the newest first; 16 characters or more", "not published"
        ),
    ] = field(default=(), repr=False)
    authenticate: Annotated[
        object,
        Option(
            "how [callers are authenticated](guards.md#who-calls)",
            "agent.json `auth`, AWAS `authentication`, the agent card",
        ),
    ] = field(default=None, repr=False)
    proxies: Annotated[
        Proxies,
        BeforeValidator(unpack),
        AfterValidator(check_proxies),
        Option(
            '`Proxies(trusted, header)`: the proxies (addresses, networks, `"unix"`) whose header names the '
            "[caller's address](security.md#requests-of-browsers-and-addresses-of-callers)",
            "not published",
        ),
    ] = field(default_factory=Proxies)
    log_inputs: Annotated[Flag, Option("whether the log of calls includes their inputs", "not published")] = False

    @property
    def urls(self) -> tuple[str, ...]:
        """The public addresses, the canonical one first."""
        return cast(tuple[str, ...], self.url)

    @property
    def namespace(self) -> str:
        """The canonical address without its scheme, which prefixes the keys in the store and is part of signed tokens.

        Sites below different paths of one host may share a store and secret keys.
        """
        return self.urls[0].partition("://")[2]


SITE: Final[LazyAdapter[SiteSettings]] = LazyAdapter(SiteSettings)

"""What every HTTP door of one site holds its requests to, before they are calls."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from awp_publish.serve.credentials import TrustedProxies, read_trusted_proxies
from awp_publish.site import Site


@dataclass(frozen=True, slots=True)
class Admission:
    """A size in bytes; other origins whose pages may call; the hosts of the site itself; proxies that are believed."""

    max_body_bytes: int
    allow_origins: tuple[str, ...]
    own_hosts: frozenset[str]
    trusted_proxies: TrustedProxies


def read_admission_of(site: Site) -> Admission:
    """What the site declares."""
    return Admission(
        site.limits.max_body_bytes,
        site.limits.allow_origins,
        frozenset(urlsplit(url).netloc.lower() for url in site.urls),
        read_trusted_proxies(site.guarding.trusted_proxies, site.guarding.forwarded),
    )

"""Limits that apply to requests at every HTTP door of a site."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from awp_publish.declare.settings.site import SiteSettings
from awp_publish.http.body import too_large
from awp_publish.http.client_address import TrustedProxies, read_trusted_proxies
from awp_publish.http.origins import origin_of
from awp_publish.model import Action


@dataclass(frozen=True, slots=True)
class Admission:
    """Limits of all doors: body sizes in bytes, origins whose pages may call, the site's own origins, trusted proxies.

    A door reads up to `max_body_bytes`, the largest limit of any action, and calls `check_size` once it knows the
    action. `usual_body_bytes` is the limit of actions that declare none, `smallest_body_bytes` that of the smallest.
    """

    max_body_bytes: int
    allow_origins: tuple[str, ...]
    own_origins: frozenset[str]
    trusted_proxies: TrustedProxies
    usual_body_bytes: int
    smallest_body_bytes: int

    def check_size(self, action: Action, size: int) -> None:
        """Raise BodyTooLarge if a body of `size` bytes exceeds the action's limit."""
        most = action.max_body_bytes or self.usual_body_bytes
        if size > most:
            raise too_large(most)


def largest_body(settings: SiteSettings, actions: Iterable[Action]) -> int:
    """Return the largest limit of any action, in bytes."""
    return max([settings.limits.max_body_bytes, *(action.max_body_bytes or 0 for action in actions)])


def read_admission_of(settings: SiteSettings, actions: Collection[Action] = ()) -> Admission:
    usual = settings.limits.max_body_bytes
    return Admission(
        largest_body(settings, actions),
        tuple(settings.allow_origins),
        frozenset(map(origin_of, settings.urls)),
        read_trusted_proxies(settings.proxies.trusted, settings.proxies.header),
        usual,
        min([usual, *filter(None, (action.max_body_bytes for action in actions))]),
    )

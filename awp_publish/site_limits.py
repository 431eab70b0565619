"""What the doors of a site hold every call to, whatever it calls."""

from dataclasses import dataclass, field

from awp_publish.model import Browsing
from awp_publish.options import SiteOptions


@dataclass(frozen=True)
class Limits:
    """What the doors hold every call to. `timeout` in seconds, `max_body_bytes` in bytes.

    `list_only_allowed` says that doors which tell their callers what there is tell each what they may call,
    `trust_outer_middleware` that no middleware outside of us decides by the path of a request.
    """

    timeout: float = 30.0
    max_body_bytes: int = 1_048_576
    allow_origins: tuple[str, ...] = ()
    list_only_allowed: bool = False
    trust_outer_middleware: bool = False
    browsing: Browsing = field(default_factory=Browsing)


def read_limits(checked: SiteOptions) -> Limits:
    """The limits of a site, from options that have been checked."""
    return Limits(
        checked.get("timeout", Limits.timeout),
        checked.get("max_body_bytes", Limits.max_body_bytes),
        tuple(checked.get("allow_origins", ())),
        checked.get("list_only_allowed", False),
        checked.get("trust_outer_middleware", False),
        checked.get("browsing", Browsing()),
    )

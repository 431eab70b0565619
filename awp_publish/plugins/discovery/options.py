"""The options of the files that crawlers look for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator

from awp_publish.model import Robots, Security
from awp_publish.schema.options import Flag, check_link, read_moment, strict, unpack

_SIGNALS: Final = {
    "search": ("yes", "no"),
    "ai-input": ("yes", "no"),
    "ai-train": ("yes", "no"),
    "use": ("immediate", "reference", "full"),
}
"""The keys of Content-Signal and their values."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9_.-]+")


def check_robots(value: Robots) -> Robots:
    """Refuse values that would break a line of robots.txt, and unknown signals."""
    for path in value.disallow:
        if not re.fullmatch(r"/[!-~]*", path):
            raise ValueError(f'disallow: {path!r} must be a path such as "/account", without spaces')
    for name in value.bots:
        if not _TOKEN.fullmatch(name):
            raise ValueError(f'bots: {name!r} is not the name of a crawler, such as "GPTBot"')
    for name, signal in value.content_signal.items():
        if name not in _SIGNALS or signal not in _SIGNALS[name]:
            signals = "; ".join(f"{key}: {', '.join(values)}" for key, values in _SIGNALS.items())
            raise ValueError(f"content_signal: {name}={signal} is not known. There are: {signals}")
    if value.content_usage is not None and not re.fullmatch(r"[!-~]+(?: [!-~]+)*", value.content_usage):
        raise ValueError('content_usage must be one line of AIPREF, such as "train-ai=n"')
    if value.license is not None:
        check_link(value.license)
    return value


def read_security(value: object) -> object:
    """Parse the time at which it expires, as other dates are parsed."""
    members = unpack(value)
    if isinstance(members, Mapping) and "expires" in members:
        return {**members, "expires": read_moment(members["expires"])}
    return members


def check_security(value: Security) -> Security:
    """Check that there is a contact and an expiry time in the future (RFC 9116 sections 2.5.3 and 2.5.5)."""
    for contact in value.contact:
        if not re.fullmatch(r"(?:mailto:|tel:|https://)[!-~]+|/[!-~]*", contact):
            raise ValueError(f'contact: {contact!r} must be "mailto:...", "tel:...", "https://..." or a path')
    if not value.contact:
        raise ValueError('contact is required, such as ["mailto:security@shop.example"]')
    if not isinstance(value.expires, datetime):
        raise ValueError("expires must be a date or a datetime")
    for language in value.languages:
        if not re.fullmatch(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*", language):
            raise ValueError(f'languages: {language!r} is not a language tag, such as "en"')
    if value.policy is not None:
        check_link(value.policy)
    return value


NO_RULES: Final = Robots()


@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The files that agents and crawlers look for.

    `robots` is the content of robots.txt if the application has none of its own. `robots_proposals` adds lines to it
    that only proposals have (`Agentmap`, `SOM-*`): crawlers skip what they do not know (RFC 9309 section 2.2.4), but
    Lighthouse reports such lines as errors. `security` says where to report vulnerabilities:
    `Security(contact=["mailto:..."], expires="2027-06-30", policy, languages)`.
    """

    robots: Annotated[Robots, BeforeValidator(unpack), AfterValidator(check_robots)] = NO_RULES
    robots_proposals: Flag = False
    security: Annotated[Security, BeforeValidator(read_security), AfterValidator(check_security)] | None = None

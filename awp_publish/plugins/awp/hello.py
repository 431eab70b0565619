"""`awp.hello`: what client and server tell each other of themselves.

In the MVP (section 4.1) a client sends client_name, client_version and awp_version, and gets a list of features; in
the draft (Handshake) it sends client, awp.versions and wants, and gets an object of features. All else is the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from awp_publish.browsing.browser import PAGE_BYTES
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.observing import FORMATS
from awp_publish.model import Catalog, JsonObject, __version__
from awp_publish.plugins.awp.messages import MUTATION
from awp_publish.plugins.awp.sessions import Sessions

VERSION: Final = "0.1"
ENCODINGS: Final = ("json", "msgpack")
NAME: Final = "awp-publish"
FEATURES: Final = (
    "som.snapshot",
    "som.mutations",
    "act.primitive",
    "extract",
    "pages",
    "history",
    "cookies",
    "sessions.list",
    "sessions.resume",
    "sessions.export",
    "idempotency",
    "encoding.msgpack",
)
"""The features of a site that can be browsed; "skills.invoke" is added if it has actions."""


@dataclass(frozen=True, slots=True)
class Hello:
    """A client's handshake: whether it is the draft's, the encoding of answers, and the events that it wants.

    `cursors` are its positions in the site's events. With `concurrency`, requests of one session for different pages do
    not wait for one another (paper, 4.2).
    """

    is_draft: bool
    encoding: str
    events: frozenset[str]
    concurrency: bool
    cursors: Mapping[str, str] = field(default_factory=dict)


def read_hello(params: Mapping[str, object], *, is_packed: bool, event_ids: frozenset[str] = frozenset()) -> Hello:
    """Read a handshake; `event_ids` are those of the site's events.

    Raises AwpError: INVALID_REQUEST for another version, UNSUPPORTED for other encodings.
    """
    single = params.get("awp_version")
    if single is not None and not isinstance(single, str):
        refuse("awp_version must be a string.", param="awp_version")
    versions = [*_texts(_object(params, "awp"), "versions"), *([single] if single is not None else [])]
    if VERSION not in (versions or [VERSION]):
        requested = ", ".join(versions)[:100]
        raise AwpError("INVALID_REQUEST", f"Unsupported AWP version: {requested}", {"supported": [VERSION]})
    wants = _object(params, "wants")
    encodings = _texts(wants, "encoding") or ["msgpack" if is_packed else "json"]
    encoding = next((name for name in encodings if name in ENCODINGS), None)
    if encoding is None:
        raise AwpError("UNSUPPORTED", "None of the encodings is supported.", {"supported": list(ENCODINGS)})
    is_draft = any(name in params for name in ("client", "awp", "wants"))
    at_once = not _CONCURRENCY.isdisjoint(_texts(wants, "features"))
    for name in ("concurrency", "concurrent"):
        value = wants.get(name)
        at_once = at_once or value is True
        if not isinstance(value, bool):
            at_once = at_once or not _PAGES.isdisjoint(_texts(wants, name))
    cursors = {name: text for name, text in _object(wants, "cursors").items() if isinstance(text, str)}
    return Hello(is_draft, encoding, frozenset(_texts(wants, "events")) & {MUTATION, *event_ids}, at_once, cursors)


_CONCURRENCY: Final = frozenset(("concurrency", "concurrent", "pages.concurrent"))
_PAGES: Final = frozenset(("page", "pages"))


def _object(params: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = params.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        refuse(f"{name} must be an object.", param=name)
    return value


def _texts(params: Mapping[str, object], name: str) -> list[str]:
    value = params.get(name)
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        refuse(f"{name} must be a list of strings.", param=name)
    return value


def render_hello(
    catalog: Catalog, sessions: Sessions, hello: Hello, auth: JsonObject, offered: list[str]
) -> JsonObject:
    """Render the result of a handshake. `offered` are the events of the site to which the caller may subscribe."""

    has_skills = bool(catalog.actions)
    limits = sessions.describe_limits()
    features: object = [*FEATURES, *(["skills.invoke"] if has_skills else [])]
    if hello.is_draft:
        features = {
            "som": {"snapshot": True, "mutation": True, "formats": list(FORMATS), "max_bytes": PAGE_BYTES},
            "skills": {"invoke": has_skills, "registry": True},
            "network": {"proxy": False, "profiles": []},
            "limits": limits,
        }
    return {
        "awp_version": VERSION,
        "server_name": NAME,
        "server_version": __version__,
        "features": features,
        "awp": {"version": VERSION},
        "encoding": {"selected": hello.encoding},
        "compression": {"selected": "none"},
        "concurrency": {"selected": "pages" if hello.concurrency else "none"},
        "server": {"name": NAME, "version": __version__, "site": catalog.site.name, "url": catalog.url},
        "limits": limits,
        "events": sorted(hello.events),
        **({"available_events": offered} if offered else {}),
        "auth": auth,
    }

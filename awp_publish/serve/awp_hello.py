"""`awp.hello`: which version, which encoding, what there is. Both shapes are understood, and answered each in its own.

The MVP (section 4.1) sends client_name, client_version and awp_version, and is told a list of features; the draft
(Handshake) sends client, awp.versions and wants, and is told an object of features. Everything else is in both answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import awp_publish
from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.observing import FORMATS
from awp_publish.model import Browsing, Catalog, JsonObject
from awp_publish.serve.awp_events import MUTATION

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
"""What a site has that browses; "skills.invoke" where it has actions."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a client asked for: its shape of the handshake, the encoding, and the events that it wants to be told."""

    is_draft: bool
    encoding: str
    events: frozenset[str]


def read_hello(params: Mapping[str, object], *, is_packed: bool) -> Wishes:
    """What a client asks for. Raises AwpError: INVALID_REQUEST for another version, UNSUPPORTED for other encodings."""
    is_draft = any(name in params for name in ("client", "awp", "wants"))
    _check_version(_read_versions(params))
    wants = _read_object(params, "wants")
    return Wishes(is_draft, _choose_encoding(wants, is_packed), frozenset(_read_texts(wants, "events")) & {MUTATION})


def _read_versions(params: Mapping[str, object]) -> list[str]:
    """What is missing is taken for 0.1."""
    single = params.get("awp_version")
    if single is not None and not isinstance(single, str):
        refuse("awp_version must be text.", param="awp_version")
    listed = _read_texts(_read_object(params, "awp"), "versions")
    return [*listed, *([single] if single is not None else [])] or [VERSION]


def _check_version(versions: list[str]) -> None:
    if VERSION not in versions:
        named = ", ".join(versions)[:100]
        raise AwpError("INVALID_REQUEST", f"Unsupported AWP version: {named}", {"supported": [VERSION]})


def _choose_encoding(wants: Mapping[str, object], is_packed: bool) -> str:
    """The first that a client names and we speak; without any, the one it speaks already."""
    wanted = _read_texts(wants, "encoding")
    for name in wanted:
        if name in ENCODINGS:
            return name
    if wanted:
        raise AwpError("UNSUPPORTED", "None of the encodings is spoken here.", {"supported": list(ENCODINGS)})
    return "msgpack" if is_packed else "json"


def _read_object(params: Mapping[str, object], name: str) -> Mapping[str, object]:
    given = params.get(name)
    if given is None:
        return {}
    if not isinstance(given, dict):
        refuse(f"{name} must be an object.", param=name)
    return given


def _read_texts(params: Mapping[str, object], name: str) -> list[str]:
    given = params.get(name)
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        refuse(f"{name} must be a list of texts.", param=name)
    return given


# --- The answer ---


def tell_hello(catalog: Catalog, browsing: Browsing, wishes: Wishes, auth: JsonObject) -> dict[str, object]:
    """The result of a handshake."""
    limits = _limits(browsing)
    features = _features(catalog, browsing, limits) if wishes.is_draft else _feature_names(catalog)
    return {
        "awp_version": VERSION,
        "server_name": NAME,
        "server_version": awp_publish.__version__,
        "features": features,
        "awp": {"version": VERSION},
        "encoding": {"selected": wishes.encoding},
        "compression": {"selected": "none"},
        "server": {"name": NAME, "version": awp_publish.__version__, "site": catalog.site.name, "url": catalog.url},
        "limits": limits,
        "events": sorted(wishes.events),
        "auth": auth,
    }


def _limits(browsing: Browsing) -> dict[str, object]:
    return {
        "max_sessions": min(browsing.sessions, browsing.sessions_per_address, browsing.sessions_per_connection),
        "max_pages_per_session": browsing.pages_per_session,
        "max_messages_per_second": browsing.messages_per_second,
    }


def _feature_names(catalog: Catalog) -> list[str]:
    return [*FEATURES, *(["skills.invoke"] if catalog.actions else [])]


def _features(catalog: Catalog, browsing: Browsing, limits: JsonObject) -> dict[str, object]:
    return {
        "som": {"snapshot": True, "mutation": True, "formats": list(FORMATS), "max_bytes": browsing.page_bytes},
        "skills": {"invoke": bool(catalog.actions), "registry": True},
        "network": {"proxy": False, "profiles": []},
        "limits": limits,
    }

"""WoA rules about transports: names, URLs, and the plain concatenation of base and invoke_path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from awp_publish.checks.finding import Flaw, shown
from awp_publish.checks.pointer import child, strings
from awp_publish.checks.text import everything
from awp_publish.checks.urls import PLACEHOLDER, is_loopback, is_private, split, url_fault

Document = Mapping[str, object]

REGISTERED = ("rest", "mcp")
PLACEHOLDER_TEXT = "{agent_id}"
_REVERSE_DNS = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)+")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def bad_transport_names(document: Document) -> Iterator[Flaw]:
    """Find names that are neither registered nor in reverse DNS form."""
    transports = document.get("transports")
    for name in transports if isinstance(transports, Mapping) else ():
        if name in REGISTERED or _REVERSE_DNS.fullmatch(name):
            continue
        place, message = child("/transports", name), f"The transport name {shown(name)} is not registered."
        if name.strip().lower() in REGISTERED:
            yield Flaw(place, message, f'Write "{name.strip().lower()}"; names are compared exactly.')
        else:
            yield Flaw(place, message)


def bad_base(document: Document) -> Iterator[Flaw]:
    """Find a rest base that is not an absolute https URL without query and fragment."""
    for pointer, base in strings(document, "/transports/rest/base"):
        fault = _base_fault(base)
        if fault:
            yield Flaw(pointer, f"The base {shown(base)} {fault}.")


def _base_fault(base: str) -> str | None:
    fault, parts = url_fault(base), split(base)
    if fault or parts is None:
        return fault
    if not parts.scheme or not parts.hostname:
        return "is not an absolute URL"
    if parts.scheme != "https" and not _is_local_http(base):
        return f"has the scheme {parts.scheme} and not https"
    if "?" in base or "#" in base:
        return "has a query or fragment, after which no path can follow"
    return "contains a user name" if "@" in parts.netloc else None


def _is_local_http(base: str) -> bool:
    parts = split(base)
    return parts is not None and parts.scheme == "http" and bool(parts.hostname) and is_loopback(parts.hostname or "")


def loopback_base(document: Document) -> Iterator[Flaw]:
    """Find a rest base that is plain http on this machine: good for trying out only."""
    for pointer, base in strings(document, "/transports/rest/base"):
        if _is_local_http(base):
            yield Flaw(pointer, f"The base {shown(base)} is plain http on the machine itself.")


def bad_invoke_path(document: Document) -> Iterator[Flaw]:
    """Find an invoke_path that does not begin with "/" or cannot stand in a URL."""
    for pointer, path in strings(document, "/transports/rest/invoke_path"):
        fault = url_fault(PLACEHOLDER.sub("x", path))
        if not path.startswith("/"):
            fault = 'does not begin with "/"'
        elif "#" in path:
            fault = "has a fragment, which is never sent"
        if fault:
            yield Flaw(pointer, f"The invoke_path {shown(path)} {fault}.")


def bad_placeholder(document: Document) -> Iterator[Flaw]:
    """Find braces in the invoke_path that are not `{agent_id}` and so stay where they are."""
    for pointer, path in strings(document, "/transports/rest/invoke_path"):
        rest = path.replace(PLACEHOLDER_TEXT, "")
        if "{" in rest or "}" in rest:
            found = PLACEHOLDER.search(rest)
            yield Flaw(pointer, f"{shown(found[0] if found else path)} is not {PLACEHOLDER_TEXT}.")


def double_slash(document: Document) -> Iterator[Flaw]:
    """Find a base and a path whose concatenation contains "//"."""
    for _, base in strings(document, "/transports/rest/base"):
        for pointer, path in strings(document, "/transports/rest/invoke_path"):
            joined = (base + path).partition("?")[0]
            if "//" in joined.partition("://")[2]:
                place = "/transports/rest/base" if base.endswith("/") else pointer
                yield Flaw(place, f"base and invoke_path together give {shown(joined)}.")


def private_addresses(document: Document) -> Iterator[Flaw]:
    """Find URLs of transports that lead to private or link-local addresses."""
    for pointer, text in everything(document.get("transports")):
        if not isinstance(text, str) or not _URL.match(text):
            continue
        host = parts.hostname if (parts := split(text)) else None
        local_base = pointer == "/rest/base" and _is_local_http(text)
        if host and is_private(host) and not local_base:
            yield Flaw(f"/transports{pointer}", f"{shown(text)} leads to a private address.")

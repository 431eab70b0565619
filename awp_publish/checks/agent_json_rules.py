"""agent.json rules about a document as a whole and about its actions. `agent_json.py` has the table of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from awp_publish.checks import shape
from awp_publish.checks.agent_json_shape import (
    KNOWN_MAJORS,
    OTHER_STANDARDS,
    REACHED_PROTOCOLS,
    REGISTERED_PROTOCOLS,
    SHAPES,
    SPEC,
    knows_protocols,
    version,
)
from awp_publish.checks.consequences import grave_word
from awp_publish.checks.finding import Flaw, shown
from awp_publish.checks.pointer import child, objects, strings
from awp_publish.checks.times import is_timestamp
from awp_publish.checks.urls import PLACEHOLDER, is_absolute, is_host_name, split, url_fault

Document = Mapping[str, object]

SYNTHETIC = {"source": "synthetic", "generated_by": "who made it", "confidence": "0 to 1", "last_verified": "a time"}
ENDPOINTS = (
    "/actions/[]/endpoint",
    "/actions/[]/poll_endpoint",
    "/auth/refresh_endpoint",
    "/agent_status/status_endpoint",
)
_RATE_LIMIT = re.compile(
    r"0*[1-9]\d*\s*(?:/|per)\s*(?:\d*\s*)(?:s|sec|second|m|min|minute|h|hr|hour|d|day|week|month)s?", re.IGNORECASE
)
_DURATION = re.compile(
    r"0*[1-9]\d*\s*(?:ms|[smhdwy]|(?:sec|min|hr|second|minute|hour|day|week|month|year)s?)|P\S+|never"
)


def other_standard(document: Document) -> Iterator[Flaw]:
    """Recognise another standard's file of the same name."""
    if "awp_version" in document:
        return
    for name, members in OTHER_STANDARDS:
        if all(member in document for member in members):
            told = ", ".join(members)
            yield Flaw("/awp_version", f"This is not an AWP document: its members {told} are those of {name}.")
            return


def missing(document: Document) -> Iterator[Flaw]:
    """Find required members that are not there; endpoint and method may be replaced by `via` since 0.2."""
    yield from shape.missing(SHAPES, document)
    for pointer, action in objects(document, "/actions/[]"):
        via = action.get("via") if knows_protocols(document) else None
        for name in ("endpoint", "method"):
            if name not in action and not _supplied(document, via, name):
                yield Flaw(child(pointer, name), f'An action has no "{name}".', source=f"{SPEC} section 9")


def _supplied(document: Document, via: object, name: str) -> bool:
    if not isinstance(via, str):
        return False
    protocol = _protocols(document).get(via)
    # A transport without endpoint and an undeclared protocol are reported at the place where they stand.
    known_elsewhere = via in REACHED_PROTOCOLS or not isinstance(protocol, Mapping)
    return name == "method" or known_elsewhere or (isinstance(protocol, Mapping) and "endpoint" in protocol)


def _protocols(document: Document) -> Mapping[str, object]:
    protocols = document.get("protocols")
    return protocols if isinstance(protocols, Mapping) else {}


def bad_version(document: Document) -> Iterator[Flaw]:
    """Find an awp_version that is not MAJOR.MINOR."""
    claimed = document.get("awp_version")
    if isinstance(claimed, str) and version(document) is None:
        yield Flaw("/awp_version", f"{shown(claimed)} is not MAJOR.MINOR.")


def unknown_version(document: Document) -> Iterator[Flaw]:
    """Find a major version that these checks do not know."""
    claimed = version(document)
    if claimed and claimed[0] not in KNOWN_MAJORS:
        yield Flaw("/awp_version", f"Major version {claimed[0]} is not known here.")


def newer_members(document: Document) -> Iterator[Flaw]:
    """Find members of 0.2 in a document that claims 0.1."""
    if knows_protocols(document):
        return
    if "protocols" in document:
        yield Flaw("/protocols", "protocols is not part of version 0.1.")
    for pointer, action in objects(document, "/actions/[]"):
        if "via" in action:
            yield Flaw(child(pointer, "via"), "via is not part of version 0.1.")


def bad_domain(document: Document) -> Iterator[Flaw]:
    """Find a domain that is a URL or otherwise no host name."""
    for pointer, domain in strings(document, "/domain"):
        host = re.sub(r":\d{1,5}\Z", "", domain)
        if not is_host_name(host):
            yield Flaw(pointer, f"{shown(domain)} is not a host name.")


def repeated_ids(document: Document) -> Iterator[Flaw]:
    """Find action ids that are given more than once."""
    known: dict[str, str] = {}
    for pointer, identifier in strings(document, "/actions/[]/id"):
        if identifier in known:
            yield Flaw(pointer, f"The id {shown(identifier)} is also that of {known[identifier]}.")
        known.setdefault(identifier, pointer.rpartition("/")[0])


def no_actions(document: Document) -> Iterator[Flaw]:
    """Find a document that declares nothing to do."""
    if document.get("actions") == []:
        yield Flaw("/actions", "There are no actions.")


def bad_urls(document: Document) -> Iterator[Flaw]:
    """Find malformed endpoints, and protocol endpoints that are not whole URLs."""
    for pointer, text in strings(document, *ENDPOINTS, "/protocols/{}/endpoint"):
        fault = url_fault(text)
        if not fault and pointer.startswith("/protocols/"):
            parts = split(text)
            fault = None if parts and parts.scheme and parts.netloc else "is not a whole URL"
        if fault:
            yield Flaw(pointer, f"{shown(text)} {fault}.")


def odd_endpoints(document: Document) -> Iterator[Flaw]:
    """Find endpoints that neither begin with "/" nor are whole URLs."""
    for pointer, text in strings(document, *ENDPOINTS):
        if not text.startswith("/") and not is_absolute(text):
            yield Flaw(pointer, f'{shown(text)} does not begin with "/".')


def unexplained_placeholders(document: Document) -> Iterator[Flaw]:
    """Find `{name}` in an endpoint where no input has that name."""
    for pointer, action in objects(document, "/actions/[]"):
        inputs, endpoint = action.get("inputs"), action.get("endpoint")
        if isinstance(inputs, Mapping) and isinstance(endpoint, str):
            for name in PLACEHOLDER.findall(endpoint):
                if name not in inputs:
                    yield Flaw(child(pointer, "endpoint"), f"No input gives a value for {{{name}}}.")


def bad_protocol_ids(document: Document) -> Iterator[Flaw]:
    """Find protocol identifiers that are not lower case and hyphenated."""
    for name in _protocols(document):
        if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name):
            yield Flaw(child("/protocols", name), f"{shown(name)} is not lower case with hyphens.")


def unregistered_protocols(document: Document) -> Iterator[Flaw]:
    """Name the protocols that the specification does not list and that do not begin with `x-`."""
    for name in _protocols(document):
        if name not in REGISTERED_PROTOCOLS and not name.startswith("x-"):
            yield Flaw(child("/protocols", name), f"{shown(name)} is not among the registered protocols.")


def unreachable_protocols(document: Document) -> Iterator[Flaw]:
    """Find transport and tool protocols that do not say where to reach them."""
    for name, protocol in _protocols(document).items():
        if name in REACHED_PROTOCOLS and isinstance(protocol, Mapping) and "endpoint" not in protocol:
            yield Flaw(child(child("/protocols", name), "endpoint"), f"The protocol {name} has no endpoint.")


def undeclared_via(document: Document) -> Iterator[Flaw]:
    """Find actions whose protocol is not declared."""
    for pointer, via in strings(document, "/actions/[]/via"):
        if via not in _protocols(document):
            yield Flaw(pointer, f"The protocol {shown(via)} is not in protocols.")


def without_polling(document: Document) -> Iterator[Flaw]:
    """Find asynchronous actions that do not say where to ask for the result."""
    for pointer, action in objects(document, "/actions/[]"):
        if action.get("execution_model") == "async" and "poll_endpoint" not in action:
            yield Flaw(child(pointer, "poll_endpoint"), "The action is asynchronous and has no poll_endpoint.")


def bad_rate_limits(document: Document) -> Iterator[Flaw]:
    """Find rate limits that cannot be read."""
    for pointer, text in strings(document, "/actions/[]/rate_limit"):
        if not _RATE_LIMIT.fullmatch(text.strip()):
            yield Flaw(pointer, f"The rate limit {shown(text)} is not a positive number per unit of time.")


def bad_durations(document: Document) -> Iterator[Flaw]:
    """Find lifetimes that cannot be read."""
    for pointer, text in strings(document, "/auth/token_expiry", "/actions/[]/idempotency/window"):
        if not _DURATION.fullmatch(text.strip()):
            yield Flaw(pointer, f"{shown(text)} is not a number followed by a unit of time.")


def idempotency_without_key(document: Document) -> Iterator[Flaw]:
    """Find idempotency contracts that do not name the field of the key, or do not say whether they hold."""
    for pointer, contract in objects(document, "/actions/[]/idempotency"):
        if "supported" not in contract:
            yield Flaw(child(pointer, "supported"), "The contract does not say whether idempotency is supported.")
        elif contract["supported"] is True and "key_field" not in contract:
            yield Flaw(child(pointer, "key_field"), "Idempotency is supported and key_field does not say how.")


def unstated_sensitivity(document: Document) -> Iterator[Flaw]:
    """Find actions that seem to have consequences and declare no sensitivity."""
    for pointer, action in objects(document, "/actions/[]"):
        word = grave_word(action.get("id"), action.get("description"), action.get("method"))
        if word and "sensitivity" not in action:
            yield Flaw(child(pointer, "sensitivity"), f"The action seems to {shown(word)} and declares no sensitivity.")


def reversible_irreversible(document: Document) -> Iterator[Flaw]:
    """Find actions that can and cannot be undone."""
    for pointer, action in objects(document, "/actions/[]"):
        if action.get("sensitivity") == "irreversible" and action.get("reversible") is True:
            yield Flaw(child(pointer, "reversible"), "The action is irreversible, and reversible is true.")


def unconfirmed_irreversible(document: Document) -> Iterator[Flaw]:
    """Find irreversible actions that do not ask for confirmation."""
    for pointer, action in objects(document, "/actions/[]"):
        unasked = action.get("requires_human_confirmation") in (None, False)
        if action.get("sensitivity") == "irreversible" and unasked:
            place = child(pointer, "requires_human_confirmation")
            yield Flaw(place, "The action is irreversible and does not require confirmation by a person.")


def vague_hints(document: Document) -> Iterator[Flaw]:
    """Find hints that are no texts."""
    hints = document.get("agent_hints")
    for name, hint in hints.items() if isinstance(hints, Mapping) else ():
        if not isinstance(hint, str):
            yield Flaw(child("/agent_hints", name), f"The hint is {shown(hint)} and not a text.")


def undeclared_origin(document: Document) -> Iterator[Flaw]:
    """Find synthetic files that do not say all of where they come from."""
    if document.get("source") != "synthetic" and not {"generated_by", "confidence"} <= document.keys():
        return
    for name, wanted in SYNTHETIC.items():
        if name not in document:
            yield Flaw(child("", name), f'A synthetic file has no "{name}" ({wanted}).')
    confidence, verified = document.get("confidence"), document.get("last_verified")
    if isinstance(confidence, (int, float)) and not isinstance(confidence, bool) and not 0 <= confidence <= 1:
        yield Flaw("/confidence", f"The confidence {shown(confidence)} is not between 0 and 1.")
    if isinstance(verified, str) and not is_timestamp(verified):
        yield Flaw("/last_verified", f"{shown(verified)} is not an ISO 8601 time.")

"""AWAS rules about a manifest as a whole and about its actions. `awas.py` holds the table that names them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial

from awp_publish.checks import schemas
from awp_publish.checks.awas_inputs import PLACES, each_input
from awp_publish.checks.awas_shape import FORMATS, claims_1_0_only, claims_1_1
from awp_publish.checks.consequences import READING_METHODS, grave_word
from awp_publish.checks.finding import Flaw, shown
from awp_publish.checks.pointer import child, objects, select, strings
from awp_publish.checks.times import is_timestamp
from awp_publish.checks.urls import PLACEHOLDER, WEB, is_absolute, split, url_fault
from awp_publish.selectors import selector_fault

Document = Mapping[str, object]

LARGEST = 100 * 1024
KNOWN_MAJORS = ("1",)
SNAKE_CASE = re.compile(r"[a-z_][a-z0-9_]*")
KEBAB_OR_SNAKE_CASE = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
WINDOW = re.compile(r"0*[1-9][0-9]*[smhd]")

SELECTORS = (
    "/actions/[]/selector",
    *(f"{place}/selector" for place in PLACES),
    *(
        f"/actions/[]/result/{rest}"
        for rest in (
            "selector",
            "itemSelector",
            "properties/{}",
            "pagination/selector",
            "pagination/nextButton",
            "pagination/currentPage",
        )
    ),
)
URLS = (
    "/baseUrl",
    "/contact/url",
    "/authentication/endpoints/{}",
    "/security/allowedOrigins/[]",
    "/actions/[]/path",
    "/actions/[]/endpoint",
    "/actions/[]/previewUrl",
    "/actions/[]/openapi/documentUrl",
)
COUNTS = (
    "/rateLimit/requests",
    "/rate_limits/{}",
    "/actions/[]/rateLimit/requests",
    "/actions/[]/rateLimitHint/requests",
)
RATE_LIMITS = ("/rateLimit", "/actions/[]/rateLimit", "/actions/[]/rateLimitHint")
SCHEMAS = ("/actions/[]/inputSchema", "/actions/[]/outputSchema", "/actions/[]/outputs/schema")


def bad_versions(document: Document) -> Iterator[Flaw]:
    """Find versions that are no version numbers."""
    wanted = r"\d+\.\d+" if claims_1_1(document) else r"\d+\.\d+(?:\.\d+)?"
    for pointer, version in strings(document, "/version", "/specVersion"):
        if not re.fullmatch(wanted, version, re.ASCII):
            yield Flaw(pointer, f"{shown(version)} is not a version number.")


def unknown_versions(document: Document) -> Iterator[Flaw]:
    """Find versions of AWAS that these checks do not know; of a 1.1 manifest `version` is the site's own."""
    for pointer, version in strings(document, "/specVersion" if claims_1_1(document) else "/version"):
        major = version.partition(".")[0]
        if major.isdecimal() and major.lstrip("0") not in KNOWN_MAJORS:
            yield Flaw(pointer, f"Version {shown(version)} of AWAS is not known here.")


def only_one_version(document: Document) -> Iterator[Flaw]:
    """Say that readers of the other version of AWAS cannot use a manifest."""
    if claims_1_0_only(document):
        yield Flaw("/specVersion", "Readers of AWAS 1.1 refuse this manifest: it has no specVersion.")
        return
    lacking = [name for name in ("name", "description") if name not in document]
    for name in ("description", "path"):
        if any(name not in action for _, action in objects(document, "/actions/[]")):
            lacking.append(f"{name} of actions")
    if lacking:
        yield Flaw("", f"Readers of AWAS 1.0 refuse this manifest: it lacks {', '.join(lacking)}.")


def repeated_ids(places: str, document: Document) -> Iterator[Flaw]:
    """Find ids that are given more than once."""
    known: dict[str, str] = {}
    for pointer, identifier in strings(document, places):
        if identifier in known:
            yield Flaw(pointer, f"The id {shown(identifier)} is also that of {known[identifier]}.")
        known.setdefault(identifier, pointer.rpartition("/")[0])


def bad_ids(document: Document) -> Iterator[Flaw]:
    """Find action ids that 1.1 does not allow."""
    for pointer, identifier in strings(document, "/actions/[]/id") if claims_1_1(document) else ():
        if not SNAKE_CASE.fullmatch(identifier):
            yield Flaw(pointer, f"The id {shown(identifier)} does not match ^[a-z_][a-z0-9_]*$.")


def unusual_ids(document: Document) -> Iterator[Flaw]:
    """Find action ids of a 1.0 manifest that are neither in kebab-case nor in snake_case."""
    for pointer, identifier in strings(document, "/actions/[]/id") if claims_1_0_only(document) else ():
        if not KEBAB_OR_SNAKE_CASE.fullmatch(identifier):
            yield Flaw(pointer, f"The id {shown(identifier)} is not in kebab-case.")


def bad_selectors(document: Document) -> Iterator[Flaw]:
    """Find texts that should be CSS selectors and are not."""
    for pointer, text in strings(document, *SELECTORS):
        fault = selector_fault(text)
        if fault:
            yield Flaw(pointer, f"{shown(text)} is not a CSS selector: {fault}.")


def bad_urls(document: Document) -> Iterator[Flaw]:
    """Find malformed URLs."""
    for pointer, text in strings(document, *URLS):
        fault = url_fault(text)
        if fault:
            yield Flaw(pointer, f"{shown(text)} {fault}.")


def relative_base(document: Document) -> Iterator[Flaw]:
    """Find a base URL from which nothing can be resolved, and a contact URL without a host."""
    for pointer, text in strings(document, "/baseUrl", "/contact/url"):
        parts = split(text)
        if url_fault(text) is None and (parts is None or parts.scheme not in WEB):
            yield Flaw(pointer, f"{shown(text)} is not an absolute http or https URL.")


def odd_paths(document: Document) -> Iterator[Flaw]:
    """Find paths that neither begin with "/" nor are absolute URLs."""
    for pointer, text in strings(document, "/actions/[]/path", "/actions/[]/endpoint"):
        if not text.startswith("/") and not is_absolute(text):
            yield Flaw(pointer, f'{shown(text)} does not begin with "/".')


def unexplained_placeholders(document: Document) -> Iterator[Flaw]:
    """Find `{name}` in a path where no parameter has that name."""
    for pointer, action in objects(document, "/actions/[]"):
        known = {name for _, name in strings(action, "/parameters/[]/name", "/inputs/[]/name")}
        known |= {name for _, schema in objects(action, "/inputSchema/properties") for name in schema}
        for place, text in strings(action, "/path", "/endpoint"):
            for name in PLACEHOLDER.findall(text):
                if name not in known:
                    yield Flaw(pointer + place, f"No parameter gives a value for {{{name}}}.")


def bad_windows(document: Document) -> Iterator[Flaw]:
    """Find rate limit windows that are not a count and one of s, m, h, d."""
    for pointer, window in strings(document, *(f"{place}/window" for place in RATE_LIMITS)):
        if not WINDOW.fullmatch(window):
            yield Flaw(pointer, f"The window {shown(window)} is not a positive number followed by s, m, h or d.")


def bad_counts(document: Document) -> Iterator[Flaw]:
    """Find rate limits that allow nothing."""
    for place in COUNTS:
        for pointer, value in select(document, place):
            if isinstance(value, (int, float)) and not isinstance(value, bool) and not value > 0:
                yield Flaw(pointer, f"{shown(value)} is not a positive number.")


def partial_rate_limits(document: Document) -> Iterator[Flaw]:
    """Find rate limits that do not say how many requests, or in which time."""
    for pointer, limit in (found for place in RATE_LIMITS for found in objects(document, place)):
        for name in ("requests", "window"):
            if name not in limit:
                yield Flaw(child(pointer, name), f"The rate limit has no {name}.")


def unknown_formats(document: Document) -> Iterator[Flaw]:
    """Find string formats that neither AWAS nor JSON Schema names."""
    for pointer, parameter in each_input(document):
        text = parameter.get("format")
        if isinstance(text, str) and text not in FORMATS:
            yield Flaw(child(pointer, "format"), f"The format {shown(text)} is not a known one.")


def bad_schemas(document: Document) -> Iterator[Flaw]:
    """Find input and output schemas that are no JSON Schemas."""
    for pointer, schema in (found for place in SCHEMAS for found in objects(document, place)):
        yield from schemas.invalid(schema, pointer)
        yield from schemas.unresolved(schema, pointer)


def bad_timestamp(document: Document) -> Iterator[Flaw]:
    """Find a lastUpdated that is no ISO 8601 time."""
    for pointer, text in strings(document, "/lastUpdated"):
        if not is_timestamp(text):
            yield Flaw(pointer, f"{shown(text)} is not an ISO 8601 time.")


def bad_email(document: Document) -> Iterator[Flaw]:
    """Find a contact address that is none."""
    for pointer, text in strings(document, "/contact/email"):
        if not re.fullmatch(r"[^@\s]+@[^@\s]+", text):
            yield Flaw(pointer, f"{shown(text)} is not an e-mail address.")


def unknown_optional(document: Document) -> Iterator[Flaw]:
    """Find names in authentication.optional_for that no action has."""
    known = {identifier for _, identifier in strings(document, "/actions/[]/id")}
    for pointer, name in strings(document, "/authentication/optional_for/[]"):
        if name not in known:
            yield Flaw(pointer, f"No action has the id {shown(name)}.")


def unknown_steps(document: Document) -> Iterator[Flaw]:
    """Find workflow steps that look like the id of an action and are none. Steps may also be sentences."""
    known = {identifier for _, identifier in strings(document, "/actions/[]/id")}
    for pointer, step in strings(document, "/workflows/[]/steps/[]"):
        if SNAKE_CASE.fullmatch(step) and step not in known:
            yield Flaw(pointer, f"No action has the id {shown(step)}.")


def understated(document: Document) -> Iterator[Flaw]:
    """Find 1.1 actions that seem to have lasting consequences and do not declare a side effect."""
    for pointer, action in objects(document, "/actions/[]") if claims_1_1(document) else ():
        word = grave_word(action.get("id"), action.get("description"), action.get("method"))
        if word and action.get("sideEffect", "safe") == "safe":
            yield Flaw(child(pointer, "sideEffect"), f"The action seems to {shown(word)} and declares no side effect.")


def contradictory_effects(document: Document) -> Iterator[Flaw]:
    """Find actions whose method, intent and side effect contradict each other."""
    for pointer, action in objects(document, "/actions/[]") if claims_1_1(document) else ():
        intent, effect, method = action.get("intent"), action.get("sideEffect"), action.get("method")
        if effect == "safe" and intent in ("write", "delete"):
            yield Flaw(child(pointer, "sideEffect"), f'The intent is "{intent}" and the side effect "safe".')
        elif effect == "destructive" and intent == "read":
            yield Flaw(child(pointer, "intent"), 'The intent is "read" and the side effect "destructive".')
        elif method in tuple(READING_METHODS) and (effect == "destructive" or intent in ("write", "delete")):
            yield Flaw(child(pointer, "method"), f"{shown(method)} is used for an action that changes something.")


def too_large(document: Document) -> Iterator[Flaw]:
    """Find a manifest that is over 100 KB even without white space."""
    try:
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=str)
    except (ValueError, TypeError, RecursionError):
        return
    size = len(text.encode("utf-8", "replace"))
    if size > LARGEST:
        yield Flaw("", f"The manifest has {size} bytes without white space; {LARGEST} are recommended at most.")


repeated_action_ids = partial(repeated_ids, "/actions/[]/id")
repeated_workflow_ids = partial(repeated_ids, "/workflows/[]/id")

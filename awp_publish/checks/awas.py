"""AWAS 1.0 and 1.1: the checks of an `ai-actions.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from awp_publish.checks import engine, schemas
from awp_publish.checks.engine import (
    TYPES,
    Check,
    Enumeration,
    Flaw,
    Shape,
    arrays,
    child,
    is_type,
    objects,
    select,
    shown,
    strings,
)
from awp_publish.checks.text import READING_METHODS, grave_word, is_pattern, is_timestamp, matches
from awp_publish.checks.urls import PLACEHOLDER, WEB, is_absolute, split, url_fault
from awp_publish.selectors import selector_fault

SPEC_1_0 = "AWAS 1.0"
SCHEMA_1_1 = "AWAS 1.1 manifest schema"

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
MORE_METHODS = (*METHODS, "HEAD", "OPTIONS")
LEVELS = ("L1", "L2", "L3")
JSON_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
NAMED_FORMATS = ("email", "uri", "url", "date", "datetime", "time", "uuid", "phone")
JSON_SCHEMA_FORMATS = frozenset(("date-time", "duration", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6"))
JSON_SCHEMA_FORMATS |= {"uri-reference", "iri", "iri-reference", "uri-template", "json-pointer"}
JSON_SCHEMA_FORMATS |= {"relative-json-pointer", "regex"}
FORMATS = frozenset((*NAMED_FORMATS, *JSON_SCHEMA_FORMATS, "password", "binary", "byte"))


def claims_1_1(document: Mapping[str, object]) -> bool:
    """Say whether a manifest is to be read as AWAS 1.1."""
    return "specVersion" in document


def claims_1_0_only(document: Mapping[str, object]) -> bool:
    """Say whether a manifest is to be read as AWAS 1.0 and nothing later."""
    return "specVersion" not in document


RATE_LIMIT = {"requests": "integer", "window": "string"}

SHAPES = (
    Shape(
        "",
        "The manifest",
        f"{SPEC_1_0}, Top-Level Properties",
        {
            "version": "string",
            "name": "string",
            "description": "string",
            "actions": "array of object",
            "baseUrl": "string",
            "contact": "object",
            "authentication": "object",
            "rateLimit": "object",
            "specVersion": "string",
            "lastUpdated": "string",
            "conformanceLevel": "string",
            "workflows": "array of object",
            "rate_limits": "object",
            "security": "object",
        },
        ("version", "name", "description", "actions"),
        claims_1_0_only,
    ),
    Shape("", "The manifest", SCHEMA_1_1, {}, ("specVersion", "version", "actions"), claims_1_1),
    Shape("/contact", "The contact", f"{SPEC_1_0}, Top-Level Properties", {"email": "string", "url": "string"}),
    Shape(
        "/authentication",
        "The authentication",
        f"{SPEC_1_0}, Top-Level Properties; {SCHEMA_1_1}",
        {
            "required": "boolean",
            "methods": "array of string",
            "optional_for": "array of string",
            "endpoints": "object",
        },
    ),
    Shape("/rateLimit", "The rate limit", f"{SPEC_1_0}, Top-Level Properties", {**RATE_LIMIT, "scope": "string"}),
    Shape(
        "/rate_limits",
        "The rate limits",
        SCHEMA_1_1,
        {
            "requests_per_minute": "integer",
            "requests_per_hour": "integer",
            "burst_limit": "integer",
            "concurrent_requests": "integer",
        },
    ),
    Shape(
        "/security",
        "The security section",
        SCHEMA_1_1,
        {
            "csrfRequired": "boolean",
            "csrfTokenHeader": "string",
            "requiredHeaders": "array of string",
            "allowedOrigins": "array of string",
            "sameSite": "string",
        },
    ),
    Shape(
        "/workflows/[]",
        "A workflow",
        SCHEMA_1_1,
        {"id": "string", "name": "string", "description": "string", "steps": "array of string"},
        ("id", "name", "steps"),
    ),
    Shape(
        "/actions/[]",
        "An action",
        f"{SPEC_1_0}, Action Object Structure",
        {
            "id": "string",
            "name": "string",
            "description": "string",
            "path": "string",
            "method": "string",
            "parameters": "array of object",
            "result": "object",
            "rateLimit": "object",
            "authentication": "object|boolean|string",
            "type": "string",
            "intent": "string",
            "sideEffect": "string",
            "endpoint": "string",
            "selector": "string",
            "authentication_required": "boolean",
            "authScopes": "array of string",
            "idempotencyKeySupported": "boolean",
            "idempotencyKeyHeader": "string",
            "preconditions": "array of string",
            "rateLimitHint": "object",
            "inputs": "array of object",
            "inputSchema": "object",
            "outputs": "object",
            "outputSchema": "object",
            "openapi": "object",
            "previewUrl": "string",
            "dryRunSupported": "boolean",
            "conformanceLevel": "string",
        },
        ("id", "name", "description", "path", "method"),
        claims_1_0_only,
    ),
    Shape("/actions/[]", "An action", SCHEMA_1_1, {}, ("id", "type", "name", "method", "endpoint"), claims_1_1),
    Shape(
        "/actions/[]/parameters/[]",
        "A parameter",
        f"{SPEC_1_0}, Parameter Object Structure",
        {
            "name": "string",
            "type": "string",
            "format": "string",
            "required": "boolean",
            "description": "string",
            "selector": "string",
            "validation": "object",
            "default": "any",
            "example": "any",
            "enum": "any",
        },
        ("name", "type", "required", "description"),
    ),
    Shape(
        "/actions/[]/inputs/[]",
        "An input",
        SCHEMA_1_1,
        {
            "name": "string",
            "type": "string",
            "required": "boolean",
            "default": "any",
            "selector": "string",
            "description": "string",
            "examples": "array",
            "validation": "object",
        },
        ("name", "type"),
    ),
    *(
        Shape(
            f"/actions/[]/{name}/[]/validation",
            "A validation",
            f"{SPEC_1_0}, Parameter Object Structure; {SCHEMA_1_1}",
            {
                "pattern": "string",
                "min": "number",
                "max": "number",
                "minLength": "integer",
                "maxLength": "integer",
                "enum": "any",
            },
        )
        for name in ("parameters", "inputs")
    ),
    Shape(
        "/actions/[]/result",
        "A result",
        f"{SPEC_1_0}, Result Object Structure",
        {
            "type": "string",
            "selector": "string",
            "itemSelector": "string",
            "properties": "object of string",
            "pagination": "object",
        },
        ("type", "selector"),
    ),
    Shape(
        "/actions/[]/result/pagination",
        "The pagination",
        f"{SPEC_1_0}, Result Object Structure",
        {"selector": "string", "nextButton": "string", "currentPage": "string"},
    ),
    Shape(
        "/actions/[]/outputs",
        "The outputs",
        SCHEMA_1_1,
        {
            "type": "string",
            "schema": "object",
            "examples": "array",
            "success_codes": "array of integer",
            "error_codes": "object",
        },
    ),
    Shape(
        "/actions/[]/openapi",
        "The OpenAPI link",
        SCHEMA_1_1,
        {"documentUrl": "string", "operationId": "string", "$ref": "string"},
    ),
    Shape("/actions/[]/rateLimit", "A rate limit", f"{SPEC_1_0}, Action Object Structure", RATE_LIMIT),
    Shape("/actions/[]/rateLimitHint", "A rate limit hint", SCHEMA_1_1, RATE_LIMIT),
)

ENUMERATIONS = (
    Enumeration("/conformanceLevel", LEVELS, SCHEMA_1_1, claims_1_1),
    Enumeration("/security/sameSite", ("Strict", "Lax", "None"), SCHEMA_1_1, claims_1_1),
    Enumeration("/authentication/methods/[]", ("session", "api_key", "oauth", "jwt", "bearer"), SCHEMA_1_1, claims_1_1),
    Enumeration(
        "/actions/[]/type",
        ("form_submission", "navigation", "search", "filter", "data_retrieval", "state_change", "custom"),
        SCHEMA_1_1,
        claims_1_1,
    ),
    Enumeration("/actions/[]/intent", ("read", "write", "delete", "execute"), SCHEMA_1_1, claims_1_1),
    Enumeration("/actions/[]/sideEffect", ("safe", "idempotent", "destructive"), SCHEMA_1_1, claims_1_1),
    Enumeration("/actions/[]/conformanceLevel", LEVELS, SCHEMA_1_1, claims_1_1),
    Enumeration("/actions/[]/method", METHODS, SCHEMA_1_1, claims_1_1),
    Enumeration("/actions/[]/method", MORE_METHODS, f"{SPEC_1_0}, Action Object Structure", claims_1_0_only),
    Enumeration("/actions/[]/result/type", ("single", "list", "table", "form"), f"{SPEC_1_0}, Result Object Structure"),
)

DATA_TYPES = (
    Enumeration("/actions/[]/parameters/[]/type", JSON_TYPES, f"{SPEC_1_0}, Validation rule 7"),
    Enumeration("/actions/[]/inputs/[]/type", tuple(name for name in JSON_TYPES if name != "null"), SCHEMA_1_1),
)


Document = Mapping[str, object]
PARAMETERS = f"{SPEC_1_0}, Parameter Object Structure"
PLACES = ("/actions/[]/parameters/[]", "/actions/[]/inputs/[]")


def each_input(document: Document) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield every parameter and every input."""
    for place in PLACES:
        yield from objects(document, place)


def bad_enumerations(document: Document) -> Iterator[Flaw]:
    """Find enumerations that are no array or have nothing in them."""
    for place in (*(f"{place}/enum" for place in PLACES), *(f"{place}/validation/enum" for place in PLACES)):
        for pointer, value in select(document, place):
            if not isinstance(value, list):
                yield Flaw(pointer, f"The enumeration is {shown(value)} and not an array.")
            elif not value:
                yield Flaw(pointer, "The enumeration allows nothing.")


def bad_patterns(document: Document) -> Iterator[Flaw]:
    """Find validation patterns that are no regular expressions."""
    for pointer, pattern in strings(document, *(f"{place}/validation/pattern" for place in PLACES)):
        if not is_pattern(pattern):
            yield Flaw(pointer, f"{shown(pattern)} is not a regular expression.")


def empty_ranges(document: Document) -> Iterator[Flaw]:
    """Find lower limits above the upper limit, and negative lengths."""
    for pointer, rules in (found for place in PLACES for found in objects(document, f"{place}/validation")):
        for low, high in (("min", "max"), ("minLength", "maxLength")):
            lowest, highest = _number(rules.get(low)), _number(rules.get(high))
            if lowest is not None and highest is not None and lowest > highest:
                yield Flaw(child(pointer, low), f"{low} {shown(rules[low])} is above {high} {shown(rules[high])}.")
        for name in ("minLength", "maxLength"):
            length = _number(rules.get(name))
            if length is not None and length < 0:
                yield Flaw(child(pointer, name), f"{name} is {shown(rules[name])}; no text is that short.")


def broken_defaults(document: Document) -> Iterator[Flaw]:
    """Find default values that the rules beside them refuse. A default of null means that there is none."""
    for pointer, parameter in each_input(document):
        if parameter.get("default") is not None:
            for fault in _faults(parameter["default"], parameter):
                yield Flaw(child(pointer, "default"), f"The default {shown(parameter['default'])} {fault}.")


def broken_examples(document: Document) -> Iterator[Flaw]:
    """Find example values that the rules beside them refuse."""
    for pointer, parameter in each_input(document):
        examples = [("example", parameter["example"])] if parameter.get("example") is not None else []
        more = parameter.get("examples")
        if isinstance(more, list):
            examples += [(f"examples/{index}", value) for index, value in enumerate(more)]
        for place, value in examples:
            for fault in _faults(value, parameter):
                yield Flaw(f"{pointer}/{place}", f"The example {shown(value)} {fault}.")


def repeated_names(document: Document) -> Iterator[Flaw]:
    """Find parameters of one action that share a name."""
    for place in ("/actions/[]/parameters", "/actions/[]/inputs"):
        for pointer, parameters in arrays(document, place):
            yield from _repeated(parameters, pointer)


def _repeated(parameters: list[object], pointer: str) -> Iterator[Flaw]:
    known: set[str] = set()
    for place, name in strings(parameters, "/[]/name"):
        if name in known:
            yield Flaw(pointer + place, f"The name {shown(name)} is given to two parameters of one action.")
        known.add(name)


def disagreeing(document: Document) -> Iterator[Flaw]:
    """Find actions whose parameters (1.0) and inputs (1.1) have different names."""
    for pointer, action in objects(document, "/actions/[]"):
        if isinstance(action.get("parameters"), list) and isinstance(action.get("inputs"), list):
            old, new = _names(action, "/parameters/[]/name"), _names(action, "/inputs/[]/name")
            if old != new:
                message = f"Only one of parameters and inputs has {shown(sorted(old ^ new))}."
                yield Flaw(child(pointer, "inputs"), message)


def _names(action: Mapping[str, object], place: str) -> set[str]:
    return {name for _, name in strings(action, place)}


def without_example(document: Document) -> Iterator[Flaw]:
    """Count the parameters for which no example, default or enumeration shows what a value looks like."""
    silent = [pointer for pointer, parameter in each_input(document) if not _shows_a_value(parameter)]
    if silent:
        yield Flaw(silent[0], f"{len(silent)} parameter(s) show no example value, this one first.")


def _shows_a_value(parameter: Mapping[str, object]) -> bool:
    rules = parameter.get("validation")
    named = any(parameter.get(name) is not None for name in ("example", "examples", "default", "enum"))
    return named or parameter.get("type") in ("boolean", "null") or (isinstance(rules, Mapping) and "enum" in rules)


def _faults(value: object, parameter: Mapping[str, object]) -> Iterator[str]:
    wanted = parameter.get("type")
    if isinstance(wanted, str) and wanted in TYPES and not is_type(value, wanted):
        yield f"is not of type {wanted}"
        return
    rules = parameter.get("validation")
    rules = rules if isinstance(rules, Mapping) else {}
    for allowed in (parameter.get("enum"), rules.get("enum")):
        if isinstance(allowed, list) and allowed and value not in allowed:
            yield "is not in the enumeration"
            return
    if isinstance(value, str):
        yield from _text_faults(value, rules)
    elif (number := _number(value)) is not None:
        yield from _limit_faults(number, rules, "min", "max", "")


def _text_faults(value: str, rules: Mapping[str, object]) -> Iterator[str]:
    pattern = rules.get("pattern")
    if isinstance(pattern, str) and matches(pattern, value) is False:
        yield f"does not match {shown(pattern)}"
    yield from _limit_faults(len(value), rules, "minLength", "maxLength", " characters")


def _limit_faults(number: float, rules: Mapping[str, object], low: str, high: str, unit: str) -> Iterator[str]:
    lowest, highest = _number(rules.get(low)), _number(rules.get(high))
    if lowest is not None and number < lowest:
        yield f"is below {low} {shown(rules[low])}{unit}"
    if highest is not None and number > highest:
        yield f"is above {high} {shown(rules[high])}{unit}"


def _number(value: object) -> float | None:
    """Narrow to a number; comparing int with float is exact in Python, so nothing is converted."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


INPUT_CHECKS = (
    Check(
        "awas-unique-parameter",
        "warning",
        PARAMETERS,
        "The parameters of one action have different names.",
        "Rename one, or merge the two.",
        repeated_names,
    ),
    Check(
        "awas-inputs-disagree",
        "warning",
        f"{PARAMETERS}; {SCHEMA_1_1}",
        "parameters (1.0) and inputs (1.1) of one action have the same names.",
        "Derive both from one list.",
        disagreeing,
    ),
    Check(
        "awas-enum",
        "error",
        f"{SPEC_1_0}, Validation rule 6",
        "Enumerations are arrays with at least one item.",
        "List the allowed values, or leave the enumeration out.",
        bad_enumerations,
    ),
    Check(
        "awas-pattern",
        "error",
        PARAMETERS,
        "Validation patterns are regular expressions.",
        "Repair the expression; a backslash is written twice in JSON.",
        bad_patterns,
    ),
    Check(
        "awas-range",
        "warning",
        PARAMETERS,
        "Lower limits are not above upper limits, and lengths are not negative.",
        "Correct the limits: now no value is allowed.",
        empty_ranges,
    ),
    Check(
        "awas-default",
        "warning",
        PARAMETERS,
        "Default values have the type and keep the enumeration and validation of their parameter.",
        "Correct the default or the rule.",
        broken_defaults,
    ),
    Check(
        "awas-example",
        "warning",
        PARAMETERS,
        "Example values have the type and keep the enumeration and validation of their parameter.",
        "Correct the example or the rule.",
        broken_examples,
    ),
    Check(
        "awas-no-example",
        "info",
        f"{SPEC_1_0}, Best Practices 3",
        "Parameters show what a value looks like.",
        "Add an example.",
        without_example,
    ),
)


Action = Mapping[str, object]
CONFORMANCE = "AWAS 1.1 conformance levels"


def _wants_to_write(action: Action) -> bool:
    return (
        action.get("method") != "GET"
        or action.get("intent", "read") != "read"
        or action.get("sideEffect", "safe") != "safe"
    )


def _not_reading(action: Action) -> Iterator[str]:
    for name, wanted in (("method", "GET"), ("sideEffect", "safe"), ("intent", "read")):
        if action.get(name) != wanted:
            yield f'{name} "{wanted}"'


def _without_preview(action: Action) -> Iterator[str]:
    if not _wants_to_write(action):
        yield from _not_reading(action)
    elif not action.get("previewUrl") and action.get("dryRunSupported") is not True:
        yield "previewUrl or dryRunSupported"


def _incomplete(action: Action) -> Iterator[str]:
    yield from _without_preview(action)
    for name in ("authScopes", "preconditions", "rateLimitHint"):
        if name not in action:
            yield name
    if _wants_to_write(action) and action.get("idempotencyKeySupported") is not True:
        yield "idempotencyKeySupported true"
    if "inputSchema" not in action:
        yield "inputSchema"
    outputs = action.get("outputs")
    if "outputSchema" not in action and not (isinstance(outputs, Mapping) and "schema" in outputs):
        yield "outputSchema"


LEVEL_RULES: Mapping[str, Callable[[Action], Iterator[str]]] = {
    "L1": _not_reading,
    "L2": _without_preview,
    "L3": _incomplete,
}


def unmet_levels(document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find actions that do not meet the level claimed for the document or for themselves."""
    claimed = document.get("conformanceLevel")
    actions = list(objects(document, "/actions/[]"))
    if claimed in ("L2", "L3") and any(_wants_to_write(action) for _, action in actions):
        yield from _undocumented_csrf(document, str(claimed))
    for pointer, action in actions:
        levels = [level for level in (claimed, action.get("conformanceLevel")) if isinstance(level, str)]
        yield from _unmet(pointer, action, levels)


def _undocumented_csrf(document: Mapping[str, object], level: str) -> Iterator[Flaw]:
    security = document.get("security")
    if not isinstance(security, Mapping):
        yield Flaw("/security", f"The document claims {level}, has writing actions, and no security section.")
    elif "csrfRequired" not in security:
        yield Flaw(
            "/security/csrfRequired", f"The document claims {level} and does not say whether it uses CSRF tokens."
        )


def _unmet(pointer: str, action: Action, levels: Sequence[str]) -> Iterator[Flaw]:
    # The highest level that is not met is reported; it contains what the lower ones say.
    for level in sorted(set(levels) & LEVEL_RULES.keys(), reverse=True):
        lacking = list(LEVEL_RULES[level](action))
        if lacking:
            yield Flaw(pointer, f"{level} is claimed, for which this action lacks {', '.join(lacking)}.")
            return


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


VALIDATION = f"{SPEC_1_0}, Validation"
PRACTICE = f"{SPEC_1_0}, Best Practices"
TOP_LEVEL = f"{SPEC_1_0}, Top-Level Properties"

CHECKS = (
    # What must be there, and of which type.
    Check(
        "awas-required",
        "error",
        f"{VALIDATION} rule 1; {SCHEMA_1_1}",
        "Members that the claimed version requires are there, at every level.",
        "Add the member.",
        partial(engine.missing, SHAPES),
    ),
    Check(
        "awas-type",
        "error",
        f"{SPEC_1_0}, JSON Manifest Structure; {SCHEMA_1_1}",
        "Members have the type that the specification gives them.",
        "Write a value of that type.",
        partial(engine.mistyped, SHAPES),
    ),
    Check(
        "awas-value",
        "error",
        f"{SPEC_1_0}, JSON Manifest Structure; {SCHEMA_1_1}",
        "Methods, kinds of result, intents, side effects and the like are among the listed values.",
        "Choose one of the values listed.",
        partial(engine.unlisted, ENUMERATIONS),
    ),
    Check(
        "awas-data-type",
        "error",
        f"{VALIDATION} rule 7",
        "The types of parameters are JSON Schema types.",
        "Choose one of the types listed.",
        partial(engine.unlisted, DATA_TYPES),
    ),
    Check(
        "awas-empty",
        "warning",
        f"{PRACTICE} 2",
        "Required texts say something.",
        "Write a text that tells an agent what it needs to know.",
        partial(engine.empty, SHAPES),
    ),
    Check(
        "awas-misspelt",
        "info",
        f"{SPEC_1_0}, Extensions",
        "No unknown member has nearly the name of a known one.",
        "Correct the name.",
        partial(engine.misspelt, SHAPES),
    ),
    Check(
        "awas-extension",
        "info",
        f"{SPEC_1_0}, Extensions",
        'Members of one\'s own begin with "x-".',
        'Put "x-" before the name.',
        partial(engine.unprefixed, SHAPES),
    ),
    # The manifest as a whole.
    Check(
        "awas-version",
        "error",
        f"{SPEC_1_0}, Versioning; {SCHEMA_1_1}",
        "Versions are MAJOR.MINOR, in a 1.0 manifest also MAJOR.MINOR.PATCH.",
        'Write two numbers with a point between, such as "1.0".',
        bad_versions,
    ),
    Check(
        "awas-version-unknown",
        "warning",
        f"{SPEC_1_0}, Versioning",
        "The major version of AWAS is one that these checks know (1).",
        "Findings may be wrong for another version.",
        unknown_versions,
    ),
    Check(
        "awas-one-version",
        "info",
        f"{SPEC_1_0}, Versioning; {SCHEMA_1_1}",
        "Readers of AWAS 1.0 and of 1.1 can both use the manifest.",
        "One manifest can carry the members of both versions.",
        only_one_version,
    ),
    Check(
        "awas-size",
        "warning",
        f"{PRACTICE} 1",
        "The manifest is under 100 KB.",
        "Shorten descriptions, or publish fewer actions.",
        too_large,
    ),
    Check(
        "awas-base-url",
        "error",
        TOP_LEVEL,
        "baseUrl and contact.url are absolute http or https URLs.",
        'Write the whole URL, with "https://".',
        relative_base,
    ),
    Check(
        "awas-url",
        "error",
        f"{VALIDATION} rule 4",
        "URLs are well-formed.",
        "Repair the URL; spaces and the like are written as %20.",
        bad_urls,
    ),
    Check(
        "awas-email",
        "warning",
        TOP_LEVEL,
        "contact.email is an e-mail address.",
        "Write the address alone.",
        bad_email,
    ),
    Check(
        "awas-last-updated",
        "error",
        SCHEMA_1_1,
        "lastUpdated is an ISO 8601 time.",
        'Write it as "2026-01-31T12:00:00Z".',
        bad_timestamp,
    ),
    Check(
        "awas-optional-for",
        "warning",
        SCHEMA_1_1,
        "authentication.optional_for names actions of the manifest.",
        "Name an action by its id.",
        unknown_optional,
    ),
    Check(
        "awas-workflow-id",
        "warning",
        SCHEMA_1_1,
        "The ids of workflows are unique.",
        "Rename one of the workflows.",
        repeated_workflow_ids,
    ),
    Check(
        "awas-workflow-step",
        "info",
        SCHEMA_1_1,
        "Steps of a workflow that look like the id of an action are one.",
        "Name an action by its id, or write a sentence.",
        unknown_steps,
    ),
    # Rate limits.
    Check(
        "awas-rate-window",
        "error",
        f"{VALIDATION} rule 5",
        "Rate limit windows are a positive number followed by s, m, h or d.",
        'Write for instance "1m" or "24h".',
        bad_windows,
    ),
    Check(
        "awas-rate-count",
        "error",
        f"{VALIDATION} rule 5; {SCHEMA_1_1}",
        "Rate limits allow at least one request.",
        "Write a positive whole number, or leave the limit out.",
        bad_counts,
    ),
    Check(
        "awas-rate-incomplete",
        "warning",
        TOP_LEVEL,
        "Rate limits say how many requests and in which time.",
        "Add the member.",
        partial_rate_limits,
    ),
    # Actions.
    Check(
        "awas-unique-id",
        "error",
        f"{VALIDATION} rule 2",
        "The ids of actions are unique.",
        "Rename one of the actions.",
        repeated_action_ids,
    ),
    Check(
        "awas-action-id",
        "error",
        SCHEMA_1_1,
        "In a 1.1 manifest the ids of actions match ^[a-z_][a-z0-9_]*$.",
        "Write the id in snake_case; both versions accept it.",
        bad_ids,
    ),
    Check(
        "awas-id-style",
        "warning",
        f"{PRACTICE} 8",
        "In a 1.0 manifest the ids of actions are in kebab-case (or snake_case).",
        "Write small letters and digits, with hyphens or underscores between words.",
        unusual_ids,
    ),
    Check(
        "awas-selector",
        "error",
        f"{VALIDATION} rule 3",
        "Selectors of actions, parameters, results and pagination are CSS selectors.",
        "Try the selector with document.querySelector in a browser.",
        bad_selectors,
    ),
    Check(
        "awas-path",
        "warning",
        f"{SPEC_1_0}, Action Object Structure",
        'The path and endpoint of an action begin with "/" or are absolute.',
        'Begin with "/", so that it does not depend on the page it is read from.',
        odd_paths,
    ),
    Check(
        "awas-path-parameter",
        "warning",
        f"{SPEC_1_0}, Action Object Structure",
        "Every placeholder in a path has a parameter of that name.",
        "Declare the parameter, or write it the same way in both places.",
        unexplained_placeholders,
    ),
    Check(
        "awas-schema",
        "error",
        SCHEMA_1_1,
        "inputSchema and outputSchema are valid JSON Schemas whose references resolve.",
        "Repair the schema; 2020-12 is the dialect assumed.",
        bad_schemas,
    ),
    Check(
        "awas-side-effect",
        "warning",
        SCHEMA_1_1,
        "In a 1.1 manifest actions that seem to have lasting consequences declare a side effect.",
        'Declare sideEffect "destructive", or "idempotent" where repeating does no harm.',
        understated,
    ),
    Check(
        "awas-effect-contradiction",
        "warning",
        SCHEMA_1_1,
        "Method, intent and side effect of an action agree.",
        "Correct the one that is wrong.",
        contradictory_effects,
    ),
    Check(
        "awas-conformance",
        "error",
        CONFORMANCE,
        "The conformance level claimed is met by every action.",
        "Add what is lacking, or claim a lower level.",
        unmet_levels,
    ),
    Check(
        "awas-format",
        "info",
        f"{SPEC_1_0}, String Formats",
        "String formats are known ones.",
        "Readers ignore a format they do not know.",
        unknown_formats,
    ),
    *INPUT_CHECKS,
)

"""AWAS 1.0 and 1.1: the checks for an `ai-actions.json`, and for the bridge files beside it.

A manifest with `specVersion` claims 1.1 and is checked against the published schema of 1.1. There is none for 1.0, so a
manifest of 1.0 is checked against the schema that our sites serve, and so are the members of 1.0 in a manifest of 1.1,
except that none of them is required there.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from awp_publish.checks.engine import (
    ERROR,
    WARNING,
    Finding,
    JsonObject,
    SchemaViolation,
    Specification,
    blank,
    finding,
    has,
    repeated,
    shown,
    unknown_names,
)
from awp_publish.checks.expressions import is_pattern, matches
from awp_publish.checks.inner_schemas import InnerSchemas
from awp_publish.checks.places import members, objects, select, strings
from awp_publish.checks.schemas import DocumentSchema, Schema, is_number, is_type, read_schema
from awp_publish.checks.text import is_timestamp
from awp_publish.checks.urls import WEB, dependent_paths, malformed_urls, split, unexplained_placeholders, url_fault
from awp_publish.schema.pointers import child

SCHEMA_1_1: Final = "AWAS 1.1 manifest schema"

VALIDATION: Final = "AWAS 1.0, Validation"

PRACTICE: Final = "AWAS 1.0, Best Practices"

TOP_LEVEL: Final = "AWAS 1.0, Top-Level Properties"

ACTIONS: Final = "AWAS 1.0, Action Object Structure"

PARAMETERS: Final = "AWAS 1.0, Parameter Object Structure"

MAX_BYTES: Final = 100 * 1024

_KNOWN_MAJORS: Final = ("1",)

_KEBAB_OR_SNAKE_CASE: Final = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")

_INPUTS: Final = "/actions/[]/parameters|inputs/[]"


@DocumentSchema
def _schema_1_0() -> Schema:
    schema = read_schema("awp_publish.plugins.awas", "awas.schema.json")
    # A manifest of 1.0 may use these names of 1.1 for something of its own.
    for name in ("conformanceLevel", "security"):
        del schema["properties"][name]
    for name in ("type", "intent", "sideEffect", "conformanceLevel"):
        del schema["$defs"]["action"]["properties"][name]
    return _as_the_samples(schema)


_schema_1_1: Final = DocumentSchema(lambda: read_schema("awp_publish.plugins.awas.checks", "awas-1.1.schema.json"))


@DocumentSchema
def _members_of_1_0() -> Schema:
    schema = read_schema("awp_publish.plugins.awas", "awas.schema.json")
    del schema["required"], schema["$defs"]["action"]["required"]
    return _as_the_samples(schema)


def _as_the_samples(schema: dict[str, Any]) -> Schema:
    """Make optional what the text calls required but its own samples omit."""
    schema["$defs"]["parameter"]["required"].remove("description")
    return schema


_schemas: Final = InnerSchemas("/actions/[]/inputSchema", "/actions/[]/outputSchema", "/actions/[]/outputs/schema")


def claims_1_1(document: JsonObject) -> bool:
    """Return True if a manifest claims to be AWAS 1.1."""
    return "specVersion" in document


def violations(document: JsonObject) -> Iterator[SchemaViolation]:
    """Find violations of the schemas of the claimed version, and mistakes in the schemas of actions."""
    for schema in (_schema_1_1, _members_of_1_0) if claims_1_1(document) else (_schema_1_0,):
        yield from schema.violations(document)
    yield from _schemas.violations(document)


SPECIFICATION: Final = Specification(
    "awas",
    "AWAS 1.0",
    paths=("/.well-known/ai-actions.json", "/.well-known/awas.json"),
    marks=lambda document: "specVersion" in document and "entries" not in document,  # an AI catalogue has both
    resembles=has("actions"),
    violations=violations,
    rank=2,
)

check, row = SPECIFICATION.check, SPECIFICATION.row

row(
    "awas-required",
    ERROR,
    f"{VALIDATION} rule 1; {SCHEMA_1_1}",
    "The members that the claimed version requires are present at every level.",
    hint="Add the member.",
    violation=r"required .*",
)

row(
    "awas-type",
    ERROR,
    f"AWAS 1.0, JSON Manifest Structure; {SCHEMA_1_1}",
    "Members have the type that the specification gives them.",
    hint="Write a value of that type.",
    violation=r"type (?!.*/enum$).*",
)

row(
    "awas-value",
    ERROR,
    f"AWAS 1.0, JSON Manifest Structure; {SCHEMA_1_1}",
    "Methods, kinds of result, intents, side effects and the like are among the listed values.",
    hint="Choose one of the values listed.",
    violation=r"enum (?!.*/(parameters|inputs)/\d+/type$).*",
)

row(
    "awas-data-type",
    ERROR,
    f"{VALIDATION} rule 7",
    "The types of parameters are JSON Schema types.",
    hint="Choose one of the types listed.",
    violation=r"enum .*",
)


@check("awas-empty", WARNING, f"{PRACTICE} 2", hint="Write a text that tells an agent what it needs to know.")
def empty_texts(document: JsonObject) -> Iterator[Finding]:
    """Required texts say something."""
    return blank(
        document,
        "/version|specVersion|name|description",
        "/workflows/[]/id|name",
        "/actions/[]/id|type|name|description|path|method|endpoint",
        f"{_INPUTS}/name|type",
        "/actions/[]/parameters/[]/description",
        "/actions/[]/result/type|selector",
    )


@check("awas-parameter-description", WARNING, PARAMETERS, hint="Say what the parameter represents.")
def undescribed_parameters(document: JsonObject) -> Iterator[Finding]:
    """Parameters have a description; the text calls it required, and its own samples leave it out."""
    for pointer, parameter in objects(document, "/actions/[]/parameters/[]"):
        if "description" not in parameter:
            yield finding(f"{pointer}/description", '"description" is missing.')


row(
    "awas-version",
    ERROR,
    f"AWAS 1.0, Versioning; {SCHEMA_1_1}",
    "Versions are MAJOR.MINOR, in a 1.0 manifest also MAJOR.MINOR.PATCH.",
    hint='Write two numbers with a point between, such as "1.0".',
    violation=r"pattern /(version|specVersion)",
)


@check("awas-version-unknown", WARNING, "AWAS 1.0, Versioning", hint="Findings may be wrong for another version.")
def unknown_versions(document: JsonObject) -> Iterator[Finding]:
    """The major version of AWAS is one that these checks know (1)."""
    # In a manifest of 1.1 `version` is the site's own.
    for pointer, version in strings(document, "/specVersion" if claims_1_1(document) else "/version"):
        major = version.partition(".")[0]
        if major.isdecimal() and major.lstrip("0") not in _KNOWN_MAJORS:
            yield finding(pointer, f"Version {shown(version)} of AWAS is not known.")


@check("awas-size", WARNING, f"{PRACTICE} 1", hint="Shorten descriptions, or publish fewer actions.")
def too_large(document: JsonObject) -> Iterator[Finding]:
    """The manifest is under 100 KB."""
    try:
        size = len(orjson.dumps(document))
    except TypeError:  # The document has, for instance, a lone surrogate: it is not measured.
        return
    yield from oversize(size)


def oversize(size: int) -> Iterator[Finding]:
    """Report a size in bytes that is above the limit."""
    if size > MAX_BYTES:
        yield finding("", f"The manifest has {size} bytes; {MAX_BYTES} are recommended at most.")


@check("awas-base-url", ERROR, TOP_LEVEL, hint='Write the whole URL, with "https://".')
def relative_base(document: JsonObject) -> Iterator[Finding]:
    """baseUrl and contact.url are absolute http or https URLs."""
    for pointer, text in strings(document, "/baseUrl", "/contact/url"):
        parts = split(text)
        if url_fault(text) is None and (parts is None or parts.scheme not in WEB):
            yield finding(pointer, f"{shown(text)} is not an absolute http or https URL.")


@check("awas-url", ERROR, f"{VALIDATION} rule 4", hint="Correct the URL; write a space as %20.")
def bad_urls(document: JsonObject) -> Iterator[Finding]:
    """URLs are well-formed."""
    site = ("/baseUrl", "/contact/url", "/authentication/endpoints/{}", "/security/allowedOrigins/[]")
    return malformed_urls(document, *site, "/actions/[]/path|endpoint|previewUrl", "/actions/[]/openapi/documentUrl")


@check("awas-email", WARNING, TOP_LEVEL, hint="Write the address alone.")
def bad_email(document: JsonObject) -> Iterator[Finding]:
    """contact.email is an e-mail address."""
    for pointer, text in strings(document, "/contact/email"):
        if not re.fullmatch(r"[^@\s]+@[^@\s]+", text):
            yield finding(pointer, f"{shown(text)} is not an e-mail address.")


@check("awas-last-updated", ERROR, SCHEMA_1_1, hint='Write it as "2026-01-31T12:00:00Z".')
def bad_timestamp(document: JsonObject) -> Iterator[Finding]:
    """lastUpdated is an ISO 8601 time."""
    for pointer, text in strings(document, "/lastUpdated"):
        if not is_timestamp(text):
            yield finding(pointer, f"{shown(text)} is not an ISO 8601 time.")


@check("awas-optional-for", WARNING, SCHEMA_1_1, hint="Name an action by its id.")
def unknown_optional(document: JsonObject) -> Iterator[Finding]:
    """authentication.optional_for names actions of the manifest."""
    ids = {identifier for _, identifier in strings(document, "/actions/[]/id")}
    return unknown_names(document, ids, "/authentication/optional_for/[]")


@check("awas-workflow-id", WARNING, SCHEMA_1_1, hint="Rename one of the workflows.")
def repeated_workflows(document: JsonObject) -> Iterator[Finding]:
    """The ids of workflows are unique."""
    return repeated(document, "/workflows")


row(
    "awas-rate-window",
    ERROR,
    f"{VALIDATION} rule 5",
    "Rate limit windows are a positive number followed by s, m, h or d.",
    hint='Write for instance "1m" or "24h".',
    violation=r"pattern .*/window",
)

row(
    "awas-rate-count",
    ERROR,
    f"{VALIDATION} rule 5; {SCHEMA_1_1}",
    "Rate limits allow at least one request.",
    hint="Write a positive whole number, or leave the limit out.",
    violation=r"minimum (.*/requests|/rate_limits/\w+)",
)


@check("awas-rate-incomplete", WARNING, TOP_LEVEL, hint="Add the member.")
def partial_rate_limits(document: JsonObject) -> Iterator[Finding]:
    """Rate limits say how many requests and in which time."""
    for pointer, limit in objects(document, "/rateLimit", "/actions/[]/rateLimit|rateLimitHint"):
        for name in ("requests", "window"):
            if name not in limit:
                yield finding(child(pointer, name), f"The rate limit has no {name}.")


@check("awas-unique-id", ERROR, f"{VALIDATION} rule 2", hint="Rename one of the actions.")
def repeated_actions(document: JsonObject) -> Iterator[Finding]:
    """The ids of actions are unique."""
    return repeated(document, "/actions")


row(
    "awas-action-id",
    ERROR,
    SCHEMA_1_1,
    "In a 1.1 manifest the ids of actions match ^[a-z_][a-z0-9_]*$.",
    hint="Write the id in snake_case; both versions accept it.",
    violation=r"pattern /actions/\d+/id",
)


@check("awas-id-style", WARNING, f"{PRACTICE} 8", hint='Write for instance "search-books" or "search_books".')
def unusual_ids(document: JsonObject) -> Iterator[Finding]:
    """In a 1.0 manifest the ids of actions are in kebab-case (or snake_case)."""
    for pointer, identifier in () if claims_1_1(document) else strings(document, "/actions/[]/id"):
        if not _KEBAB_OR_SNAKE_CASE.fullmatch(identifier):
            yield finding(pointer, f"The id {shown(identifier)} is not in kebab-case.")


@check(
    "awas-selector", ERROR, f"{VALIDATION} rule 3", hint="Try the selector with document.querySelector in a browser."
)
def bad_selectors(document: JsonObject) -> Iterator[Finding]:
    """Selectors of actions, parameters, results and pagination are CSS selectors."""
    actions = ("/actions/[]/selector", f"{_INPUTS}/selector")
    results = ("selector|itemSelector", "properties/{}", "pagination/selector|nextButton|currentPage")
    for pointer, text in strings(document, *actions, *(f"/actions/[]/result/{name}" for name in results)):
        from awp_publish.pages.selectors import selector_fault  # where there are selectors at all

        if fault := selector_fault(text):
            yield finding(pointer, f"{shown(text)} is not a CSS selector: {fault}.")


@check("awas-path", WARNING, ACTIONS, hint='Begin with "/", so that it does not depend on the page it is read from.')
def bad_paths(document: JsonObject) -> Iterator[Finding]:
    """The path and endpoint of an action begin with "/" or are absolute."""
    return dependent_paths(document, "/actions/[]/path|endpoint")


@check("awas-path-parameter", WARNING, ACTIONS, hint="Declare the parameter, or write it the same way in both places.")
def undeclared_placeholders(document: JsonObject) -> Iterator[Finding]:
    """Every placeholder in a path has a parameter of that name."""
    for pointer, action in objects(document, "/actions/[]"):
        templates = [(place, text) for place, text in strings(action, "/path|endpoint") if "{" in text]
        if templates:
            names = {name for _, name in strings(action, "/parameters|inputs/[]/name")}
            names |= members(members(action.get("inputSchema")).get("properties")).keys()
            for place, text in templates:
                yield from unexplained_placeholders(pointer + place, text, names)


row(
    "awas-schema",
    ERROR,
    SCHEMA_1_1,
    "inputSchema and outputSchema are valid JSON Schemas whose references resolve.",
    hint="Correct the schema; 2020-12 is the dialect assumed.",
    violation=r"(schema|reference) .*",
)


@check("awas-effect-contradiction", WARNING, SCHEMA_1_1, hint="Correct the one that is wrong.")
def contradictory_effects(document: JsonObject) -> Iterator[Finding]:
    """Method, intent and side effect of an action agree."""
    for pointer, action in objects(document, "/actions/[]") if claims_1_1(document) else ():
        intent, effect, method = action.get("intent"), action.get("sideEffect"), action.get("method")
        if effect == "safe" and intent in ("write", "delete"):
            yield finding(f"{pointer}/sideEffect", f'The intent is "{intent}" and the side effect "safe".')
        elif effect == "destructive" and intent == "read":
            yield finding(f"{pointer}/intent", 'The intent is "read" and the side effect "destructive".')
        elif method in ("GET", "HEAD", "OPTIONS") and (effect == "destructive" or intent in ("write", "delete")):
            yield finding(f"{pointer}/method", f"{shown(method)} is used for an action that changes something.")


@check("awas-conformance", ERROR, "AWAS 1.1 conformance levels", hint="Add what is lacking, or claim a lower level.")
def unmet_levels(document: JsonObject) -> Iterator[Finding]:
    """The conformance level claimed is met by every action."""
    claimed, writes = document.get("conformanceLevel"), False
    for pointer, action in objects(document, "/actions/[]"):
        writes = writes or not _only_reads(action)
        levels = {level for level in (claimed, action.get("conformanceLevel")) if isinstance(level, str)}
        # Only the highest level that is not met is reported; it includes the lower ones.
        for level in sorted(levels & {"L1", "L2", "L3"}, reverse=True):
            if lacking := list(_lacking(action, level)):
                yield finding(pointer, f"{level} is claimed, for which this action lacks {', '.join(lacking)}.")
                break
    if claimed in ("L2", "L3") and writes:
        security = document.get("security")
        if not isinstance(security, dict):
            yield finding("/security", f"The document claims {claimed}, has writing actions, and no security section.")
        elif "csrfRequired" not in security:
            message = f"The document claims {claimed} and does not say whether it uses CSRF tokens."
            yield finding("/security/csrfRequired", message)


def _only_reads(action: JsonObject) -> bool:
    statement = (action.get("method"), action.get("intent", "read"), action.get("sideEffect", "safe"))
    return statement == ("GET", "read", "safe")


def _lacking(action: JsonObject, level: str) -> Iterator[str]:
    """Name what an action lacks: L1 only reads, L2 previews what it writes, L3 declares everything else, too."""
    reads = _only_reads(action)
    if level == "L1" or reads:
        for name, wanted in (("method", "GET"), ("sideEffect", "safe"), ("intent", "read")):
            if action.get(name) != wanted:
                yield f'{name} "{wanted}"'
    elif not action.get("previewUrl") and action.get("dryRunSupported") is not True:
        yield "previewUrl or dryRunSupported"
    if level == "L3":
        yield from (name for name in ("authScopes", "preconditions", "rateLimitHint") if name not in action)
        if not reads and action.get("idempotencyKeySupported") is not True:
            yield "idempotencyKeySupported true"
        if "inputSchema" not in action:
            yield "inputSchema"
        if "outputSchema" not in action and "schema" not in members(action.get("outputs")):
            yield "outputSchema"


@check("awas-unique-parameter", WARNING, PARAMETERS, hint="Rename one, or merge the two.")
def repeated_parameters(document: JsonObject) -> Iterator[Finding]:
    """The parameters of one action have different names."""
    return repeated(document, "/actions/[]/parameters|inputs", "name")


@check("awas-inputs-disagree", WARNING, f"{PARAMETERS}; {SCHEMA_1_1}", hint="Derive both from one list.")
def disagreeing_inputs(document: JsonObject) -> Iterator[Finding]:
    """parameters (1.0) and inputs (1.1) of one action have the same names."""
    for pointer, action in objects(document, "/actions/[]"):
        if isinstance(action.get("parameters"), list) and isinstance(action.get("inputs"), list):
            old = {name for _, name in strings(action, "/parameters/[]/name")}
            new = {name for _, name in strings(action, "/inputs/[]/name")}
            if old != new:
                message = f"Only one of parameters and inputs has {shown(sorted(old ^ new))}."
                yield finding(f"{pointer}/inputs", message)


row(
    "awas-enum",
    ERROR,
    f"{VALIDATION} rule 6",
    "Enumerations are arrays with at least one item.",
    hint="List the allowed values, or leave the enumeration out.",
    violation=r"\w+ .*/enum",
)


@check("awas-pattern", ERROR, PARAMETERS, hint="Correct the expression; a backslash is written twice in JSON.")
def bad_patterns(document: JsonObject) -> Iterator[Finding]:
    """Validation patterns are regular expressions."""
    for pointer, pattern in strings(document, f"{_INPUTS}/validation/pattern"):
        if not is_pattern(pattern):
            yield finding(pointer, f"{shown(pattern)} is not a regular expression.")


@check(
    "awas-range",
    WARNING,
    PARAMETERS,
    hint="Correct the limits: now no value is allowed.",
    violation=r"minimum .*/validation/\w+",
)
def empty_ranges(document: JsonObject) -> Iterator[Finding]:
    """Lower limits are not above upper limits, and lengths are not negative."""
    for pointer, rules in objects(document, f"{_INPUTS}/validation"):
        for low, high in (("min", "max"), ("minLength", "maxLength")):
            lowest, highest = rules.get(low), rules.get(high)
            if is_number(lowest) and is_number(highest) and lowest > highest:
                yield finding(f"{pointer}/{low}", f"{low} {shown(lowest)} is above {high} {shown(highest)}.")


@check("awas-default", WARNING, PARAMETERS, hint="Correct the default or the rule.")
def broken_defaults(document: JsonObject) -> Iterator[Finding]:
    """Default values have the type and keep the enumeration and validation of their parameter."""
    for pointer, parameter in objects(document, _INPUTS):
        default = parameter.get("default")
        if default is not None and (fault := _fault(default, parameter)):  # null means that there is none.
            yield finding(f"{pointer}/default", f"The default {shown(default)} {fault}.")


@check("awas-example", WARNING, PARAMETERS, hint="Correct the example or the rule.")
def broken_examples(document: JsonObject) -> Iterator[Finding]:
    """Example values have the type and keep the enumeration and validation of their parameter."""
    for pointer, parameter in objects(document, _INPUTS):
        if "example" not in parameter and "examples" not in parameter:
            continue
        example = select(parameter, "/example") if parameter.get("example") is not None else []
        for place, value in example + select(parameter, "/examples/[]")[:100]:
            if fault := _fault(value, parameter):
                yield finding(pointer + place, f"The example {shown(value)} {fault}.")


def _fault(value: object, parameter: JsonObject) -> str | None:
    """Return how a value violates the rules of its parameter."""
    wanted, rules = parameter.get("type"), members(parameter.get("validation"))
    if isinstance(wanted, str) and not is_type(value, wanted):
        return f"is not of type {wanted}"
    for allowed in (parameter.get("enum"), rules.get("enum")):
        if isinstance(allowed, list) and allowed and value not in allowed:
            return "is not in the enumeration"
    measure, low, high, unit = value, "min", "max", ""
    if isinstance(value, str):
        if isinstance(pattern := rules.get("pattern"), str) and matches(pattern, value) is False:
            return f"does not match {shown(pattern)}"
        measure, low, high, unit = len(value), "minLength", "maxLength", " characters"
    if is_number(measure):
        if is_number(lowest := rules.get(low)) and measure < lowest:
            return f"is below {low} {shown(lowest)}{unit}"
        if is_number(highest := rules.get(high)) and measure > highest:
            return f"is above {high} {shown(highest)}{unit}"
    return None

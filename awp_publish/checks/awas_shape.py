"""The tables of AWAS: the members of a manifest in versions 1.0 and 1.1, and their enumerations.

A manifest claims 1.1 by having `specVersion`. The two versions require different members, and one manifest may carry
both sets; so types bind wherever a member stands, and what must be there depends on the version claimed. Parameters
and results are 1.0's own parts and are held to 1.0's rules in any manifest that has them.
"""

from __future__ import annotations

from collections.abc import Mapping

from awp_publish.checks.shape import Enumeration, Shape

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

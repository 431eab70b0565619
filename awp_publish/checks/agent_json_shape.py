"""The tables of AWP agent.json 0.1 and 0.2: members, types, enumerations. 0.2 adds `protocols`, `via`, `operation`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from awp_publish.checks.shape import Enumeration, Shape

SPEC = "AWP agent.json"
KNOWN_MAJORS = (0,)
METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")
_VERSION = re.compile(r"(\d{1,9})\.(\d{1,9})", re.ASCII)


def version(document: Mapping[str, object]) -> tuple[int, int] | None:
    """Read `awp_version`; None where it is missing or not MAJOR.MINOR."""
    text = document.get("awp_version")
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    return (int(match[1]), int(match[2])) if match else None


def knows_protocols(document: Mapping[str, object]) -> bool:
    """Say whether the version claimed has `protocols` and `via`: 0.2 and later, or none that can be read."""
    claimed = version(document)
    return claimed is None or claimed >= (0, 2)


SHAPES = (
    Shape(
        "",
        "The document",
        f"{SPEC} section 5",
        {
            "awp_version": "string",
            "domain": "string",
            "intent": "string",
            "protocols": "object of object",
            "capabilities": "object",
            "auth": "object",
            "entities": "object of object",
            "actions": "array of object",
            "errors": "object of object",
            "dependencies": "object of array of string",
            "agent_hints": "object",
            "agent_status": "object",
            "source": "string",
            "generated_by": "string",
            "confidence": "number",
            "last_verified": "string",
        },
        ("awp_version", "domain", "intent", "actions"),
    ),
    Shape(
        "/protocols/{}",
        "A protocol",
        f"{SPEC} 0.2 section 5.5",
        {"version": "string", "endpoint": "string"},
        ("version",),
        knows_protocols,
    ),
    Shape(
        "/capabilities",
        "The capabilities",
        f"{SPEC} section 6",
        {
            "streaming": "boolean",
            "batch_actions": "boolean",
            "webhooks": "boolean",
            "pagination": "string",
            "idempotency": "boolean",
        },
    ),
    Shape(
        "/auth",
        "The authentication contract",
        f"{SPEC} section 7",
        {
            "required_for": "array of string",
            "optional_for": "array of string",
            "type": "string",
            "token_expiry": "string",
            "refresh_endpoint": "string",
        },
    ),
    Shape("/entities/{}", "An entity", f"{SPEC} section 8", {"fields": "object of string"}),
    Shape(
        "/actions/[]",
        "An action",
        f"{SPEC} section 9",
        {
            "id": "string",
            "description": "string",
            "auth_required": "boolean",
            "inputs": "object of object",
            "outputs": "object of string|object",
            "endpoint": "string",
            "method": "string",
            "via": "string",
            "operation": "string",
            "rate_limit": "string",
            "idempotency": "object",
            "execution_model": "string",
            "poll_endpoint": "string",
            "sensitivity": "string",
            "requires_human_confirmation": "boolean",
            "reversible": "boolean",
        },
        ("id", "description", "auth_required", "inputs", "outputs"),
    ),
    Shape(
        "/actions/[]/inputs/{}",
        "An input",
        f"{SPEC} section 9, Input parameter fields",
        {"type": "string", "required": "boolean", "default": "any", "options": "array", "description": "string"},
        ("type",),
    ),
    Shape(
        "/actions/[]/idempotency",
        "The idempotency contract",
        f"{SPEC} section 9",
        {"supported": "boolean", "key_field": "string", "window": "string"},
    ),
    Shape("/errors/{}", "An error", f"{SPEC} section 10", {"recovery": "string"}, ("recovery",)),
    Shape(
        "/agent_status",
        "The status",
        f"{SPEC} section 13",
        {"operational": "boolean", "degraded_actions": "array of string", "status_endpoint": "string"},
    ),
)

ENUMERATIONS = (
    Enumeration("/capabilities/pagination", ("cursor", "offset", "page", "none"), f"{SPEC} section 6"),
    Enumeration("/auth/type", ("oauth2", "api_key", "bearer", "none"), f"{SPEC} section 7"),
    Enumeration("/actions/[]/method", METHODS, f"{SPEC} section 9"),
    Enumeration("/actions/[]/execution_model", ("sync", "async"), f"{SPEC} section 9"),
    Enumeration(
        "/actions/[]/sensitivity",
        ("standard", "destructive", "irreversible"),
        f"{SPEC} section 9, Sensitivity levels",
    ),
)

REGISTERED_PROTOCOLS = ("a2a", "mcp", "acp", "ap2", "x402", "skyfire", "openapi", "graphql", "payment")
REACHED_PROTOCOLS = ("a2a", "mcp", "acp")

# Other standards use the same file name. Each is known by members that it requires and AWP does not have.
OTHER_STANDARDS = (
    ("agent.json by FransDevelopment (agent-json 1.x)", ("version", "origin", "payout_address")),
    ("the facts file of agent-json/spec 1.0", ("schema_version", "subject", "last_reviewed")),
    ("an A2A agent card", ("skills", "protocolVersion")),
    ("an A2A agent card", ("skills", "url", "capabilities")),
    ("an A2A agent card", ("skills", "supportedInterfaces")),
)

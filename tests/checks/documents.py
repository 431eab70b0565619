"""Valid documents of every kind, in which the checks find nothing at all, and a way to break them a little."""

from __future__ import annotations

import copy
from collections.abc import Mapping

Document = dict[str, object]

SEARCH_SCHEMA = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "sort": {"type": "string", "enum": ["relevance", "newest"]}},
    "required": ["q"],
}

AWAS: Document = {
    "version": "1.0",
    "specVersion": "1.1",
    "name": "Bookshop",
    "description": "Find and order books.",
    "baseUrl": "https://books.example",
    "contact": {"email": "desk@books.example", "url": "https://books.example/contact"},
    "authentication": {"required": False, "methods": ["session"], "optional_for": ["search_books"]},
    "rateLimit": {"requests": 100, "window": "1h", "scope": "ip"},
    "rate_limits": {"requests_per_minute": 60},
    "lastUpdated": "2026-01-31T12:00:00Z",
    "conformanceLevel": "L2",
    "security": {"csrfRequired": True, "sameSite": "Lax"},
    "actions": [
        {
            "id": "search_books",
            "type": "search",
            "intent": "read",
            "sideEffect": "safe",
            "name": "Search books",
            "description": "Search books by title.",
            "path": "/search",
            "endpoint": "/search",
            "method": "GET",
            "parameters": [
                {
                    "name": "q",
                    "type": "string",
                    "required": True,
                    "description": "Words of the title",
                    "selector": "input[name='q']",
                    "validation": {"pattern": "^[a-z]+$", "minLength": 2, "maxLength": 20},
                    "example": "whales",
                },
                {
                    "name": "sort",
                    "type": "string",
                    "format": "date",
                    "required": False,
                    "description": "Order of the results",
                    "enum": ["relevance", "newest"],
                    "default": "relevance",
                },
            ],
            "inputs": [
                {"name": "q", "type": "string", "required": True, "examples": ["whales"]},
                {
                    "name": "sort",
                    "type": "string",
                    "default": "relevance",
                    "validation": {"enum": ["relevance", "newest"]},
                },
            ],
            "inputSchema": SEARCH_SCHEMA,
            "result": {
                "type": "list",
                "selector": ".books",
                "itemSelector": ".book:not(.sold, .hidden)",
                "properties": {"title": ".title"},
                "pagination": {"nextButton": "a[rel=next]"},
            },
            "rateLimit": {"requests": 20, "window": "1m"},
        },
        {
            "id": "remove_line",
            "type": "state_change",
            "intent": "delete",
            "sideEffect": "destructive",
            "name": "Remove a line",
            "description": "Remove a line from the basket.",
            "path": "/lines/{line_id}",
            "endpoint": "/lines/{line_id}",
            "method": "DELETE",
            "dryRunSupported": True,
            "parameters": [
                {"name": "line_id", "type": "integer", "required": True, "description": "The line", "example": 3}
            ],
            "rateLimitHint": {"requests": 5, "window": "1m"},
        },
    ],
    "workflows": [{"id": "tidy", "name": "Tidy up", "steps": ["search_books", "remove_line", "Tell the person."]}],
    "x-house": "ours",
}

AWAS_1_0: Document = {
    "version": "1.0",
    "name": "Bookshop",
    "description": "Find books.",
    "actions": [
        {
            "id": "search-books",
            "name": "Search books",
            "description": "Search books by title.",
            "path": "/search",
            "method": "GET",
        }
    ],
}

AGENT_JSON: Document = {
    "awp_version": "0.2",
    "domain": "books.example",
    "intent": "Find and order books.",
    "protocols": {
        "mcp": {"version": "2025-06-18", "endpoint": "https://books.example/mcp"},
        "payment": {"version": "1.0"},
        "x-woa": {"version": "1"},
    },
    "capabilities": {"streaming": False, "pagination": "cursor"},
    "auth": {
        "required_for": ["order_book", "cancel_order"],
        "optional_for": ["search_books"],
        "type": "bearer",
        "token_expiry": "24h",
        "refresh_endpoint": "/token",
    },
    "entities": {"book": {"fields": {"title": "string", "kind": "enum[novel, poem]"}}},
    "actions": [
        {
            "id": "search_books",
            "description": "Search books by title.",
            "auth_required": False,
            "inputs": {
                "q": {"type": "string", "required": True},
                "sort": {"type": "enum", "options": ["relevance", "newest"], "default": "relevance"},
            },
            "outputs": {"books": "array[book]", "total": "integer"},
            "endpoint": "/search",
            "method": "GET",
            "rate_limit": "30/minute",
        },
        {
            "id": "order_book",
            "description": "Order a book.",
            "auth_required": True,
            "inputs": {"isbn": {"type": "string", "required": True}},
            "outputs": {"book": "object[book]"},
            "via": "mcp",
            "operation": "order_book",
            "sensitivity": "destructive",
            "idempotency": {"supported": True, "key_field": "idempotency_key", "window": "24h"},
            "execution_model": "async",
            "poll_endpoint": "/jobs",
        },
        {
            "id": "cancel_order",
            "description": "Cancel an order.",
            "auth_required": True,
            "inputs": {"order_id": {"type": "integer", "required": True}},
            "outputs": {"cancelled": "boolean"},
            "endpoint": "/orders/{order_id}",
            "method": "DELETE",
            "sensitivity": "irreversible",
            "requires_human_confirmation": True,
            "reversible": False,
        },
    ],
    "errors": {"RATE_LIMITED": {"recovery": "wait 60 seconds then retry"}},
    "dependencies": {"order_book": ["search_books"], "cancel_order": ["order_book"]},
    "agent_hints": {"search": "cache results for an hour"},
    "agent_status": {"operational": True, "degraded_actions": ["order_book"], "status_endpoint": "/status"},
}

WOA: Document = {
    "woa_version": "1",
    "agents": [
        {
            "id": "summarizer",
            "name": "Summarizer",
            "description": "Summarises English text.",
            "version": "1.0.0",
            "capabilities": ["https://books.example/capability/summary"],
            "inputs": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {"text": {"$ref": "#/$defs/text"}},
                "required": ["text"],
                "$defs": {"text": {"type": "string", "pattern": "[a-z]"}},
            },
            "outputs": {"type": "object", "properties": {"summary": {"type": "string"}}},
            "transports": ["rest", "mcp"],
            "operations": [{"name": "default", "description": "Summarise."}],
        }
    ],
    "transports": {
        "rest": {"base": "https://books.example", "invoke_path": "/agents/{agent_id}/invoke"},
        "mcp": {"server": "https://books.example/mcp", "tool_namespace": "books", "tool_field": "agent"},
    },
}

MCP: Document = {
    "name": "Bookshop",
    "version": "1.0",
    "capabilities": ["actions"],
    "endpoints": {"actions": "/.well-known/awas.json", "schema": "/schema/awas-schema.json"},
    "integration": {"protocol": "MCP", "version": "1.0"},
}

A2A: Document = {
    "name": "Bookshop",
    "version": "1.0",
    "protocol": "A2A",
    "capabilities": {"actions": True},
    "endpoints": {"actions_registry": "/.well-known/awas.json", "schema_definition": "/schema/awas-schema.json"},
    "interoperability": {"cross_protocol": True},
}

KINDS: dict[str, Document] = {
    "awas": AWAS,
    "agent-json": AGENT_JSON,
    "woa": WOA,
    "awas-mcp": MCP,
    "awas-a2a": A2A,
}

PATHS = {
    "awas": "/.well-known/ai-actions.json",
    "agent-json": "/agent.json",
    "woa": "/.well-known/woa.json",
    "awas-mcp": "/.well-known/mcp-manifest.json",
    "awas-a2a": "/.well-known/a2a-manifest.json",
}

ABSENT = object()
"""In an edit: take the member away."""


def edited(document: Mapping[str, object], edits: Mapping[str, object]) -> Document:
    """Copy a document and change, add (an index "-" appends) or remove the places named."""
    result: Document = copy.deepcopy(dict(document))
    for pointer, value in edits.items():
        *way, last = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
        owner: object = result
        for token in way:
            owner = _inside(owner, token)
        _put(owner, last, copy.deepcopy(value) if value is not ABSENT else ABSENT)
    return result


def _inside(owner: object, token: str) -> object:
    if isinstance(owner, list):
        return owner[int(token)]
    assert isinstance(owner, dict)
    return owner.setdefault(token, {})


def _put(owner: object, token: str, value: object) -> None:
    if isinstance(owner, list):
        if token == "-":
            owner.append(value)
        else:
            owner[int(token)] = value
    else:
        assert isinstance(owner, dict)
        if value is ABSENT:
            owner.pop(token, None)
        else:
            owner[token] = value

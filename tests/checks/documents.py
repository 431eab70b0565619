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

ACTIONS_JSON: Document = {
    "protocol": "actions.json",
    "version": 1,
    "surface": {
        "origin": "https://books.example",
        "name": "Bookshop",
        "kind": "website",
        "surface_id": "books.example",
    },
    "imports": [
        {
            "id": "payments",
            "kind": "public",
            "uri": "https://maps.example/payments/actions.json",
            "namespace": "payments",
            "trust": "public",
            "enabled": False,
        }
    ],
    "composition": {"default_conflict_policy": "prefer_local", "namespace_required": True},
    "context": [
        {
            "id": "search",
            "title": "Search",
            "body": "Search before opening a book.",
            "load_when": {"url_contains": "/search", "states": ["search.ready"]},
            "available_tools": ["search_books", "payments.pay"],
            "next_states": ["search.listed"],
        }
    ],
    "states": [
        {
            "name": "search.ready",
            "description": "A query can be typed.",
            "diagnostics": [{"name": "form", "target": {"selector": "form[role='search']", "confidence": "observed"}}],
        },
        {
            "name": "search.listed",
            "description": "Books are listed.",
            "diagnostics": [
                {"name": "book", "target": {"selectors": ["li.book", "article"], "url_contains": "/search"}}
            ],
            "observables": ["search.results"],
        },
    ],
    "transitions": [
        {
            "name": "search.find",
            "from": "search.ready",
            "to": "search.listed",
            "tool": "search_books",
            "method": "tool_call",
            "rate_limit_ms": 1000,
            "convergence": {"complete_when": "search.listed", "max_attempts": 1},
        }
    ],
    "tools": [
        {
            "name": "search_books",
            "description": "Search books by title.",
            "input_schema": {
                "type": "object",
                "properties": {"q": {"type": "string"}},
                "required": ["q"],
                "additionalProperties": False,
            },
            "target": {
                "selector": "form[role='search']",
                "fallback_selectors": ["[data-awas-action='search_books']"],
                "state": "search.ready",
                "confidence": "observed",
            },
            "requires": ["text.insert", "pointer.click"],
            "x_actions": {
                "direction": "agent_to_html",
                "scope": "active_surface",
                "source": {"selectors": ["form[role='search']"], "files": ["pages/search.html"]},
                "result_schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}},
            },
            "workflow": {
                "version": 1,
                "expression_language": "jsonata",
                "steps": [
                    {
                        "id": "type_q",
                        "primitive": "text.insert",
                        "args": {"text": "{% input.q %}", "target": {"selector": "input[name='q']"}, "mode": "replace"},
                    },
                    {
                        "id": "find_submit",
                        "primitive": "locator.element_info",
                        "args": {"locator": {"selector": "button[type='submit']"}},
                    },
                    {
                        "id": "submit",
                        "primitive": "pointer.click",
                        "args": {
                            "x": "{% steps.find_submit.output.clickable_center.x %}",
                            "y": "{% steps.find_submit.output.clickable_center.y %}",
                        },
                        "settle_after": {"locator": {"selector": "p.count"}, "timeout_ms": 8000},
                    },
                    {"id": "page", "primitive": "page.info"},
                ],
                "output": "{% {'ok': true, 'url': steps.page.output.url} %}",
            },
        },
        {
            "name": "order_book",
            "description": "Order a book.",
            "input_schema": {"type": "object", "properties": {"slug": {"type": "string"}}},
            "x_actions": {"handler": "agents.invoke", "scope": "persistent"},
        },
    ],
    "signals": [
        {
            "name": "search.book_chosen",
            "description": "A visitor opened a book.",
            "direction": "html_to_agent",
            "event": "bookshop:book-chosen",
            "ingestion": "enabled",
            "target": {"selector": "ol.books"},
            "payload": {"type": "object", "properties": {"slug": {"type": "string"}}, "additionalProperties": False},
        }
    ],
    "attachments": [
        {
            "id": "search.guide",
            "kind": "status_badge",
            "target": {"selector": "main h1"},
            "affordance": {"label": "Readable by agents", "placement": "afterend"},
            "lifecycle": {"install": "when_target_matches", "remove": "when_context_mismatch"},
        }
    ],
    "checks": [
        {
            "id": "search.form_visible",
            "description": "The search form is on the page.",
            "severity": "major",
            "assertions": [{"target": {"selector": "form[role='search']"}, "visible": True}],
            "on_fail": {"store_evidence": ["url"], "contingency": "handoff_to_user"},
        }
    ],
    "state_projections": [
        {
            "name": "search.results",
            "description": "The books that are listed.",
            "scope": {"url_matches": "https://books.example/search*"},
            "snapshot": {
                "version": 1,
                "source": "dom",
                "extract": [
                    {
                        "id": "books",
                        "selector": "li.book",
                        "many": True,
                        "fields": {"title": {"selector": ".title", "property": "innerText", "required": True}},
                    }
                ],
                "projection": {"language": "jsonata", "expression": "{% {'books': $append([], records.books)} %}"},
                "output_schema": {"type": "object", "required": ["books"], "properties": {"books": {"type": "array"}}},
            },
            "summaries": [{"name": "short", "max_bytes": 12000, "expression": "{% {'count': $count(state.books)} %}"}],
            "postconditions": {
                "search_books": {
                    "projection": "search.results",
                    "verify": {"language": "jsonata", "expression": "{% $exists(state.books) %}"},
                }
            },
        }
    ],
    "provenance": {"created_by": "awp-publish", "revision": "1.0"},
}

KINDS: dict[str, Document] = {
    "awas": AWAS,
    "agent-json": AGENT_JSON,
    "woa": WOA,
    "awas-mcp": MCP,
    "awas-a2a": A2A,
    "actions-json": ACTIONS_JSON,
}

PATHS = {
    "awas": "/.well-known/ai-actions.json",
    "agent-json": "/agent.json",
    "woa": "/.well-known/woa.json",
    "awas-mcp": "/.well-known/mcp-manifest.json",
    "awas-a2a": "/.well-known/a2a-manifest.json",
    "actions-json": "/.well-known/actions.json",
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

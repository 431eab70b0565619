"""How to connect each client of `clients.toml` to the site."""

import base64
import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from string import Template
from typing import Final
from urllib.parse import quote

import orjson

from awp_publish.calls.wire import Wire, WireCall
from awp_publish.checks.urls import is_loopback
from awp_publish.model import Action, Catalog, without_accents
from awp_publish.plugins.overview.html import Html
from awp_publish.plugins.overview.markup import STATIC, block, code, fill, pretty
from awp_publish.plugins.overview.requests import curl_command
from awp_publish.plugins.overview.samples import sample_input

_CLIENTS: Final[list[dict[str, str]]] = tomllib.loads((STATIC / "clients.toml").read_text("utf-8"))["clients"]


def clients(catalog: Catalog, wire: Wire) -> Mapping[str, list[Html]]:
    """Return instructions by the button under which they stand, "" for those that have none."""
    facts, panels = _facts(catalog, wire), dict[str, list[Html]]()
    for client in _CLIENTS:
        values = {key: Template(client[key]).substitute(facts) for key in ("text", "link") if key in client}
        if values["text"] and ("door" not in client or catalog.door(client["door"]) is not None):
            panel = fill(
                "client",
                title=client["title"],
                steps=client.get("steps"),
                text=block(values["text"], f"For {client['title']}"),
                label=client.get("label"),
                link=values.get("link"),
            )
            panels.setdefault(client.get("button", ""), []).append(panel)
    return panels


def connect_hint(catalog: Catalog) -> object:
    """Return what keeps clients from connecting, None for nothing."""
    if catalog.door("mcp") is None:
        return (
            "Claude, ChatGPT and other MCP clients connect once the MCP door is open: ",
            code('plugins=["mcp"]'),
            ".",
        )
    if is_loopback(catalog.domain):
        return "This address is reachable on this machine only: Claude on the web and ChatGPT cannot connect to it."
    return None


def _facts(catalog: Catalog, wire: Wire) -> dict[str, str]:
    name = re.sub(r"[^a-z0-9]+", "-", without_accents(catalog.site.name)).strip("-") or "site"
    address = catalog.url + catalog.paths.mcp
    in_code = json.dumps({"name": name, "type": "http", "url": address})
    action = _shown_action(catalog, wire)
    request = ""
    if action is not None:
        call = WireCall(action=action.id, inputs=sample_input(action), declared=action)
        request = curl_command(wire.write(call, wire.path_of(catalog) or wire.path), catalog.url)
    return {
        "name": name,
        "origin": catalog.url,
        "mcp": address,
        "vscode_word": shlex.quote(in_code),
        "vscode_query": quote(in_code, safe=""),
        "cursor_file": pretty({"mcpServers": {name: {"url": address}}}),
        "cursor_query": quote(base64.b64encode(orjson.dumps({"url": address})), safe=""),
        "request": request,
    }


def _shown_action(catalog: Catalog, wire: Wire) -> Action | None:
    """Return the action of the request to copy: rather one that only reads and needs no credentials."""
    offered = catalog.exposed_at(wire.door).actions
    easy = (action for action in offered if action.effect == "read" and not action.auth_required and not action.scopes)
    return next(easy, offered[0] if offered else None)

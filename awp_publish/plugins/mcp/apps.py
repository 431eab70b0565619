"""Cards: the extension `io.modelcontextprotocol/ui` (MCP Apps, 2026-01-26), for clients that can show a view.

One static page of ours shows the answer of a tool: the question to a person before a call is made, with yes and no; a
list as a table that can be sorted, with a line chart if there are numbers by date; violations of the input, in a form
made from its schema. It loads nothing. Each tool has this page with the facts of its action; for an action that is not
public the page has none, and uses what the host knows of the tool. All other clients, and every model, get the text.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
from mcp.server.lowlevel.server import Server

from awp_publish.model import Action, JsonObject
from awp_publish.plugins.mcp.exchange import RequestContext, WireResult, is_modern
from awp_publish.plugins.mcp.tool_list import LIST_TTL, Tool
from awp_publish.schema import media, member_names
from awp_publish.schema.embedding import answer_schema

EXTENSION: Final = "io.modelcontextprotocol/ui"
MEDIA_TYPE: Final = "text/html;profile=mcp-app"
SCHEME: Final = "ui://agents/"
ANY: Final = f"{SCHEME}card.html"
"""The card without facts of a tool, which uses what the host says."""


class Cards:
    """The cards of the tools of one public address of a site."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._having = {name for name, tool in tools.items() if _has_card(tool.action)}

    def register(self, server: Server[Any]) -> None:
        """Make the SDK's server offer the extension if any action has a card."""
        if self._having:
            server.extensions[EXTENSION] = {}

    def refer(self, tool: Tool, context: RequestContext) -> Mapping[str, object]:
        """Return a tool's entry, with the address of its card if the client shows cards.

        In revisions with a handshake, the client's capabilities are unknown, because there is no session: the address
        is included.
        """
        name = str(tool.entry["name"])
        if name not in self._having:
            return tool.entry
        if is_modern(context):
            capabilities = context.session.client_capabilities
            settings = (capabilities.extensions or {}).get(EXTENSION) if capabilities is not None else None
            media_types = settings.get("mimeTypes") if isinstance(settings, dict) else None
            if not isinstance(media_types, list) or MEDIA_TYPE not in media_types:
                return tool.entry
        address = f"{SCHEME}{name}.html" if tool.action.is_public else ANY
        meta: JsonObject = dict(tool.entry.get("_meta", {}))  # type: ignore[call-overload]
        return {**tool.entry, "_meta": {**meta, "ui": {"resourceUri": address}}}

    def read(self, uri: str) -> WireResult | None:
        """Return the result of `resources/read` for a card, or None if there is no such card at the moment."""
        if not uri.startswith(SCHEME):
            return None
        name = uri.removeprefix(SCHEME).removesuffix(".html")
        facts: JsonObject | None = None
        if uri != ANY:
            tool = self._tools.get(name)
            if tool is None or uri != f"{SCHEME}{name}.html" or name not in self._having or not tool.action.is_public:
                return None
            action, answered = tool.action, answer_schema(tool.action)
            facts = {
                "name": name,
                "title": action.name,
                "inputs": action.inputs,
                "own": [*member_names(action.inputs)],
                "outputs": answered,
                "wrapped": "result" not in member_names(answered),
                "irreversible": action.is_irreversible,
            }
        elif not self._having:
            return None
        # In a script element, only "<" could end the element or open a comment (HTML, 13.1.2 and 4.12.1.3).
        embedded = orjson.dumps(facts).decode().replace("<", "\\u003c")
        text = _page().replace(">null</script>", f">{embedded}</script>", 1)
        view = {"csp": {}, "prefersBorder": True}  # nothing may be loaded
        contents = {"uri": uri, "mimeType": MEDIA_TYPE, "text": text, "_meta": {"ui": view}}
        return {"contents": [contents], "ttlMs": LIST_TTL, "cacheScope": "public", "resultType": "complete"}


@cache
def _page() -> str:
    return Path(__file__).with_name("card.html").read_text("utf-8")


def _has_card(action: Action) -> bool:
    answered = answer_schema(action)
    if action.needs_confirmation:
        return True
    return not media.declared_type(answered) and (answered.get("type") in ("array", "object") or "$ref" in answered)

"""What a kind of caller is shown and may call, at what cost in tokens."""

from collections.abc import Mapping
from itertools import islice
from typing import Final, get_args

import orjson

from awp_publish.calls.call import Label
from awp_publish.model import KNOWN, PUBLIC, Action, Catalog, JsonObject, Listing, listing_of
from awp_publish.plugins.overview.html import Html, tag
from awp_publish.plugins.overview.markup import code, count_words, fill, size_of, table, tokens_of
from awp_publish.plugins.overview.view import View
from awp_publish.schema.embedding import answer_schema

MAX_COLUMNS: Final = 12
"""Maximum callers that are compared side by side."""

MAX_COMPARED: Final = 100
"""Actions that are compared side by side at most."""


def callers_section(view: View, selection: str) -> Html:
    """Return what the chosen kind of caller is shown and may call, and its size in tokens."""
    catalog = view.catalog
    choices = _choices(view)
    kind, _, argument = selection.partition(":")
    chosen = selection if selection in choices or (kind in ("scope", "agent") and argument) else ""
    choices.setdefault(chosen, f'a caller with the {kind} "{argument}"' if kind == "scope" else f"the agent {argument}")
    mcp = view.door.site.plugins.get("mcp")
    listing = listing_of(catalog, mcp.options.list_only_allowed if mcp is not None else False)
    sizes = {action.id: _size(action) for action in catalog.actions}
    listed = _tools(catalog, listing, chosen)
    rows = [
        (
            code(action.id),
            f"no, {why}" if (why := listed[action.id]) else "yes",
            f"{sizes[action.id]:,}",
            f"{tokens_of(sizes[action.id]):,}",
            ", ".join(view.doors_of(action)) or "none",
        )
        for action in catalog.actions
        if action.id in listed
    ]
    columns = {text: _tools(catalog, listing, choice) for choice, text in list(choices.items())[:MAX_COLUMNS]}
    read = {path: len(document.body) for path, document in view.documents.items()}
    heads = ("tool", "may be called", "bytes", "tokens", "listed at")
    return fill(
        "sees",
        root=view.root,
        open=Html(" open") if selection else "",
        choices=[tag("option", text, value=key, selected=key == chosen) for key, text in choices.items()],
        tools=table(f"Tools that {choices[chosen]} is shown", heads, rows, class_=""),
        size=size_of(sum(sizes[name] for name in listed)),
        side_by_side=_side_by_side(columns, sizes) if len(columns) > 1 else None,
        named=_count_named(len(catalog.public.actions), len(_visible(catalog, chosen).actions)),
        total=f"{len(read)} documents, {size_of(sum(read.values()))}",
        documents=[tag("li", code(path), f": {size_of(size)}") for path, size in read.items()],
    )


def _choices(view: View) -> dict[str, str]:
    """Return the kinds of callers that the site tells apart, by the value of the option that chooses them."""
    actions = view.catalog.actions
    audiences = {action.audience for action in actions} - {PUBLIC, KNOWN}
    scopes = sorted(audiences.union(*(action.scopes for action in actions)))
    agents = {agent for action in actions for agent in action.allow_agents if agent not in get_args(Label)}
    for authenticator in view.door.guards.authenticators:
        agents.update(getattr(authenticator, "signers", None) or ())
    asks = any(action.auth_required or action.scopes or action.audience != PUBLIC for action in actions)
    return {
        "": "an anonymous caller",
        **({"known": "a known caller without a scope"} if asks else {}),
        **({f"scope:{' '.join(scopes)}": "a caller with all scopes"} if len(scopes) > 1 else {}),
        **{f"scope:{scope}": f'a caller with the scope "{scope}"' for scope in scopes},
        **{f"agent:{agent}": f"the agent {agent}" for agent in sorted(agents)},
    }


def _size(action: Action) -> int:
    """Return the bytes of an action as a tool of MCP."""
    tool: JsonObject = {"name": action.id, "title": action.name, "description": action.description}
    return len(orjson.dumps({**tool, "inputSchema": action.inputs, "outputSchema": answer_schema(action)}))


def _visible(catalog: Catalog, choice: str) -> Catalog:
    scopes = frozenset(choice.partition(":")[2].split() if choice.startswith("scope:") else ())
    return catalog.visible_to(scopes if choice else None)


def _tools(catalog: Catalog, listing: Listing, choice: str) -> dict[str, str]:
    """Return the actions that are listed for a caller, with the reason why each may not be called, or ""."""
    kind, _, argument = choice.partition(":")
    scopes = frozenset(argument.split() if kind == "scope" else ())
    names = {"verified", argument, argument.partition("://")[2]} if kind == "agent" else {"unknown", ""}
    tools = {}
    for action in _visible(catalog, choice).actions:
        if not listing.shows(action, scopes if choice else None):
            continue
        reason = ""
        if (action.auth_required or action.scopes) and not (choice and scopes.issuperset(action.scopes)):
            reason = f"needs {', '.join(action.scopes)}" if action.scopes and choice else "needs credentials"
        elif action.allow_agents and names.isdisjoint(action.allow_agents):
            reason = f"it is for {', '.join(action.allow_agents)}"
        tools[action.id] = reason
    return tools


def _side_by_side(columns: Mapping[str, Mapping[str, str]], sizes: Mapping[str, int]) -> Html:
    """Return a table of the tools of all kinds of callers, the first of which is anonymous."""

    def standing(tools: Mapping[str, str], name: str) -> str:
        return "hidden" if name not in tools else "listed" if tools[name] else "callable"

    standings = {name: [standing(tools, name) for tools in columns.values()] for name in sizes}
    if len(sizes) > MAX_COMPARED:  # of many actions, only those that differ
        standings = {name: words for name, words in standings.items() if len(set(words)) > 1}
    costs = [f"{tokens_of(sum(sizes[name] for name in tools)):,}" for tools in columns.values()]
    compared = [
        *((code(name), words) for name, words in islice(standings.items(), MAX_COMPARED)),
        ("tokens in all", costs),
    ]
    rows = [(head, *(word if word == cells[0] else tag("mark", word) for word in cells)) for head, cells in compared]
    caption = "Side by side; what differs from an anonymous caller is marked"
    return table(caption, ("tool", *columns), rows, class_="")


def _count_named(public: int, visible: int) -> str:
    if public == visible:
        return "the only action" if public == 1 else f"all {count_words(public, 'action')}"
    return f"{public} of {count_words(visible, 'action')}"

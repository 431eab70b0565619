"""What a kind of caller is shown and may call, at what cost in tokens."""

from collections.abc import Mapping
from typing import Final, get_args

import orjson

from awp_publish.calls.call import Label
from awp_publish.http.html import Html, tag
from awp_publish.model import KNOWN, PUBLIC, Catalog, JsonObject, listing_of
from awp_publish.plugins.overview.markup import code, count_words, fill, size_of, table, tokens_of
from awp_publish.plugins.overview.view import View
from awp_publish.schema.embedding import answer_schema

MAX_COLUMNS: Final = 12
"""Maximum callers that are compared side by side."""

MAX_COMPARED: Final = 100
"""Actions that are compared side by side at most."""


def callers_section(view: View, asked: str) -> Html:
    """Return what the chosen kind of caller is shown and may call, and its size in tokens."""
    catalog, documents = view.catalog, view.documents
    signers = {
        name
        for authenticator in view.door.guards.authenticators
        for name in getattr(authenticator, "signers", None) or ()
    }
    audiences = {action.audience for action in catalog.actions} - {PUBLIC, KNOWN}
    known = sorted(audiences.union(*(action.scopes for action in catalog.actions)))
    agents = {agent for action in catalog.actions for agent in action.allow_agents if agent not in get_args(Label)}
    asks = any(action.auth_required or action.scopes or action.audience != PUBLIC for action in catalog.actions)
    choices = {
        "": "an anonymous caller",
        **({"known": "a known caller without a scope"} if asks else {}),
        **({f"scope:{' '.join(known)}": "a caller with all scopes"} if len(known) > 1 else {}),
        **{f"scope:{scope}": f'a caller with the scope "{scope}"' for scope in known},
        **{f"agent:{agent}": f"the agent {agent}" for agent in sorted({*agents, *signers})},
    }
    kind, _, named = asked.partition(":")
    chosen = asked if asked in choices or (kind in ("scope", "agent") and named) else ""
    choices.setdefault(chosen, f'a caller with the {kind} "{named}"' if kind == "scope" else f"the agent {named}")
    mcp = view.door.site.plugins.get("mcp")
    listing, sizes = listing_of(catalog, mcp.options.list_only_allowed if mcp is not None else False), dict[str, int]()
    for action in catalog.actions:
        tool: JsonObject = {"name": action.id, "title": action.name, "description": action.description}
        sizes[action.id] = len(
            orjson.dumps({**tool, "inputSchema": action.inputs, "outputSchema": answer_schema(action)})
        )

    def visible(choice: str) -> Catalog:
        scopes = frozenset(choice.partition(":")[2].split() if choice.startswith("scope:") else ())
        return catalog.visible_to(scopes if choice else None)

    def tools(choice: str) -> dict[str, str]:
        """Return the actions that are listed for a caller, with the reason why each may not be called, or ""."""
        kind, _, named = choice.partition(":")
        scopes = frozenset(named.split() if kind == "scope" else ())
        names = {"verified", named, named.partition("://")[2]} if kind == "agent" else {"unknown", ""}
        found = {}
        for action in visible(choice).actions:
            if not listing.shows(action, scopes if choice else None):
                continue
            needs = action.auth_required or action.scopes
            may = not needs or (choice != "" and scopes.issuperset(action.scopes))
            found[action.id] = ""
            if not may:
                lacks = action.scopes and choice
                found[action.id] = f"needs {', '.join(action.scopes)}" if lacks else "needs credentials"
            elif action.allow_agents and names.isdisjoint(action.allow_agents):
                found[action.id] = f"it is for {', '.join(action.allow_agents)}"
        return found

    listed, nobody = tools(chosen), tools("")
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
    # Compare all kinds of callers, and mark the differences from an anonymous caller.
    columns = {text: tools(choice) for choice, text in list(choices.items())[:MAX_COLUMNS]}

    def standing(tools: Mapping[str, str], name: str) -> str:
        return "hidden" if name not in tools else "listed" if tools[name] else "callable"

    beside = [
        (code(name), *(word if word == standing(nobody, name) else tag("mark", word) for word in words))
        for name in sizes
        if (words := [standing(tools, name) for tools in columns.values()])
        and (len(sizes) <= MAX_COMPARED or len(set(words)) > 1)  # of many actions, only those that differ
    ][:MAX_COMPARED]
    costs = [tokens_of(sum(sizes[name] for name in tools)) for tools in columns.values()]
    beside.append(("tokens in all", *(f"{n:,}" if n == costs[0] else tag("mark", f"{n:,}") for n in costs)))
    heads, caption = ("tool", *columns), "Side by side; what differs from an anonymous caller is marked"
    read = {path: len(document.body) for path, document in documents.items()}
    shown = ("tool", "may be called", "bytes", "tokens", "listed at")
    return fill(
        "sees",
        root=view.root,
        open=Html(" open") if asked else "",
        choices=[tag("option", text, value=key, selected=key == chosen) for key, text in choices.items()],
        tools=table(f"Tools that {choices[chosen]} is shown", shown, rows, class_=""),
        size=size_of(sum(sizes[name] for name in listed)),
        side_by_side=table(caption, heads, beside, class_="") if len(columns) > 1 else None,
        named=_count_named(len(catalog.public.actions), len(visible(chosen).actions)),
        total=f"{len(read)} documents, {size_of(sum(read.values()))}",
        documents=[tag("li", code(path), f": {size_of(size)}") for path, size in read.items()],
    )


def _count_named(public: int, visible: int) -> str:
    if public == visible:
        return "the only action" if public == 1 else f"all {count_words(public, 'action')}"
    return f"{public} of {count_words(visible, 'action')}"

"""What the site's documents say of one action."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from awp_publish.http.documents import Prepared
from awp_publish.model import Action
from awp_publish.plugins.overview.html import Html
from awp_publish.plugins.overview.markup import block, count_words, fill

MAX_LINES: Final = 60
MAX_LINE: Final = 2_000
"""Characters of a line of a text document."""

MAX_NODES: Final = 20_000
"""Objects and lists of a document that are searched."""

_NAMES: Final = ("id", "name", "action", "skill", "operation_id")


def excerpts(action: Action, documents: Mapping[str, Prepared]) -> Iterator[Html]:
    """Yield the part of each document that is about an action. Documents with the same bytes are given once."""
    seen = set[bytes]()
    for path, document in documents.items():
        if document.body in seen:
            continue
        text = _excerpt(action, document)
        if text is None:
            continue
        seen.add(document.body)
        lines = text.splitlines()
        rest = f"\n… and {count_words(len(lines) - MAX_LINES, 'line')} more" if len(lines) > MAX_LINES else ""
        content = "\n".join(line[:MAX_LINE] for line in lines[:MAX_LINES]) + rest
        yield fill("excerpt", path=path, text=block(content, f"Excerpt of {path}"))


def _excerpt(action: Action, document: Prepared) -> str | None:
    if action.id.encode() not in document.body and action.agent_id.encode() not in document.body:
        return None
    if "json" not in document.media_type:
        names = re.compile(rf"(?<![\w-]){re.escape(action.id)}(?![\w-])")
        lines = [line.strip() for line in document.body.decode("utf-8", "replace").splitlines() if names.search(line)]
        return "\n".join(lines) or None
    try:
        value: Any = orjson.loads(document.body)
    except orjson.JSONDecodeError:
        return None
    part = _find(value, action.id)
    if part is None and action.agent_id != action.id:
        part = _find(value, action.agent_id)
    return None if part is None else json.dumps(part, indent=2, ensure_ascii=False)


def _find(value: Any, name: str) -> Any:
    """Return the outermost object that has this name or id, or that stands under it, None if there is none."""
    level, searched = [value], 0
    while level:
        below = list[Any]()
        for node in level:
            searched += 1
            if searched > MAX_NODES:
                return None
            if isinstance(node, dict):
                if any(node.get(key) == name for key in _NAMES):
                    return node
                if isinstance(node.get(name), dict):
                    return {name: node[name]}
                below += (part for part in node.values() if isinstance(part, (dict, list)))
            elif isinstance(node, list):
                below += (part for part in node if isinstance(part, (dict, list)))
        level = below
    return None

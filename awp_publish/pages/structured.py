"""What a page says of itself: JSON-LD, Open Graph, Twitter cards, meta and link (SOM 1.0, section 2.2)."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from awp_publish.pages.tree import Node, Tree

_META: Final = frozenset(
    ("author", "description", "generator", "keywords", "robots", "theme-color", "viewport"),
)
_RELATIONS: Final = frozenset(
    ("alternate", "amphtml", "apple-touch-icon", "author", "canonical", "dns-prefetch", "icon", "license", "manifest")
) | {"preconnect", "search", "shortcut icon"}


def read_title(tree: Tree) -> str:
    """The first title that says something, as it stands in the page; "" when there is none. A drawing's is not it."""
    for title in tree.tagged("title"):
        text = "".join(piece.text for piece in title.children)
        if text and not _is_drawn(title):
            return text
    return ""


def _is_drawn(title: Node) -> bool:
    above = title.parent
    while above is not None and above.tag != "svg":
        above = above.parent
    return above is not None


def read_structured(tree: Tree) -> dict[str, Any]:
    """The parts that are not empty, in the order of 2.2."""
    parts: dict[str, Any] = {
        "json_ld": list(_json_ld(tree)),
        "open_graph": _named(tree, "property", "og:"),
        "twitter_card": _named(tree, "name", "twitter:"),
        "meta": _meta(tree),
        "links": list(_links(tree)),
    }
    return {name: part for name, part in parts.items() if part}


def _json_ld(tree: Tree) -> Iterator[Mapping[str, Any]]:
    for script in tree.tagged("script"):
        if script.attributes.get("type", "").strip().lower() != "application/ld+json":
            continue
        try:
            found = orjson.loads("".join(piece.text for piece in script.children).strip())
            orjson.dumps([[[found]]])
        except (orjson.JSONDecodeError, TypeError):  # not JSON, or nested deeper than can be written
            continue
        yield from (block for block in (found if isinstance(found, list) else [found]) if isinstance(block, dict))


def _named(tree: Tree, attribute: str, prefix: str) -> dict[str, str]:
    found = {
        meta.attributes[attribute]: meta.attributes["content"]
        for meta in tree.tagged("meta")
        if attribute in meta.attributes and "content" in meta.attributes
    }
    return {name: content for name, content in found.items() if name.startswith(prefix)}


def _meta(tree: Tree) -> dict[str, str]:
    found: dict[str, str] = {}
    for meta in tree.tagged("meta"):
        name = meta.attributes.get("name", "").strip().lower()
        if name in _META and "content" in meta.attributes:
            found[name] = meta.attributes["content"]
        if meta.attributes.get("charset"):
            found["charset"] = meta.attributes["charset"]
    return found


def _links(tree: Tree) -> Iterator[dict[str, str]]:
    for link in tree.tagged("link"):
        relation = link.attributes.get("rel", "").strip().lower()
        if relation in _RELATIONS and "href" in link.attributes:
            also = {name: link.attributes[name] for name in ("type", "hreflang") if link.attributes.get(name)}
            yield {"rel": relation, "href": link.attributes["href"], **also}


def trim_structured(parts: dict[str, Any], room: int) -> int:
    """Takes the largest members out (a block, a name, a link) until the rest fits, and says how many they are."""
    sizes = [
        (len(orjson.dumps(member)), part, key) for part, members in parts.items() for key, member in _keyed(members)
    ]
    total, taken = sum(size + len(str(key)) for size, _, key in sizes), list[tuple[str, Any]]()
    for size, part, key in sorted(sizes, key=lambda one: one[0], reverse=True):
        if total <= room:
            break
        total -= size + len(str(key))
        taken.append((part, key))
    for part, key in sorted(taken, key=lambda one: one[1] if isinstance(one[1], int) else 0, reverse=True):
        del parts[part][key]
    for part in [name for name, members in parts.items() if not members]:
        del parts[part]
    return len(taken)


def _keyed(members: Any) -> list[tuple[Any, Any]]:
    return list(members.items() if isinstance(members, dict) else enumerate(members))

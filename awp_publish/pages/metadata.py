"""Metadata of a page: JSON-LD, Open Graph, Twitter cards, meta and link (SOM 1.0, section 2.2)."""

from typing import Any, Final

import orjson

from awp_publish.pages.tree import Tree, written_in

_META: Final = frozenset(("author", "description", "generator", "keywords", "robots", "theme-color", "viewport"))
_RELATIONS: Final = frozenset(
    ("alternate", "amphtml", "apple-touch-icon", "author", "canonical", "dns-prefetch", "icon", "license", "manifest")
) | {"preconnect", "search", "shortcut icon"}


def read_structured(tree: Tree) -> dict[str, Any]:
    """Return the parts that are not empty, in the order of 2.2."""
    json_ld: list[dict[str, Any]] = []
    for script in tree.find("script"):
        if tree.attributes[script].get("type", "").strip().lower() != "application/ld+json":
            continue
        try:
            found = orjson.loads(written_in(tree, script).strip())
            orjson.dumps([[[found]]])
        except (orjson.JSONDecodeError, TypeError):  # not JSON, or nested too deeply to be written
            continue
        json_ld += (block for block in (found if isinstance(found, list) else [found]) if isinstance(block, dict))
    by_property: dict[str, str] = {}
    by_name: dict[str, str] = {}
    facts: dict[str, str] = {}
    for meta in tree.find("meta"):
        attributes = tree.attributes[meta]
        content = attributes.get("content")
        if content is not None:
            if attributes.get("property", "").startswith("og:"):
                by_property[attributes["property"]] = content
            if attributes.get("name", "").startswith("twitter:"):
                by_name[attributes["name"]] = content
            name = attributes.get("name", "").strip().lower()
            if name in _META:
                facts[name] = content
        if attributes.get("charset"):
            facts["charset"] = attributes["charset"]
    links: list[dict[str, str]] = []
    for link in tree.find("link"):
        attributes = tree.attributes[link]
        relation = attributes.get("rel", "").strip().lower()
        if relation in _RELATIONS and "href" in attributes:
            also = {name: attributes[name] for name in ("type", "hreflang") if attributes.get(name)}
            links.append({"rel": relation, "href": attributes["href"], **also})
    parts = {"json_ld": json_ld, "open_graph": by_property, "twitter_card": by_name, "meta": facts, "links": links}
    return {name: part for name, part in parts.items() if part}


def trim_structured(parts: dict[str, Any], room: int) -> int:
    """Remove the largest members (a block, a name, a link) until the rest fits. Returns the number of removed ones."""
    sizes: list[tuple[int, str, Any]] = []
    for part, members in parts.items():
        keyed = members.items() if isinstance(members, dict) else enumerate(members)
        sizes += ((len(orjson.dumps(member)), part, key) for key, member in keyed)
    total, taken = sum(size + len(str(key)) for size, _, key in sizes), list[tuple[str, Any]]()
    for size, part, key in sorted(sizes, key=lambda entry: entry[0], reverse=True):
        if total <= room:
            break
        total -= size + len(str(key))
        taken.append((part, key))
    for part, key in sorted(taken, key=lambda entry: entry[1] if isinstance(entry[1], int) else 0, reverse=True):
        del parts[part][key]
    for part in [name for name, members in parts.items() if not members]:
        del parts[part]
    return len(taken)

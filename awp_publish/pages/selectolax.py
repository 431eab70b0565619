"""Parses HTML to our tree with selectolax (Lexbor), as the HTML Standard describes it with scripting enabled.

The content of `<noscript>` is dropped, because readers of the page do not see it, unless the page is written there
alone: it is for readers who run no scripts, as we do not.
"""

import re
from collections.abc import Callable
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode

from awp_publish.pages.encodings import to_utf8
from awp_publish.pages.nesting import MAX_TREE_DEPTH, bound_markup
from awp_publish.pages.nesting_proof import may_exceed
from awp_publish.pages.tree import COMMENT, CONSPICUOUS, NO_ATTRIBUTES, SHADOW_MODES, Tree, shadow_mode_of

_TEXT: Final = 2
"""Lexbor's number for text (`LXB_TAG__TEXT`)."""

_NOTED: Final = CONSPICUOUS | {"class", "id"}
_NO_EVENTS: Final = int(LexborDocumentOptions.WO_EVENTS)
"""Otherwise each option is compared with all others of its select, to fill a `<selectedcontent>`."""

_FALLBACK: Final = re.compile(rb"<noscript\b[^>]*+>((?:[^<]++|<(?!/?noscript\b))*+)</noscript\b", re.IGNORECASE)
_FALLBACK_TAG: Final = re.compile(rb"(?<=<|/)noscript\b", re.IGNORECASE)
_MIN_FALLBACK: Final = 2_000
_MAX_BESIDE: Final = 400
"""Bytes of a `<noscript>` from which it may be the page, and characters that a page says beside it at most."""

_UNSAID: Final = frozenset((COMMENT, "noscript", "script", "style", "template", "title"))

_LEAST_NODES: Final = 256
"""Nodes for which space is reserved at the beginning."""


def parse(html: str | bytes, charset: str | None = None) -> Tree:
    """Return the tree of a page, or of a fragment. No input raises an exception.

    `charset` is that of the `Content-Type`; a byte order mark has precedence over it, and it over the page's
    declaration. Markup that is nested too deeply to be parsed in linear time is flattened (see `bound_markup`).
    """
    data = to_utf8(html, charset)
    tree = _parse(data)
    start = data.lower().find(b"<body") if b"noscript" in data else -1
    if start >= 0 and any(len(found[1]) >= _MIN_FALLBACK for found in _FALLBACK.finditer(data, start)):
        texts = zip(tree.parents, tree.texts, strict=True)
        if sum(len(text.strip()) for above, text in texts if tree.tags[above] not in _UNSAID) <= _MAX_BESIDE:
            tree.unlink()
            return _parse(data[:start] + _FALLBACK_TAG.sub(b"div", data[start:]))
    return tree


def _parse(data: bytes) -> Tree:
    try:
        return _build(bound_markup(data) if may_exceed(data) else data, len(data), strict=True)
    except _TooDeepError:  # by rules that only a parser knows
        return _build(bound_markup(data), len(data), strict=False)
    except _TooLargeError:
        return _build(bound_markup(data, max_formatting=1), len(data), strict=False)


class _TooDeepError(Exception):
    """A tree goes beyond `MAX_TREE_DEPTH`."""


class _TooLargeError(Exception):
    """A tree has more nodes than its page can say: formatting elements are reopened in very many blocks."""


def _build(markup: bytes, html_bytes: int, *, strict: bool) -> Tree:
    """Return the tree of markup. If it is too deep it is truncated, or `_TooDeepError` is raised if `strict`."""
    parser = LexborHTMLParser(markup, scripting=True, options=_NO_EVENTS)
    tree = Tree(html_bytes)
    top, by_tag = parser.root, {"html": [0]}
    given = {name: value or "" for name, value in top.attributes.items()} if top is not None else {}
    tree.add("html", given, -1)
    if top is not None:
        tree.ids.update({given["id"]: 0} if "id" in given else {})
        tree.selectable += [0] if "id" in given or "class" in given else []
        _copy(top, tree, 0, by_tag, tree.ids, strict)
        tree.ends[0] = len(tree.tags)
    tree.complete(by_tag)
    # The contents of templates, also nested ones, are not in the page: `Tree.find` does not return them.
    templates = by_tag.get("template", [])
    waiting = list(zip(parser.template_fragments(), templates, strict=False)) if templates else []
    tree.contents.update(dict.fromkeys(templates, (0, 0)))
    _drop_false_roots(tree, templates)
    while waiting:
        fragment, host = waiting.pop()
        inner: dict[str, list[int]] = {}
        start = len(tree.tags)
        _copy(fragment, tree, host, inner, {}, strict)
        tree.contents[host] = start, len(tree.tags)
        if "template" in inner:
            tree.contents.update(dict.fromkeys(inner["template"], (0, 0)))
            _drop_false_roots(tree, inner["template"])
            waiting += zip(fragment.template_fragments(), inner["template"], strict=False)
    return tree


_HOSTS: Final = frozenset(
    ("article", "aside", "blockquote", "body", "div", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "main")
) | {"nav", "p", "section", "span"}
"""Elements that may have a shadow root, besides those of custom names (DOM, 4.2.14)."""


def _drop_false_roots(tree: Tree, templates: list[int]) -> None:
    """Make templates that cannot be shadow roots plain ones: those of other elements, and all but the first of one."""
    hosts = set[int]()
    for template in templates:
        given, host = tree.attributes[template], tree.parents[template]
        if shadow_mode_of(given) is None:
            continue
        if host in hosts or (tree.tags[host] not in _HOSTS and "-" not in tree.tags[host]):
            tree.attributes[template] = {name: given[name] for name in given if name not in SHADOW_MODES}
        hosts.add(host)


def _copy(
    top: LexborNode, tree: Tree, parent: int, by_tag: dict[str, list[int]], ids: dict[str, int], strict: bool
) -> None:
    """Append everything below a parser's node to a tree, inside of `parent`, and index elements by tags and ids.

    This is one loop because it runs for every node of a page. The stack has, for each open element, the parser's node
    after it and the parent there. A kind has, for the parser's number of a tag, its name and the list of elements with
    that name. `room` is the maximal depth of the stack; enclosing templates count too.

    The lists are extended beyond `at` with "" and no attributes, so that little has to be written for a text. Elements
    that have the same class and no other attribute share one mapping.
    """
    tags, attributes, texts, parents, ends = tree.tags, tree.attributes, tree.texts, tree.parents, tree.ends
    room, above = MAX_TREE_DEPTH, parents[parent]
    while above >= 0:
        room, above = room - 1, parents[above]
    if room <= 0:
        if strict:
            raise _TooDeepError
        return
    waiting = list[tuple[LexborNode | None, int]]()
    kinds: dict[int, tuple[str, Callable[[int], None]]] = {}
    classes: dict[str, dict[str, str | None]] = {}
    note_selectable = tree.selectable.append
    start = at = last = len(tags)
    found = top.first_child
    while True:
        while found is None:
            if not waiting:
                del tags[at:], attributes[at:], texts[at:], parents[at:], ends[at:]
                return
            ends[parent] = at
            found, parent = waiting.pop()
        if at >= last:  # with space for two more: an element and its text
            if strict and at > tree.html_bytes // 2 + _LEAST_NODES:
                raise _TooLargeError
            more = (at - start) // 2 + _LEAST_NODES
            tags += [""] * more
            attributes += [NO_ATTRIBUTES] * more
            texts += [""] * more
            parents += [0] * more
            ends += [0] * more
            last = len(tags) - 1
        number = found.tag_id
        parents[at] = parent
        if number == _TEXT:
            texts[at] = found.text_content or ""
            ends[at] = at = at + 1
            found = found.next
            continue
        try:
            name, note = kinds[number]
        except KeyError:
            name = (found.tag or COMMENT).lower() if found.is_element_node else COMMENT
            note = by_tag.setdefault(name, []).append
            kinds[number] = name, note
        tags[at] = name
        note(at)
        given = found.attributes
        if given:
            if len(given) == 1 and (only := given.get("class")):
                given = classes.setdefault(only, given)
                note_selectable(at)
            else:
                if not all(given.values()):
                    given = {key: value or "" for key, value in given.items()}
                if not _NOTED.isdisjoint(given):
                    if "class" in given or "id" in given:
                        note_selectable(at)
                    if "id" in given:
                        ids.setdefault(given["id"], at)  # type: ignore[arg-type]
                    if not CONSPICUOUS.isdisjoint(given):
                        tree.conspicuous.add(at)
            attributes[at] = given  # type: ignore[assignment]
        child = found.first_child if name != "noscript" else None
        if child is None or len(waiting) >= room:
            if child is not None and strict:
                raise _TooDeepError
            ends[at] = at = at + 1
            found = found.next
            continue
        element = at
        at += 1
        text = child.text_content
        if text is not None:  # usually the only child, which needs no stack entry
            texts[at] = text
            parents[at] = element
            ends[at] = at = at + 1
            child = child.next
            if child is None:
                ends[element] = at
                found = found.next
                continue
        waiting.append((found.next, parent))
        found, parent = child, element

"""Parses HTML to our tree with selectolax (Lexbor), as the HTML Standard describes it with scripting enabled.

The content of `<noscript>` is dropped, because readers of the page do not see it, unless the page is written there
alone: it is for readers who run no scripts, as we do not.
"""

import re
from typing import Final

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from awp_publish.pages.copying import Copying, TooDeepError, TooLargeError
from awp_publish.pages.encodings import to_utf8
from awp_publish.pages.nesting import bound_markup
from awp_publish.pages.nesting_proof import may_exceed
from awp_publish.pages.streaming import STREAMED, StreamedNode, Streams
from awp_publish.pages.tree import COMMENT, SHADOW_MODES, Tree, shadow_mode_of

_NO_EVENTS: Final = int(LexborDocumentOptions.WO_EVENTS)
"""Otherwise each option is compared with all others of its select, to fill a `<selectedcontent>`."""

_FALLBACK: Final = re.compile(rb"<noscript\b[^>]*+>((?:[^<]++|<(?!/?noscript\b))*+)</noscript\b", re.IGNORECASE)
_FALLBACK_TAG: Final = re.compile(rb"(?<=<|/)noscript\b", re.IGNORECASE)
_MIN_FALLBACK: Final = 2_000
_MAX_BESIDE: Final = 400
"""Bytes of a `<noscript>` from which it may be the page, and characters that a page says beside it at most."""

_UNSAID: Final = frozenset((COMMENT, "noscript", "script", "style", "template", "title"))


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
    except TooDeepError:  # by rules that only a parser knows
        return _build(bound_markup(data), len(data), strict=False)
    except TooLargeError:
        return _build(bound_markup(data, max_formatting=1), len(data), strict=False)


def _build(markup: bytes, html_bytes: int, *, strict: bool) -> Tree:
    """Return the tree of markup. If it is too deep it is truncated, or `TooDeepError` is raised if `strict`."""
    parser, is_streamed = LexborHTMLParser(markup, scripting=True, options=_NO_EVENTS), STREAMED in markup
    tree = Tree(html_bytes)
    top, by_tag = parser.root, {"html": [0]}
    attributes = {name: value or "" for name, value in top.attributes.items()} if top is not None else {}
    tree.add("html", attributes, -1)
    if top is not None:
        tree.ids.update({attributes["id"]: 0} if "id" in attributes else {})
        tree.selectable += [0] if "id" in attributes or "class" in attributes else []
        shown = StreamedNode(top, Streams(parser, markup)) if is_streamed else top
        Copying(tree, by_tag, tree.ids, strict=strict).copy(shown, 0)
        tree.ends[0] = len(tree.tags)
    tree.complete(by_tag)
    # The contents of templates, also nested ones, are not in the page: `Tree.find` does not return them.
    templates = by_tag.get("template", [])
    # Where elements are moved, their order is not the parser's, and the templates keep none.
    fragments = parser.template_fragments() if templates and not is_streamed else []
    waiting = list(zip(fragments, templates, strict=False))
    tree.contents.update(dict.fromkeys(templates, (0, 0)))
    _drop_false_roots(tree, templates)
    while waiting:
        fragment, host = waiting.pop()
        inner: dict[str, list[int]] = {}
        start = len(tree.tags)
        Copying(tree, inner, {}, strict=strict).copy(fragment, host)
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
        attributes, host = tree.attributes[template], tree.parents[template]
        if shadow_mode_of(attributes) is None:
            continue
        if host in hosts or (tree.tags[host] not in _HOSTS and "-" not in tree.tags[host]):
            tree.attributes[template] = {name: attributes[name] for name in attributes if name not in SHADOW_MODES}
        hosts.add(host)

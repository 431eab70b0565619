"""Pages: a saved encyclopedia article compiled to SOM, beside selectolax's own parse of it, and how sizes grow.

The article (589 KB, 1,907 links) and what the reference compiler makes of it are published files that are not a part of
this project; where they are not beside the checkout nothing is measured. What is counted is time of the processor, so
that a machine with other work to do disturbs less.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import orjson
from selectolax.lexbor import LexborHTMLParser, LexborNode

from awp_publish.pages import Budget, compile_som, parse
from awp_publish.pages.markdown import write_content, write_markdown
from benchmarks.table import Limit, Row, at_least, at_most

SOM: Final = Path(__file__).resolve().parents[1].parent / "shared" / "fixtures" / "som"
URL: Final = "https://en.wikipedia.org/wiki/Rust_(programming_language)"
LEAST_ROUNDS: Final = 5

PARSE: Final = "selectolax's parse"
WIDE: Final = "<p>One <b>two</b> <a href=/three>three</a></p>"
DEEP: Final = 400


def pages(seconds: float) -> list[Row]:
    """The article at each budget, and pages that are ten times as long."""
    article = SOM / "pages" / "wiki.html"
    if not article.is_file():
        return [Row("an article compiled to SOM", PARSE, None, at_most(9), "the published SOM files are not here")]
    html = article.read_bytes()
    gc.collect()
    gc.freeze()  # objects that other benchmarks have left must not be traversed in the time of these
    try:
        return [*_speed(html, seconds * 0.5), _objects(html), *_sizes(html), *_growth(html, seconds * 0.5)]
    finally:
        gc.unfreeze()


def _speed(html: bytes, seconds: float) -> Iterator[Row]:
    runs: dict[str, Callable[[], object]] = {
        PARSE: lambda: LexborHTMLParser(html),
        "the tree of an article": lambda: parse(html).unlink(),
        **{f"an article compiled to SOM, {budget.name}": _compiling(html, budget) for budget in Budget},
        "an article as Markdown": lambda: write_markdown(html, URL),
        "an article's main content as Markdown": lambda: write_content(html, URL),
        "only a walk over an article's nodes": lambda: _walk(html),
    }
    found = _interleave(runs, seconds)
    for name in [name for name in runs if name != PARSE]:
        limit = at_most(9) if name.endswith(Budget.DEFAULT.name) else None
        yield _compared(name, found, name, PARSE, limit)


def _walk(html: bytes) -> None:
    """Read the tag and the text or the attributes of each node of selectolax, which is the least that a tree takes."""
    node, waiting = LexborHTMLParser(html).root, list[LexborNode | None]()
    while node is not None or waiting:
        if node is None:
            node = waiting.pop()
            continue
        _ = node.tag_id, node.text_content is None and node.attributes
        if (child := node.first_child) is not None:
            waiting.append(node.next)
            node = child
        else:
            node = node.next


def _objects(html: bytes) -> Row:
    """What the garbage collector has to look at for as long as a tree is held, beside the nodes of the tree."""
    gc.collect()
    before = len(gc.get_objects())
    tree = parse(html)
    gc.collect()
    made, nodes = len(gc.get_objects()) - before, tree.size
    details = f"{made:,} : {nodes:,}"
    return Row("objects of the collector, the tree of an article", "its nodes", made / nodes, at_most(0.01), details)


def _sizes(html: bytes) -> Iterator[Row]:
    reference = orjson.loads((SOM / "goldens" / "pages-wiki.som.json").read_bytes())
    usual = compile_som(html, URL)
    whole = compile_som(html, URL, Budget.FULL)
    size, most = len(usual.dump()), int(reference["meta"]["som_bytes"])
    yield Row("bytes of the article, DEFAULT", "the reference", size / most, at_most(1), f"{size:,} : {most:,} bytes")
    kept, known = _characters(usual.document), _characters(reference)
    yield Row("text of the article, DEFAULT", "the reference", kept / known, at_least(3), f"{kept:,} : {known:,} chars")
    size = len(whole.dump())
    yield Row(
        "bytes of the article, FULL", "its HTML", size / len(html), at_most(0.6), f"{size:,} : {len(html):,} bytes"
    )


def _characters(document: Mapping[str, Any]) -> int:
    """Characters of all texts, items of lists and cells of tables."""
    total = 0
    for element in (element for region in document["regions"] for element in region["elements"]):
        attrs = element.get("attrs", {})
        total += len(element.get("text", "")) + sum(len(item["text"]) for item in attrs.get("items", ()))
        total += sum(len(cell) for row in [attrs.get("headers", ()), *attrs.get("rows", ())] for cell in row)
    return total


def _growth(html: bytes, seconds: float) -> Iterator[Row]:
    before, body, after = _parted(html)
    for what, one, ten in (
        ("an article ten times as long", html, before + body * 10 + after),
        ("a wide page ten times as long", (WIDE * 2_000).encode(), (WIDE * 20_000).encode()),
        ("ten deep pages in one", _deep(1), _deep(10)),
    ):
        runs = {f"one {budget.name}": _compiling(one, budget) for budget in Budget}
        runs |= {f"ten {budget.name}": _compiling(ten, budget) for budget in Budget}
        found = _interleave(runs, seconds / 3)
        for budget in Budget:
            yield _compared(f"{what}, {budget.name}", found, f"ten {budget.name}", f"one {budget.name}", at_most(11))


def _compiling(html: bytes, budget: Budget) -> Callable[[], object]:
    return lambda: compile_som(html, URL, budget).dump()


def _deep(times: int) -> bytes:
    return (("<div>" * DEEP + "<p>One <a href=/two>two</a></p>" + "</div>" * DEEP) * 10 * times).encode()


def _parted(html: bytes) -> tuple[bytes, bytes, bytes]:
    start, end = html.index(b"<body"), html.rindex(b"</body>")
    start = html.index(b">", start) + 1
    return html[:start], html[start:end], html[end:]


def _interleave(runs: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, list[float]]:
    """Seconds of the processor for every run, one figure a round: what other processes do is not counted."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    finish = time.monotonic() + seconds
    gc.collect()
    while len(found[next(iter(runs))]) < LEAST_ROUNDS or time.monotonic() < finish:
        for name, run in runs.items():
            started = time.process_time()
            run()
            found[name].append(time.process_time() - started)
    return found


def _compared(what: str, found: Mapping[str, list[float]], mine: str, rival: str, limit: Limit | None) -> Row:
    ratio = median(one / other for one, other in zip(found[mine], found[rival], strict=True))
    details = f"{median(found[mine]) * 1000:.1f} : {median(found[rival]) * 1000:.1f} ms"
    return Row(what, PARSE if rival == PARSE else "the page itself", ratio, limit, details)

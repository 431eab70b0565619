"""Extracting: how well the main content of pages is found, judged on pages whose main content people have marked.

The corpora are not a part of this project; environment variables name the folders of their checkouts, and without one
nothing is measured on it. `AWP_ARTICLES` is the article extraction benchmark of Zyte (181 pages,
github.com/scrapinghub/article-extraction-benchmark) with its own figure: the F1 of sequences of four words, of mean
precision and mean recall. It marks the body of an article, not its title, so Markdown is compared below its title, and
with it. `AWP_PAGES` is one split of WCXB (pages of seven types: `dev` for development, `test` for judging) with its own
figure: the mean F1 of words. Of up to `MAX_ACTED` of these pages of each type Chromium says which controls there are,
and it is counted how many of those that are needed (see `controls.py`) the Markdown keeps.
"""

import gzip
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean
from typing import Final

from markdown_it import MarkdownIt

from awp_publish.pages import Budget, compile_som
from awp_publish.pages.markdown import OMISSION, write_content, write_markdown
from benchmarks.controls import MISSING, chromium, kept_controls, needed_controls
from benchmarks.table import Limit, Row, at_least, at_most

ARTICLES: Final = "AWP_ARTICLES"
PAGES: Final = "AWP_PAGES"
BESIDE: Final = "the content, as people marked it"
URL: Final = "https://paper.example/article"
MAX_ACTED: Final = 40
MIN_CONTROLS: Final = 3
"""Pages of a type whose controls are compared, and controls that such a page has at least."""

CONTROLS_BESIDE: Final = "those needed in Chromium's accessibility tree"
WORD: Final = re.compile(r"\w+")
OPERATED: Final = frozenset(("button", "checkbox", "image", "link", "radio", "select", "text_input", "textarea"))
"""Roles of elements whose text is either a part of another element's, or no text to read."""

_OPERATING: Final = re.compile(
    rf"^(?:{OMISSION}|Form\b|\[hidden: ).*$"
    r"|\[(?:button|choice|form|text area|[a-z-]+ field|file)\b[^\]]*\]"
    r"|(?<!\S)(?:\[[ x]\]|\([ x]\)) `[^`]*`",
    re.MULTILINE,
)
"""What in Markdown is not text of the page: the last line, forms, controls and the names of boxes."""

_READER: Final = MarkdownIt("commonmark").enable(["table", "strikethrough"])
_TEXTS: Final = frozenset(("code_inline", "text"))
_BREAKS: Final = frozenset(("hardbreak", "html_inline", "softbreak"))


@dataclass(frozen=True, slots=True)
class Marked:
    """A page, its type, and the text of its main content."""

    html: bytes
    kind: str
    content: str
    url: str = URL


def extracting(_seconds: float) -> list[Row]:
    """The F1 of the main region and of the main content as Markdown, and pages that have nothing of the content."""
    rows = list[Row]()
    folder = Path(os.environ.get(ARTICLES) or "/nowhere")
    if (folder / "ground-truth.json").is_file():
        pages = list(_articles(folder))
        rows += _judge_articles("the main region", main_region, pages, 0.93)
        rows += _judge_articles("Markdown below the title", text_below_title, pages, 0.94)
        rows += _judge_articles("Markdown with the title", main_markdown, pages, None)
        rows.append(_sizes("articles", pages, at_most(1 / 3)))
    else:
        rows.append(Row("the main region of articles, F1", BESIDE, None, at_least(0.93), f"{ARTICLES} names no corpus"))
    folder = Path(os.environ.get(PAGES) or "/nowhere")
    if (folder / "ground-truth").is_dir():
        by_kind = defaultdict[str, list[Marked]](list)
        for page in _pages(folder):
            by_kind[page.kind].append(page)
        for kind, pages in sorted(by_kind.items()):
            rows += _judge_pages("the main region", kind, main_region, pages)
            rows += _judge_pages("Markdown", kind, main_markdown, pages)
        rows += _judge_controls(by_kind)
    else:
        rows.append(Row("the main region of pages, F1", BESIDE, None, None, f"{PAGES} names no corpus"))
    return rows


def main_region(html: bytes, url: str) -> str:
    """Return the text of the main regions of a page, or of what is outside of all regions if it has none."""
    regions = compile_som(html, url, Budget.FULL).document["regions"]
    role = "main" if any(region["role"] == "main" for region in regions) else "content"
    texts = list[str]()
    for element in (element for region in regions if region["role"] == role for element in region["elements"]):
        attrs = element.get("attrs", {})
        if element["role"] not in OPERATED:
            texts.append(element.get("text", ""))
            texts += [item["text"] for item in attrs.get("items", ())]
            texts += [cell for row in [attrs.get("headers", ()), *attrs.get("rows", ())] for cell in row]
    return "\n".join(texts)


def main_markdown(html: bytes, url: str) -> str:
    """Return the text of the main content as a reader of Markdown sees it, without images and controls."""
    return _text_of(write_content(html, url))


def text_below_title(html: bytes, url: str) -> str:
    """Return the text of the main content as Markdown without the title, which is no part of a marked article body."""
    return _text_of(re.sub(r"^# .*$", "", write_content(html, url), count=1, flags=re.MULTILINE))


def _text_of(markdown: str) -> str:
    texts = list[str]()
    for block in _READER.parse(_OPERATING.sub("", markdown)):
        if block.type == "inline":
            pieces = block.children or ()
            texts.append(
                "".join(piece.content if piece.type in _TEXTS else " " * (piece.type in _BREAKS) for piece in pieces)
            )
        elif block.type in ("code_block", "fence"):
            texts.append(block.content)
    return "\n".join(texts)


def _judge_articles(
    what: str, extract: Callable[[bytes, str], str], pages: list[Marked], least: float | None
) -> Iterator[Row]:
    found = [_match(_sequences(page.content), _sequences(extract(page.html, page.url))) for page in pages]
    precision = mean(same / (same + more) for same, more, _ in found if same + more)
    recall = mean(same / (same + less) for same, _, less in found if same + less)
    f1 = 2 * precision * recall / (precision + recall)
    details = f"precision {precision:.3f}, recall {recall:.3f}, {len(pages)} pages"
    yield Row(f"{what} of articles, F1", BESIDE, f1, None if least is None else at_least(least), details)
    empty = sum(not same for same, _, _ in found)
    yield Row(f"{what} of articles, pages with nothing of the article", BESIDE, empty, at_most(1), details)


def _judge_pages(what: str, kind: str, extract: Callable[[bytes, str], str], pages: list[Marked]) -> Iterator[Row]:
    found = [_match(_words(page.content), _words(extract(page.html, page.url))) for page in pages]
    f1 = mean(2 * same / (2 * same + more + less) for same, more, less in found)
    recall = mean(same / (same + less) for same, _, less in found)
    empty = sum(same < (same + less) / 10 for same, _, less in found)
    details = f"recall {recall:.3f}, {len(pages)} pages"
    yield Row(f"{what}, {kind}, F1", BESIDE, f1, None, details)
    yield Row(f"{what}, {kind}, pages with less than a tenth of the content", BESIDE, empty, None, details)


def _judge_controls(by_kind: Mapping[str, list[Marked]]) -> Iterator[Row]:
    with chromium() as browser:
        for kind, pages in sorted(by_kind.items()):
            what = f"controls that the Markdown keeps, {kind}"
            limit = None if kind == "article" else at_least(0.98)
            if browser is None:
                yield Row(what, CONTROLS_BESIDE, None, limit, MISSING)
                continue
            shares, failed = list[float](), 0
            for page in Random(7).sample(pages, min(len(pages), MAX_ACTED)):
                controls = needed_controls(browser, page.html, page.url, page.content)
                failed += controls is None
                if controls is not None and len(controls) >= MIN_CONTROLS:
                    kept = kept_controls(write_content(page.html, page.url), page.url, controls)
                    shares.append(len(kept) / len(controls))
            details = f"{len(shares)} pages, {failed} that did not load"
            yield Row(what, CONTROLS_BESIDE, mean(shares) if shares else None, limit, details)


def _sizes(what: str, pages: list[Marked], limit: Limit) -> Row:
    content = sum(len(write_content(page.html, page.url).encode()) for page in pages)
    whole = sum(len(write_markdown(page.html, page.url).encode()) for page in pages)
    details = f"{content:,} : {whole:,} bytes"
    return Row(f"bytes of {what}, main content as Markdown", "the whole page", content / whole, limit, details)


def _articles(folder: Path) -> Iterator[Marked]:
    for name, truth in json.loads((folder / "ground-truth.json").read_bytes()).items():
        html = gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes())
        yield Marked(html, "article", truth.get("articleBody", ""), truth["url"])


def _pages(folder: Path) -> Iterator[Marked]:
    for path in sorted((folder / "ground-truth").glob("*.json")):
        page = json.loads(path.read_bytes())
        kind = page["_internal"]["page_type"]["primary"]
        if content := page["ground_truth"].get("main_content"):
            html = gzip.decompress((folder / "html" / f"{path.stem}.html.gz").read_bytes())
            url = page.get("url") or URL
            yield Marked(html, "collection" if kind == "category" else kind, content, url)


def _match(expected: Counter[str], actual: Counter[str]) -> tuple[int, int, int]:
    """Return how many words or sequences both have, only the text has, and only the content."""
    same = (expected & actual).total()
    return same, actual.total() - same, expected.total() - same


def _words(text: str) -> Counter[str]:
    return Counter(WORD.findall(text.lower()))


def _sequences(text: str) -> Counter[str]:
    """Return the sequences of four words."""
    words = WORD.findall(text)
    return Counter(" ".join(words[at : at + 4]) for at in range(max(1, len(words) - 3)) if words)

"""Extracting: how well the main content of articles is found, judged on pages whose article people have marked.

The corpus is the article extraction benchmark of Zyte (181 pages, github.com/scrapinghub/article-extraction-benchmark),
which is not a part of this project. `AWP_ARTICLES` names the folder of a checkout; without it nothing is measured. The
figure is its own: the F1 of sequences of four words, of mean precision and mean recall.
"""

import gzip
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Final

from awp_publish.pages import Budget, compile_som
from benchmarks.table import Row, at_least, at_most

FOLDER: Final = "AWP_ARTICLES"
BESIDE: Final = "the article, as people marked it"
URL: Final = "https://paper.example/article"
WORD: Final = re.compile(r"\w+")
OPERATED: Final = frozenset(("button", "checkbox", "image", "link", "radio", "select", "text_input", "textarea"))
"""Roles of elements whose text is either a part of another element's, or no text to read."""


def extracting(_seconds: float) -> list[Row]:
    """The F1 of the main region, and how many pages have nothing of the article in it."""
    named = os.environ.get(FOLDER, "")
    if not named or not (Path(named) / "ground-truth.json").is_file():
        return [Row("the main region of articles, F1", BESIDE, None, at_least(0.93), f"{FOLDER} names no corpus")]
    pages = list(_read(Path(named)))
    return [*_judge("the main region", main_region, pages, 0.93)]


def main_region(html: bytes) -> str:
    """Return the text of the main regions of a page, or of what is outside of all regions if it has none."""
    regions = compile_som(html, URL, Budget.FULL).document["regions"]
    role = "main" if any(region["role"] == "main" for region in regions) else "content"
    texts = list[str]()
    for element in (one for region in regions if region["role"] == role for one in region["elements"]):
        attrs = element.get("attrs", {})
        if element["role"] not in OPERATED:
            texts.append(element.get("text", ""))
            texts += [item["text"] for item in attrs.get("items", ())]
            texts += [cell for row in [attrs.get("headers", ()), *attrs.get("rows", ())] for cell in row]
    return "\n".join(texts)


def _judge(what: str, extract: Callable[[bytes], str], pages: list[tuple[bytes, str]], least: float) -> Iterator[Row]:
    found = [_match(article, extract(html)) for html, article in pages]
    precision = mean(same / (same + more) for same, more, _ in found if same + more)
    recall = mean(same / (same + less) for same, _, less in found if same + less)
    f1 = 2 * precision * recall / (precision + recall)
    details = f"precision {precision:.3f}, recall {recall:.3f}, {len(pages)} pages"
    yield Row(f"{what} of articles, F1", BESIDE, f1, at_least(least), details)
    empty = sum(not same for same, _, _ in found)
    yield Row(f"{what} of articles, pages with nothing of the article", BESIDE, empty, at_most(1), details)


def _read(folder: Path) -> Iterator[tuple[bytes, str]]:
    for name, truth in json.loads((folder / "ground-truth.json").read_bytes()).items():
        yield gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes()), truth.get("articleBody", "")


def _match(article: str, text: str) -> tuple[int, int, int]:
    """Return the numbers of sequences of four words that both have, that only the text has, and only the article."""
    expected, actual = _sequences(article), _sequences(text)
    same = (expected & actual).total()
    return same, actual.total() - same, expected.total() - same


def _sequences(text: str) -> Counter[tuple[str, ...]]:
    words = WORD.findall(text)
    return Counter(tuple(words[at : at + 4]) for at in range(max(1, len(words) - 3)) if words)

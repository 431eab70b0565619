"""What becomes of pages as Markdown, as their main content and as SOM, whole: see `tests/function_transcripts.py`.

A page is given in parts, which are put together.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pytest

from awp_publish.pages import Budget, compile_som
from awp_publish.pages.markdown import write_content, write_markdown
from awp_publish.pages.nesting import bound_markup
from tests.function_transcripts import compare
from tests.pages.tricks import IS_SEEN, TEXT

URL = "https://shop.example/tea/green?page=2"
TRANSCRIPTS = Path(__file__).parent / "transcripts"


def markdown(*parts: str) -> str:
    return write_markdown("".join(parts), URL)


def content(*parts: str) -> Any:
    return _once(write_content("".join(parts), URL, "Ask for all.").split("\n\n"))


def content_at(url: str, *parts: str) -> Any:
    return _once(write_content("".join(parts), url).split("\n\n"))


SENTENCES: Final = "The boat left at six, and nobody on board had slept, because of the storm. "
PIECES: Final[Mapping[str, str]] = {
    "text": f"<p>@: {SENTENCES * 2}</p>",
    "line": "<p>@ says so.</p>",
    "block": f"<div class=block><p>@: {SENTENCES}</p></div>",
    "link": "<a href=/link/@>Link @</a> ",
    "item": "<li><a href=/item/@>Item @</a></li>",
    "card": "<div class=card><img src=/@.png alt=''><h3><a href=/card/@>Card @</a></h3><p>A few words.</p></div>",
    "priced": "<li class=item><h3><a href=/item/@>Item @</a></h3><span>$19.99</span></li>",
    "row": "<tr><td><a href=/row/@>Row @</a><td>A few words, and more.<td>12</tr>",
    "post": f"<div class=post><a href=/user/@>Ann</a> <div class=body>@: {SENTENCES}</div></div>",
    "field": "<label>Field @ <input name=@></label>",
    "area": "<label>Area @ <textarea name=@></textarea></label>",
    "time": "<time datetime=2026-01-01>on day @</time>",
    "code": "<pre>run @ --now, or later; as you like</pre>",
    "offer": "<h1>Kettle @</h1><p>$49.00</p><select name=size><option>Small<option>Big</select><button>Buy @</button>",
}
"""Parts of a page of which {text 3}, for instance, has three; each is numbered in place of "@"."""


def chosen(url: str, *parts: str) -> Any:
    """How many of the pieces of a page its main content has."""
    total = Counter[str]()

    def written(macro: re.Match[str]) -> str:
        name, count = macro[1], int(macro[2] or 1)
        places = range(total[name], total[name] + count)
        total[name] += count
        return "".join(PIECES[name].replace("@", f"{name}{place}z") for place in places)

    html = "".join(re.sub(r"\{(\w+)(?: (\d+))?\}", written, part) for part in parts)
    text = write_content(html, url)
    kept = {name: [place for place in range(total[name]) if f"{name}{place}z" in text] for name in total}
    return {name: "all" if len(kept[name]) == total[name] else _ranges(kept[name]) for name in total}


def _ranges(places: list[int]) -> str:
    runs = [[place for _, place in run] for _, run in groupby(enumerate(places), lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) or "none"


def som(*parts: str) -> list[Any]:
    return [_plain(region) for region in compile_som("".join(parts), URL, Budget.FULL).document["regions"]]


def document(*parts: str) -> Any:
    return compile_som("".join(parts), URL, Budget.FULL).document


def tight(*parts: str) -> Any:
    """The regions of a document for which there is little room, and the number of its bytes."""
    compiled = compile_som("".join(parts), URL, Budget.TIGHT)
    return [len(compiled.dump()) // 1_000, *(_plain(region) for region in compiled.document["regions"])]


def numbered(count: int, item: str, *around: str) -> Any:
    """What there is room for of a page with items, in which `{0}` is the number of each: how many, and some of them."""
    document = tight(around[0], *(item.format(number) for number in range(count)), *around[1:])
    return [
        [region["role"], dict(Counter(one["role"] for one in elements)), *elements[:2], *elements[-4:]]
        for region in document[1:]
        if (elements := [one for one in region["elements"] if isinstance(one, dict)])
    ]


def bounded(*parts: str) -> Any:
    """How many tags of each name are left within the limits of nesting, and the end of what is left."""
    left = bound_markup("".join(parts).encode()).decode()
    return [dict(Counter(re.findall(r"</?\w+", left))), left[-40:]]


def _plain(value: Any) -> Any:
    """Return regions and elements without their ids, and without the actions that their roles have."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items() if name not in ("id", "actions")}
    return _once(list(map(_plain, value))) if isinstance(value, list) else value


def _once(values: list[Any]) -> list[Any]:
    """Return values with how often each is there in a row, if that is more than twice."""
    runs = [(value, len(list(alike))) for value, alike in groupby(values)]
    return [one for value, count in runs for one in ([value] * count if count < 3 else [f"{count} times", value])]


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "markdown": markdown,
    "content": content,
    "content_at": content_at,
    "chosen": chosen,
    "som": som,
    "document": document,
    "tight": tight,
    "numbered": numbered,
    "bounded": bounded,
}


@pytest.mark.parametrize("name", sorted(path.name for path in TRANSCRIPTS.glob("*.txt")))
def test_pages_are_written_as_in_the_transcripts(name: str, request: pytest.FixtureRequest) -> None:
    compare(TRANSCRIPTS / name, FUNCTIONS, request)


def test_text_that_chromium_hides_is_in_neither_format_and_what_it_shows_in_both() -> None:
    wrong = [
        page
        for page, is_seen in IS_SEEN.items()
        for written in (write_markdown(page, URL), compile_som(page, URL).dump().decode())
        if (TEXT in written) != is_seen
    ]
    assert not wrong, "\n".join(wrong)

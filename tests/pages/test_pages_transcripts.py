"""What becomes of pages as Markdown, as their main content and as SOM, whole: see `tests/function_transcripts.py`.

A page is given in parts, which are put together.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import count, groupby, pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from awp_publish.pages import Budget, compile_som, parse
from awp_publish.pages.markdown import write_content, write_markdown
from awp_publish.pages.nesting import bound_markup
from awp_publish.pages.nesting_proof import may_exceed
from tests.function_transcripts import compare
from tests.pages.tricks import IS_SEEN, TEXT

URL = "https://shop.example/tea/green?page=2"
TRANSCRIPTS = Path(__file__).parent / "transcripts"


def markdown(*parts: str) -> str:
    return write_markdown("".join(parts), URL)


def both(*parts: str) -> list[str]:
    """A page as Markdown and as a document."""
    return [markdown(*parts), brief(*parts)]


def raw(charset: str, *parts: str) -> str:
    """The Markdown of a page whose bytes are the characters of these parts."""
    return write_markdown("".join(parts).encode("latin-1"), URL, charset or None)


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


SELECTED: Final = (
    "<div n=1 class=a id=x><p n=2>w</p><p n=3 class='a b' data-k=v>w<b n=4 class=b data-k='v w'>w</b><b n=5>w</b></p>"
    "<!-- c --><ul n=6 class='c a'><li n=7 class=a>w<li n=8 data-k=v-u><a n=9 href=/j class=b>w</a><li n=10 class='a "
    "b' data-k=V><b n=11 id=y>w</b><li n=12></ul></div>w<div n=13 class=b data-k=''><div n=14 class=a><p n=15></p><in"
    "put n=16 type=checkbox class=a checked required><input n=17 disabled data-k=v><b n=18 class=A><!-- c --></b></di"
    "v><div n=19 id=x class='b c'><ul n=20><li n=21><ul n=22 class=a><li n=23 class=b>w<li n=24 class=b data-k='v w'>"
    "</ul><li n=25 data-k=w-v></ul></div><p n=26 lang=de>w<a n=27 class=a>w</a><a n=28 href=/j data-k=v>w</a></p><p n"
    "=29 class=b> </p></div><div n=30><button n=31 disabled class=c>w</button><select n=32 required><option n=33 sele"
    "cted data-k=u>w<option n=34></select></div>"
)
"""Numbered elements, of which selectors match some."""

DIGITS: Final = str.maketrans("023456789", "111111111")

WORDS: Final[Mapping[str, str]] = {
    "element": "a abbr acronym address annotation applet area article aside audio b base basefont bdi bdo big blink "
    "blockquote body br button canvas caption center cite code col colgroup data datalist dd del details dfn dialog "
    "dir div dl dt em embed fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header "
    "hgroup hr html i iframe img input ins kbd label legend li link main map mark marquee math menu meta meter mi mn "
    "mo mtext nav nobr noembed noframes noscript object ol optgroup option output p param picture plaintext pre "
    "progress q rb rp rt rtc ruby s samp script search section select slot small source span strike strong style sub "
    "summary sup svg table tbody td template textarea tfoot th thead time title tr track tt u ul var video wbr x-y xmp",
    "role": "alert alertdialog application article banner blockquote button caption cell checkbox code columnheader "
    "combobox complementary contentinfo definition deletion dialog directory document emphasis feed figure form "
    "generic grid gridcell group heading image img insertion link list listbox listitem log main mark marquee math "
    "menu menubar menuitem menuitemcheckbox menuitemradio meter navigation none note option paragraph presentation "
    "progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox separator slider "
    "spinbutton status strong subscript suggestion superscript switch tab table tablist tabpanel term textbox time "
    "timer toolbar tooltip tree treegrid treeitem nonesuch",
    "type": "button checkbox color date datetime-local email file hidden image month number password radio range reset "
    "search submit tel text time url week nonesuch",
    "attribute": "accept accept-charset accesskey action allow allowfullscreen alt aria-activedescendant aria-atomic "
    "aria-autocomplete aria-busy aria-checked aria-controls aria-current aria-describedby aria-description "
    "aria-details aria-disabled aria-dropeffect aria-errormessage aria-expanded aria-flowto aria-grabbed aria-haspopup "
    "aria-hidden aria-invalid aria-keyshortcuts aria-label aria-labeledby aria-labelledby aria-level aria-live "
    "aria-modal aria-multiline aria-multiselectable aria-orientation aria-owns aria-placeholder aria-posinset "
    "aria-pressed aria-readonly aria-relevant aria-required aria-roledescription aria-selected aria-setsize aria-sort "
    "aria-valuemax aria-valuemin aria-valuenow aria-valuetext autocapitalize autocomplete autofocus autoplay capture "
    "checked class cols colspan command commandfor content contenteditable controls data-qa data-test data-testid "
    "dir dirname disabled download draggable enctype enterkeyhint for form formaction formenctype formmethod "
    "formnovalidate formtarget headers height hidden high href hreflang id inert inputmode ismap itemprop kind label "
    "lang list loading longdesc loop low max maxlength media method min minlength multiple muted name nonce novalidate "
    "open optimum part pattern placeholder popover popovertarget popovertargetaction poster readonly referrerpolicy "
    "rel required reversed role rows rowspan sandbox scope selected shape size slot spellcheck src srcdoc srclang "
    "srcset start step style summary tabindex target title translate type usemap value width wrap",
    "state": "active any-link autofill checked default defined disabled empty enabled first-child first-of-type focus "
    "focus-visible focus-within fullscreen hover in-range indeterminate invalid last-child last-of-type link modal "
    "only-child only-of-type open optional out-of-range paused placeholder-shown popover-open read-only read-write "
    "required root scope target target-within user-invalid user-valid valid visited host nonesuch -webkit-autofill "
    "-webkit-x view-x after backdrop before cue first-letter first-line marker placeholder selection nth-child(1) "
    "nth-last-child(1) nth-of-type(1) nth-last-of-type(2) lang(de) lang(en-GB,de) lang('*-at') dir(ltr) is(p) where(p) "
    "matches(p) -webkit-any(p) -moz-any(p) not(p) has(b) has(>b) is() where() nth-child(-n+2) nth-child(2n) "
    "nth-child(n+9) nth-child(odd) nth-child(even) nth-child(+3n-2) host-context(p) slotted(p) part(p)",
    "media": "print all screen speech (min-width:375px) (min-width:376px) (max-width:1279px) (max-width:1280px) "
    "(min-height:667px) (max-height:719px) (width:375px) (width=1280px) (600px<width) (600px>width) "
    "(375px<=width<=1280px) (width<1280px) (width>375px) (width>=1280px) (width<=375px) (1280px>=width) "
    "(min-device-width:376px) (height<720px) (orientation:landscape) (orientation:portrait) (hover) (hover:hover) "
    "(any-hover:none) (pointer:fine) (any-pointer:fine) (prefers-color-scheme:light) (prefers-color-scheme:dark) "
    "(scripting) (scripting:none) (update:slow) (update) (display-mode:browser) (display-mode:standalone) "
    "(scan:progressive) (color-gamut:srgb) (color-gamut:p3) (color) (color:8) (min-color:9) (monochrome) "
    "(monochrome:0) (grid) (grid:0) (color-index) (min-resolution:2dppx) (resolution:1dppx) (max-resolution:1x) "
    "(-webkit-min-device-pixel-ratio:1) (-webkit-min-device-pixel-ratio:2) (-webkit-transform-3d) "
    "(prefers-contrast) (prefers-contrast:more) (forced-colors) (forced-colors:active) (prefers-reduced-motion) "
    "(prefers-reduced-motion:no-preference) (prefers-reduced-data:reduce) (inverted-colors) "
    "(prefers-reduced-transparency:reduce) (overflow-block:scroll) (aspect-ratio:16/9) (min-aspect-ratio:1/1) "
    "(max-aspect-ratio:1/1) (min-aspect-ratio:1) (aspect-ratio) (min-width:23.5em) (min-width:calc(100px+1em)) "
    "(nonesuch) (nonesuch:1) (min-nonesuch:1px) (min-width:nonesuch) (min-width) ((hover)) (not(hover)) not(hover)",
    "class": "nav navbar sidenav topmenu menus mainnav navigation main content primary-content mainContent articleBody "
    "sidebar side-bar rail trail aside footer copyright header masthead search card-footer nav-item main-header "
    "list-search domain",
    "drawn": "animate animatemotion animatetransform circle clippath defs desc ellipse feblend fecolormatrix "
    "fecomponenttransfer fecomposite feflood fefunca fefuncb fefuncg fefuncr fegaussianblur femerge femergenode "
    "femorphology feoffset filter foreignobject g image line lineargradient marker mask metadata path pattern polygon "
    "polyline radialgradient rect set stop style switch symbol text textpath title tspan use view",
    "head": "alternate amphtml apple-touch-icon author canonical charset description dns-prefetch generator icon image "
    "keywords license manifest next preconnect preload robots search stylesheet theme-color title type url viewport",
    "math": "maction menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms "
    "mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none semantics annotation",
    "sign": "^ ¯ ˉ → ⃗ ~ \u02dc . ˙ ¨ ˇ \u02c6 _ ⏞ ∑ ∫ lim = + ( ) | , x ∞",
    "align": "left center right justify start end LEFT middle",
    "number": "0 1 2 3 7 9 -1 +2 2.5 2px 02 00002 000003 100000 2147483648 1e1 .5 -.5 ٣ \uff12 x",
    "unit": "px em rem ex ch vw vh % pt pc cm mm in q lh vmin dvh svw cqw fr deg nonesuch",
}


def chosen(url: str, *parts: str) -> Any:
    """How many of the pieces of a page its main content has."""
    html, total = _pieced(parts)
    return _kept(write_content(html, url), total)


def runs(function: str, *parts: str) -> Any:
    """What becomes of a page with long texts: how long they are in it."""
    answer = json.dumps(FUNCTIONS[function](*parts), ensure_ascii=False)
    return json.loads(re.sub(r"(.{1,80}?)\1{9,}", lambda run: f"{run[1]}*{len(run[0]) // len(run[1])}", answer))


def placed(url: str, *parts: str) -> Any:
    """How many of the pieces of a page are in which regions of its document."""
    html, total = _pieced(parts)
    texts: dict[str, str] = {}
    for region in compile_som(html, url, Budget.FULL).document["regions"]:
        texts[region["role"]] = texts.get(region["role"], "") + json.dumps(region)
    kept = {role: _kept(text, total) for role, text in texts.items()}
    found = {role: {name: how for name, how in pieces.items() if how != "none"} for role, pieces in kept.items()}
    return {role: pieces for role, pieces in found.items() if pieces}


def _pieced(parts: Iterable[str]) -> tuple[str, Mapping[str, int]]:
    total = Counter[str]()

    def written(macro: re.Match[str]) -> str:
        name, count = macro[1], int(macro[2] or 1)
        places = range(total[name], total[name] + count)
        total[name] += count
        return "".join(PIECES[name].replace("@", f"{name}{place}z") for place in places)

    return "".join(re.sub(r"\{(\w+)(?: (\d+))?\}", written, part) for part in parts), total


def _kept(text: str, total: Mapping[str, int]) -> Mapping[str, str]:
    kept = {name: [place for place in range(total[name]) if f"{name}{place}z" in text] for name in total}
    return {name: "all" if len(kept[name]) == total[name] else _ranges(kept[name]) for name in total}


def _ranges(places: list[int]) -> str:
    runs = [[place for _, place in run] for _, run in groupby(enumerate(places), lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) or "none"


def som(*parts: str) -> list[Any]:
    return [_plain(region) for region in compile_som("".join(parts), URL, Budget.FULL).document["regions"]]


def document(*parts: str) -> Any:
    return compile_som("".join(parts), URL, Budget.FULL).document


def brief(*parts: str) -> str:
    """The regions of a document, shorter."""
    return "; ".join(f"{each['role']}: {', '.join(map(_brief, each['elements']))}" for each in som(*parts))


def brief_tight(*parts: str) -> str:
    document = compile_som("".join(parts), URL, Budget.TIGHT).document
    return "; ".join(f"{each['role']}: {', '.join(map(_brief, each['elements']))}" for each in document["regions"])


def _brief(element: Any) -> str:
    if isinstance(element, str):
        return element
    facts = {name: value for name, value in element.items() if name not in ("id", "actions", "role", "attrs")}
    return " ".join(
        [element["role"], *(f"{name}={value}" for name, value in (facts | element.get("attrs", {})).items())]
    )


def tight(*parts: str) -> Any:
    """The regions of a document for which there is little room, and the number of its bytes."""
    compiled = compile_som("".join(parts), URL, Budget.TIGHT)
    return [len(compiled.dump()) // 1_000, *(_plain(region) for region in compiled.document["regions"])]


def numbered(count: int, item: str, *around: str) -> Any:
    """What there is room for of a page with items, in which `{0}` is the number of each: how many, and some of them."""
    document = tight(around[0], *(item.format(number) for number in range(count)), *around[1:])
    return [
        [region["role"], dict(Counter(element["role"] for element in elements)), *elements[:2], *elements[-4:]]
        for region in document[1:]
        if (elements := [element for element in region["elements"] if isinstance(element, dict)])
    ]


def bounded(*parts: str) -> Any:
    """How many tags of each name are left within the limits of nesting, and the end of what is left."""
    left = bound_markup("".join(parts).encode()).decode()
    return [dict(Counter(re.findall(r"</?\w+", left))), left[-40:]]


def selects(*selectors: str) -> Mapping[str, str]:
    """The numbers of the elements that each selector matches."""
    tree = parse(SELECTED)
    found = {selector: map(tree.node_at, tree.select(selector)) for selector in selectors}
    numbers = {selector: [node.attributes.get("n", "") for node in nodes if node] for selector, nodes in found.items()}
    return {selector: " ".join(filter(None, each)) for selector, each in numbers.items()}


def each(kind: str, function: str, *parts: str) -> Mapping[str, Any]:
    """What becomes of a page with each word of a kind in place of "~", and in capitals and spaces of "^"."""
    words: dict[str, list[str]] = {}
    for word in WORDS[kind].split():
        written = (part.replace("~", word).replace("^", f" {word.upper()} ") for part in parts)
        answer = json.dumps(FUNCTIONS[function](*written), ensure_ascii=False)
        words.setdefault(re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", "~", answer), []).append(word)
    return {" ".join(alike): json.loads(answer) for answer, alike in words.items()}


def turns(function: str, start: int, end: int, *parts: str) -> Mapping[str, Any]:
    """What becomes of pages with from `start` to `end` of something, `#` being the number: where it is otherwise.

    `[TEXT]#` is a text so many times. It does not matter which pieces are kept if some are, how often something is
    repeated in what becomes of a page, nor which figures are in it.
    """

    def at(number: int) -> Any:
        page = (re.sub(r"\[([^]]*)\]#", lambda run: run[1] * number, part).replace("#", str(number)) for part in parts)
        answer = json.dumps(FUNCTIONS[function](*page), ensure_ascii=False)
        return re.sub(r"(.{1,80}?)\1{2,}", r"\1*", re.sub(r'"\d[\d, -]*"', '"some"', answer).translate(DIGITS))

    looked_at = sorted({*range(start, end, max((end - start) // 7, 1)), end})
    answers = {number: at(number) for number in looked_at}
    waiting = list(pairwise(looked_at))
    while waiting:
        first, last = waiting.pop()
        if last - first > 1 and answers[first] != answers[last]:
            middle = (first + last) // 2
            answers[middle] = at(middle)
            waiting += [(first, middle), (middle, last)]
    numbers = sorted(answers)
    changes = [start, *(after for before, after in pairwise(numbers) if answers[before] != answers[after])]
    return {str(number): json.loads(answers[number]) for number in changes}


def structured(*parts: str) -> Any:
    """The structured data of a document."""
    return document(*parts).get("structured_data")


def room(budget: str, *parts: str) -> Any:
    """How many elements of each role a document has room for, with their characters; each "#" is another number."""
    numbers = count()
    page = re.sub("#", lambda sign: str(next(numbers)), "".join(parts))
    found = compile_som(page, URL, Budget[budget]).document
    sizes: dict[str, list[int]] = {}
    for element in (element for region in found["regions"] for element in region["elements"]):
        size = sizes.setdefault(element["role"], [0, 0])
        size[0] += 1
        size[1] += len(json.dumps([element.get("text"), element.get("label"), element.get("attrs")]))
    return [len(json.dumps(found.get("structured_data"))), sizes]


def exceeds(*parts: str) -> bool:
    """Whether the markup of a page may be beyond the limits of nesting, as far as a quick look tells."""
    return may_exceed("".join(parts).encode())


def _plain(value: Any) -> Any:
    """Return regions and elements without their ids, and without the actions that their roles have."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items() if name not in ("id", "actions")}
    return _once(list(map(_plain, value))) if isinstance(value, list) else value


def _once(values: list[Any]) -> list[Any]:
    """Return values with how often each is there in a row, if that is more than twice."""
    runs = [(value, len(list(alike))) for value, alike in groupby(values)]
    return [item for value, count in runs for item in ([value] * count if count < 3 else [f"{count} times", value])]


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
    "placed": placed,
    "runs": runs,
    "brief": brief,
    "brief_tight": brief_tight,
    "both": both,
    "raw": raw,
    "structured": structured,
    "room": room,
    "exceeds": exceeds,
    "selects": selects,
    "each": each,
    "turns": turns,
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

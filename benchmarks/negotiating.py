"""A page in the formats that agents read, in process, beside the same page rendered as HTML without awp_publish."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Final

from jinja2 import DictLoader, Environment
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher
from awp_publish.http.exchange import AsgiApp
from benchmarks.measure import Case, Series, ask, interleave, on_each_loop
from benchmarks.shop import empty_site
from benchmarks.table import Row, at_most, compare

PAGE: Final = "/books"
FRESH: Final = "/books/now"
"""Never twice the same page."""

BROWSER: Final = b"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
FORMATS: Final = {"Markdown": b"text/markdown", "SOM": b"application/som+json"}

TEMPLATE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{{ title }}</title><link rel="stylesheet" href="/site.css"></head>
<body>
<header><a href="/">Bookshop</a>
<nav aria-label="Shop"><a href="/books">Books</a> <a href="/about">About</a></nav></header>
<main>
<h1>{{ title }}</h1>
<form action="/search" role="search"><label>Words <input name="q" placeholder="Title or author"></label>
<select name="sort"><option>Title</option><option selected>Year</option></select><button>Search</button></form>
{% for book in books %}
<article class="book"><h2><a href="/books/{{ book.slug }}">{{ book.title }}</a></h2>
<p>By <em>{{ book.author }}</em>, {{ book.year }}. A long sentence about {{ book.title }}, so that there is text.</p>
<ul><li>{{ book.price }} dollars</li><li>{{ "in stock" if book.stock else "sold out" }}</li></ul>
<form method="post" action="/basket"><input type="hidden" name="slug" value="{{ book.slug }}">
<button>Add</button></form>
</article>
{% endfor %}
</main>
<footer><p>Public-domain books since 1815.</p></footer>
</body>
</html>
"""


def negotiating(seconds: float) -> list[Row]:
    """A page that has not changed is rendered, looked up by its content and sent, or answered with a 304.

    What it takes the first time only informs: it is the cost of parsing and rendering, and it is measured by itself,
    for it leaves much behind to be collected.
    """
    found = on_each_loop(lambda: _measure(_unchanged, seconds / 3))
    first = on_each_loop(lambda: _measure(_seen_first, seconds / 6))
    rendered = "the page rendered as HTML without it"
    rows = [compare(f"page as {name}, unchanged", found, name, "nowhere", rendered, at_most(1.3)) for name in FORMATS]
    rows += [
        compare(f"page as {name}, 304", found, f"{name} 304", "nowhere", rendered, at_most(1.3)) for name in FORMATS
    ]
    rows.append(compare("page as HTML for a browser", found, "HTML", "nowhere", rendered, at_most(1.02)))
    rows += [compare(f"page as {name}, seen first", first, name, "nowhere", rendered, None) for name in FORMATS]
    return rows


async def _measure(make: Callable[[], Awaitable[list[Case]]], seconds: float) -> dict[str, Series]:
    return await interleave(await make(), seconds)


async def _unchanged() -> list[Case]:
    published, accepting = _published(), ((b"accept", BROWSER),)
    cases = [Case("nowhere", _shop(), PAGE, headers=accepting), Case("HTML", published, PAGE, headers=accepting)]
    bodies = [(await ask(case)).body.partition(b"<body")[2] for case in cases]  # heads get links to documents
    assert bodies[0] == bodies[1] != b""
    for name, media_type in FORMATS.items():
        case = await _asking(published, name, PAGE)
        etag = dict((await ask(case)).headers)[b"etag"]
        known = Case(f"{name} 304", published, PAGE, headers=((b"accept", media_type), (b"if-none-match", etag)))
        assert (await ask(known)).status == 304
        cases += [case, known]
    return cases


async def _seen_first() -> list[Case]:
    published = _published()
    return [Case("nowhere", _shop(), FRESH), *[await _asking(published, name, FRESH) for name in FORMATS]]


async def _asking(app: AsgiApp, name: str, path: str) -> Case:
    """A request for a format, asserted to be answered in it."""
    case = Case(name, app, path, headers=((b"accept", FORMATS[name]),))
    assert dict((await ask(case)).headers)[b"content-type"].startswith(FORMATS[name])
    return case


def _published() -> AsgiApp:
    return AgentPublisher(_shop(), empty_site(), check=False)


def _shop() -> AsgiApp:
    environment = Environment(loader=DictLoader({"books": TEMPLATE}), autoescape=True)
    template, numbers = environment.get_template("books"), count()
    books = [
        {
            "slug": f"book-{number}",
            "title": f"The Book of {number}",
            "author": "Jane Austen",
            "year": 1800 + number,
            "price": 7.5,
            "stock": number % 3,
        }
        for number in range(30)
    ]

    async def show(request: Request) -> Response:
        return HTMLResponse(template.render(title="Books", books=books))

    async def show_now(request: Request) -> Response:
        return HTMLResponse(template.render(title=f"Books, {next(numbers)}", books=books))

    return Starlette(routes=[Route(PAGE, show), Route(FRESH, show_now)])

"""Searching: how long a site of 1,000 pages takes to be indexed, a query, and how good the order is beside rank_bm25.

The pages are made of the documentation strings of Python's standard library, which is on every machine: 300 pages for
modules, and the rest for classes. The questions are our own, each with the modules that answer it; what is compared is
the mean reciprocal rank of the first of them, on the site of the 300.
"""

import asyncio
import html
import importlib.util
import inspect
import pkgutil
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from statistics import mean, median
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from awp_publish import AgentPublisher, Search, Site
from awp_publish.http.running import running
from benchmarks.table import Row, at_least, at_most

PAGES: Final = 1_000
MODULES: Final = 300
URL: Final = "https://docs.example"
LEFT_OUT: Final = frozenset(
    {"antigravity", "distutils", "encodings", "idlelib", "lib2to3", "test", "this", "tkinter", "turtledemo"}
)
MOST: Final = 10

QUESTIONS: Final[Sequence[tuple[str, tuple[str, ...]]]] = (
    ("parse command line options and arguments", ("argparse", "optparse", "getopt")),
    ("compress data with gzip", ("gzip", "zlib")),
    ("read a zip archive", ("zipfile", "zipimport")),
    ("send an email over SMTP", ("smtplib",)),
    ("pseudo-random numbers", ("random",)),
    ("cryptographically strong random tokens", ("secrets",)),
    ("priority queue algorithm", ("heapq", "queue")),
    ("binary search in a sorted list", ("bisect",)),
    ("how to serialize Python objects", ("pickle", "marshal", "copyreg", "pickletools", "shelve")),
    ("JSON encoder and decoder", ("json",)),
    ("secure hashes and message digests", ("hashlib", "hmac")),
    ("keyed hashing for message authentication", ("hmac",)),
    ("make temporary files and directories", ("tempfile",)),
    ("decimal floating point arithmetic", ("decimal",)),
    ("rational numbers", ("fractions",)),
    ("compare sequences and make diffs", ("difflib",)),
    ("wrap paragraphs of text to a width", ("textwrap",)),
    ("measure execution time of small code snippets", ("timeit",)),
    ("profile a program", ("profile", "cProfile", "pstats")),
    ("database API 2.0 for SQLite", ("sqlite3",)),
    ("IPv4 and IPv6 address manipulation", ("ipaddress",)),
    ("weak references", ("weakref",)),
    ("launch subprocesses and read their output", ("subprocess",)),
    ("robots.txt parser", ("urllib.robotparser",)),
    ("parse and join URLs", ("urllib.parse",)),
    ("cookies of HTTP clients", ("http.cookiejar", "http.cookies")),
    ("mathematical statistics of numeric data", ("statistics",)),
    ("configuration file parser", ("configparser", "tomllib")),
    ("pathname pattern expansion with shell wildcards", ("glob", "fnmatch")),
    ("calendar printing functions like the Unix cal program", ("calendar",)),
)


def search(seconds: float) -> list[Row]:
    """The rows; a quick run has fewer pages."""
    try:
        from rank_bm25 import BM25Okapi
    except ImportError:
        return [Row("the order of answers", "rank_bm25", None, at_least(1), "rank_bm25 is not installed")]
    return asyncio.run(_measure(PAGES if seconds >= 20 else 400, BM25Okapi))


async def _measure(most: int, rival: Callable[..., Any]) -> list[Row]:
    modules, pages = _read_documentation(most)
    site = Site("Python", "The standard library.", URL, plugins=[Search(sitemaps=["/pages.xml"])])
    app = AgentPublisher(_serve(pages), site=site, check=False)
    state = site.ask("search")
    began = time.perf_counter()
    async with running(app):
        found = await state.ready()
        taken = time.perf_counter() - began
        assert found == len(pages), (found, len(pages))
        times, ours = list[float](), list[float]()
        for _ in range(5):
            ours.clear()
            for question, answers in QUESTIONS:
                start = time.perf_counter()
                results = (await state.search(question)).results
                times.append(time.perf_counter() - start)
                ours.append(_reciprocal([result.id.removeprefix("/") for result in results], answers))
        longest = max(times)
    site = Site("Python", "The standard library.", URL, plugins=[Search(sitemaps=["/pages.xml"])])
    of_modules = {name: pages[name] for name in modules}
    began = time.perf_counter()
    async with running(AgentPublisher(_serve(of_modules), site=site, check=False)):
        await site.ask("search").ready()
        small = time.perf_counter() - began
        ours = [
            _reciprocal(
                [result.id.removeprefix("/") for result in (await site.ask("search").search(question)).results], answers
            )
            for question, answers in QUESTIONS
        ]
    corpus = [_words(f"{name} {text}") for name, text in of_modules.items()]
    model, names = rival(corpus), list(of_modules)
    theirs = []
    for question, answers in QUESTIONS:
        scores = model.get_scores(_words(question))
        order = sorted(range(len(names)), key=lambda at: -scores[at])[:MOST]
        theirs.append(_reciprocal([names[at] for at in order], answers))
    details = f"{mean(ours):.3f} : {mean(theirs):.3f}, {len(of_modules)} pages, {len(QUESTIONS)} questions"
    return [
        Row(f"{found:,} pages indexed", "", taken, at_most(60, "s"), "", "s"),
        Row(f"a documentation site of {len(of_modules)} indexed", "", small, at_most(60, "s"), "", "s"),
        Row("a query", "", median(times) * 1000, at_most(5, "ms"), f"longest {longest * 1000:.1f} ms", "ms"),
        Row("the order of answers", "rank_bm25", mean(ours) / mean(theirs), at_least(1), details),
    ]


def _reciprocal(found: Sequence[str], answers: Sequence[str]) -> float:
    return next((1 / rank for rank, name in enumerate(found, 1) if name in answers), 0.0)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _serve(pages: dict[str, str]) -> Starlette:
    def show(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in pages:
            return Response(status_code=404)
        text = "".join(f"<p>{html.escape(part)}</p>" for part in pages[name].split("\n\n"))
        menu = "".join(f"<li><a href=/{page}>{page}</a></li>" for page in list(pages)[:40])
        return HTMLResponse(f"<title>{name}</title><nav><ul>{menu}</ul></nav><main><h1>{name}</h1>{text}</main>")

    def list_pages(request: Request) -> Response:
        listed = "".join(f"<url><loc>{URL}/{name}</loc></url>" for name in pages)
        return Response(f"<urlset>{listed}</urlset>", media_type="application/xml")

    return Starlette(routes=[Route("/pages.xml", list_pages), Route("/{name}", show)])


def _read_documentation(most: int) -> tuple[list[str], dict[str, str]]:
    """Return the names of the modules, and the documentation of these and of classes, by name."""
    modules, pages = list[str](), dict[str, str]()
    classes = dict[str, str]()
    names = [name for name in sorted(sys.stdlib_module_names) if not name.startswith("_") and name not in LEFT_OUT]
    names += sorted(_submodules(names))
    for name in names:
        if len(modules) >= MODULES:
            break
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                module = importlib.import_module(name)
        except Exception:
            continue
        parts = [inspect.getdoc(module) or ""]
        for member, value in vars(module).items():
            if not member.startswith("_") and getattr(value, "__module__", "") == name and callable(value):
                text = inspect.getdoc(value) or ""
                parts.append(f"{member}\n{text}")
                if inspect.isclass(value):
                    methods = [f"{one}\n{inspect.getdoc(of) or ''}" for one, of in vars(value).items() if callable(of)]
                    classes[f"{name}.{member}"] = "\n\n".join([text, *methods])
        if any(parts):
            pages[name] = "\n\n".join(parts)
            modules.append(name)
    for name, text in classes.items():
        if len(pages) >= most:
            break
        pages.setdefault(name, text)
    return modules, pages


def _submodules(packages: Sequence[str]) -> set[str]:
    """Return the public submodules of the packages among these names, without importing them."""
    found = set[str]()
    for name in packages:
        spec = importlib.util.find_spec(name)
        for module in pkgutil.iter_modules((spec and spec.submodule_search_locations) or []):
            if not module.name.startswith(("_", "test", "windows")):
                found.add(f"{name}.{module.name}")
    return found

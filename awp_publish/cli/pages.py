"""`awp-publish som`, `markdown` and `synthesize`: pages at an address or in a file, as agents read them."""

import sys
from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from awp_publish.cli.console import Console, write, write_json
from awp_publish.cli.fetching import FetchedDocument, fetch_document
from awp_publish.problems import DeclarationError

MAX_PAGE_BYTES: Final = 10_000_000

HTML: Final = "text/html, application/xhtml+xml;q=0.9"

SECONDS: Final = 60.0
"""Seconds that one request may take, and all requests together."""


def show_som(console: Console, options: Namespace) -> int:
    page = read_page(options.target, options.url)
    from awp_publish.pages import Budget, compile_som

    som = compile_som(page.body, page.url, Budget[options.budget.upper()], page.charset or None).document
    pretty = console.as_json or sys.stdout.isatty()
    write_json(som, is_indented=pretty)
    return 0


def show_markdown(console: Console, options: Namespace) -> int:
    page = read_page(options.target, options.url)
    from awp_publish.pages.markdown import write_markdown

    text = write_markdown(page.body, page.url, page.charset or None)
    console.json({"url": page.url, "markdown": text, "html_bytes": len(page.body), "bytes": len(text.encode())})
    if not console.as_json:
        write(text.removesuffix("\n"), is_block=True)
    return 0


def require_parser() -> None:
    if find_spec("selectolax") is None:
        raise DeclarationError("The package selectolax", "is not installed.", 'pip install "awp-publish[pages]"')


def read_page(target: str, url: str | None) -> FetchedDocument:
    """Read a page. An address that a person names may be on this machine."""
    require_parser()
    if target == "-":
        return FetchedDocument(sys.stdin.buffer.read(), url or "https://page.invalid/")
    if target.startswith(("http://", "https://")):
        fetched = fetch_document(target, max_bytes=MAX_PAGE_BYTES, allow_private=True, accept=HTML)
        if "html" not in fetched.media_type:
            wrong = f"is {fetched.media_type or 'of unknown type'}, not HTML."
            raise DeclarationError(target, wrong, "Name the address of a page.")
        return fetched
    path = Path(target)
    return FetchedDocument(path.read_bytes(), url or path.resolve().as_uri())

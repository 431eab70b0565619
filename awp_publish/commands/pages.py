"""`awp-publish som` and `markdown`: any page, at an address or in a file, as agents read it."""

import sys
from pathlib import Path
from typing import Final

import orjson

from awp_publish.checks.fetching import FetchedDocument, fetch_document
from awp_publish.commands.console import Console
from awp_publish.problems import DeclarationError

MAX_PAGE_BYTES: Final = 10_000_000
HTML: Final = "text/html, application/xhtml+xml;q=0.9"


def show_som(console: Console, target: str, url: str | None, budget: str) -> int:
    """Print a page as SOM."""
    page = _read(target, url)
    try:
        from awp_publish.pages import Budget, compile_som
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    som = compile_som(page.body, page.url, Budget[budget.upper()], page.charset or None).document
    pretty = console.as_json or sys.stdout.isatty()
    print(orjson.dumps(som, option=orjson.OPT_INDENT_2 if pretty else 0).decode())
    return 0


def show_markdown(console: Console, target: str, url: str | None) -> int:
    """Print a page as Markdown."""
    page = _read(target, url)
    try:
        from awp_publish.pages.markdown import write_markdown
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    text = write_markdown(page.body, page.url, page.charset or None)
    console.json({"url": page.url, "markdown": text, "html_bytes": len(page.body), "bytes": len(text.encode())})
    if not console.as_json:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    return 0


def _read(target: str, url: str | None) -> FetchedDocument:
    """The page. Whoever names an address may mean one of this machine."""
    if target == "-":
        return FetchedDocument(sys.stdin.buffer.read(), url or "https://page.invalid/")
    if target.startswith(("http://", "https://")):
        fetched = fetch_document(target, max_bytes=MAX_PAGE_BYTES, allow_private=True, accept=HTML)
        if "html" not in fetched.media_type:
            told = f"is {fetched.media_type or 'of no kind'}, and no HTML."
            raise DeclarationError(target, told, "Name the address of a page.")
        return fetched
    path = Path(target)
    return FetchedDocument(path.read_bytes(), url or path.resolve().as_uri())


def _missing(error: ModuleNotFoundError) -> DeclarationError:
    return DeclarationError(f"The package {error.name}", "is not installed.", 'pip install "awp-publish[pages]"')

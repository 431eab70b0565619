"""README's first program with two HTML pages, served: `python -m tools.checkers.first_program --port 8000`."""

import re
import sys
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

README = Path(__file__).parents[2] / "README.md"

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="description" content="{text} This is a small bookshop of books in the public domain."></head>
<body><header><nav aria-label="Main"><a href="/">Home</a> <a href="/about">About</a></nav></header>
<main><h1>{title}</h1><p>{text}</p><h2>Emma</h2><p>By Jane Austen, of 1815, a novel about youthful hubris.</p>
<h2>Moby-Dick</h2><p>By Herman Melville, of 1851, about the white whale.</p></main>
<footer><p>Bookshop</p></footer></body></html>"""


def make_app(address: str) -> FastAPI:
    """The first block of README, at another address, and two pages that know nothing of agents."""
    block = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {"__name__": "main"}
    exec(block[1].replace("http://127.0.0.1:8000", address), names)
    app: FastAPI = names["app"]

    @app.get("/", response_class=HTMLResponse)
    def home() -> str:
        """The bookshop's front page."""
        return PAGE.format(title="Bookshop", text="Find books that you will like.")

    @app.get("/about", response_class=HTMLResponse)
    def about() -> str:
        """About the bookshop."""
        return PAGE.format(title="About the bookshop", text="Who we are and why we sell books.")

    return app


if __name__ == "__main__":
    port = int(sys.argv[-1])
    uvicorn.run(make_app(f"http://127.0.0.1:{port}"), port=port)

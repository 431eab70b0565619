"""actions.json: checking a map, running a workflow and reading a projection, each beside what cannot be done without.

The map has 150 KB of tools like those of a bookshop's search, other ones each time, so that no expression, selector or
schema was seen before. The workflow and the projection run in process upon the demo's search page. What is counted is
time of the processor, in rounds that take turns.
"""

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import jsonschema_rs
import orjson

from awp_publish.checks import check_document
from awp_publish.checks.places import members
from awp_publish.http.running import running
from awp_publish.maps.expressions import evaluate
from awp_publish.maps.runtime import Runtime
from awp_publish.plugins.actions_json.drift import in_process
from awp_publish.plugins.actions_json.reading import ActionMap
from benchmarks.table import Row, at_most
from demo_site.app import create_app

URL: Final = "http://127.0.0.1:8000"
MAP_BYTES: Final = 150_000
WORDS: Final = (
    "Search books by title, author or subject, and wait until the page has answered. Give words as a reader would; "
    "several of them have to stand in one book together. What is found is on the page afterwards and is best read "
    "with the projection of the list, which has titles and addresses. Nothing is ordered, and nothing is kept. Where "
    "the list is empty the page says so in a sentence of its own, and other words may help; the same words will not."
)
"""As long as descriptions are in published maps, which are written for models."""
BOOKS: Final = "{'books': $append([], records.books.{'title': title, 'address': address})}"
EXTRACT: Final = [
    {
        "id": "books",
        "selector": "li.book",
        "fields": {
            "title": {"selector": ".book-title", "trim": True},
            "address": {"selector": ".book-title a", "attribute": "href"},
        },
    }
]


def actions(seconds: float) -> list[Row]:
    """A map, a workflow, a projection."""
    return [_checking(seconds / 2), *asyncio.run(_running(seconds / 2))]


# --- Checking ---


def _tool(name: str) -> dict[str, Any]:
    centre = "steps.find.output.clickable_center"
    return {
        "name": name,
        "description": WORDS,
        "input_schema": {
            "type": "object",
            "properties": {"q": {"type": "string", "maxLength": 200, "description": f"Words for {name}."}},
            "required": ["q"],
            "additionalProperties": False,
        },
        "target": {"selector": f"form#{name}", "role": "search", "url_contains": "/search", "confidence": "observed"},
        "x_actions": {
            "result_schema": {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]},
        },
        "workflow": {
            "version": 1,
            "expression_language": "jsonata",
            "steps": [
                {
                    "id": "type",
                    "primitive": "text.insert",
                    "args": {"text": "{% input.q %}", "target": {"selector": f"#{name} input"}, "mode": "replace"},
                },
                {
                    "id": "find",
                    "primitive": "locator.element_info",
                    "args": {"locator": {"selector": f"#{name} button"}},
                },
                {
                    "id": "submit",
                    "primitive": "pointer.click",
                    "args": {"x": f"{{% {centre}.x %}}", "y": f"{{% {centre}.y %}}"},
                },
                {"id": "page", "primitive": "page.info"},
            ],
            "output": f"{{% {{'{name}': steps.page.output.url}} %}}",
        },
    }


def _map_of(number: int) -> bytes:
    tools: list[dict[str, Any]] = []
    size = 0
    while size < MAP_BYTES:
        tools.append(_tool(f"search_{number}_{len(tools)}"))
        size += len(json.dumps(tools[-1]))
    return orjson.dumps({"protocol": "actions.json", "version": 1, "tools": tools})


def _parse_and_compile(document: bytes) -> None:
    for tool in orjson.loads(document)["tools"]:
        for schema in (tool["input_schema"], tool["x_actions"]["result_schema"]):
            jsonschema_rs.validator_for(schema)


def _checking(seconds: float) -> Row:
    numbers, ratios, times = count(), list[float](), list[tuple[float, float]]()
    ends = time.monotonic() + seconds
    while len(ratios) < 3 or time.monotonic() < ends:
        document = _map_of(next(numbers))
        gc.collect()
        before = time.process_time()
        _parse_and_compile(document)
        between = time.process_time()
        assert not [item for item in check_document(document) if item.level == "error"]
        after = time.process_time()
        times.append((after - between, between - before))
        ratios.append(times[-1][0] / times[-1][1])
    details = "{:.2f} : {:.2f} ms".format(*(median(column) * 1000 for column in zip(*times, strict=True)))
    beside = "orjson and compiling its schemas"
    return Row("checking a map of 150 KB", beside, median(ratios), at_most(3.0), details)


# --- Running ---


@asynccontextmanager
async def _search_page() -> AsyncIterator[tuple[Any, Callable[[str], Awaitable[None]]]]:
    """Give a page of the demo, and what only renders an address of it."""
    with TemporaryDirectory() as folder:
        app = create_app(url=URL, database=Path(folder) / "books.db")
        site: Any = next(middleware.kwargs["site"] for middleware in app.user_middleware if "site" in middleware.kwargs)
        async with running(app) as state, in_process(app, site.catalog, state) as open_page, open_page() as page:

            async def render(path: str) -> None:
                messages: list[Mapping[str, Any]] = []

                async def receive() -> dict[str, Any]:
                    return {"type": "http.request", "body": b"", "more_body": False}

                async def send(message: Any) -> None:
                    messages.append(message)

                path, _, query = path.partition("?")
                scope = {
                    "type": "http",
                    "asgi": {"version": "3.0"},
                    "http_version": "1.1",
                    "method": "GET",
                    "scheme": "http",
                    "path": path,
                    "raw_path": path.encode(),
                    "query_string": query.encode(),
                    "root_path": "",
                    "headers": [(b"host", b"127.0.0.1:8000"), (b"accept", b"text/html")],
                    "client": ("127.0.0.1", 0),
                    "server": ("127.0.0.1", 8000),
                    "state": dict(state),
                }
                await app(scope, receive, send)
                assert messages[0]["status"] == 200

            yield page, render


async def _running(seconds: float) -> list[Row]:
    steps: list[dict[str, Any]] = [
        {
            "id": "type",
            "primitive": "text.insert",
            "args": {"text": "{% input.q %}", "target": {"selector": "input[name='q']"}, "mode": "replace"},
        },
        {
            "id": "find",
            "primitive": "locator.element_info",
            "args": {"locator": {"selector": "form[role='search'] button"}},
        },
        {
            "id": "submit",
            "primitive": "pointer.click",
            "args": {
                "x": "{% steps.find.output.clickable_center.x %}",
                "y": "{% steps.find.output.clickable_center.y %}",
            },
        },
        {"id": "verify", "primitive": "locator.wait_for", "args": {"locator": {"selector": "main h1"}}},
        {"id": "page", "primitive": "page.info"},
    ]
    workflow = {"version": 1, "expression_language": "jsonata", "steps": steps, "output": "{% steps.page.output %}"}
    tool = {"name": "search", "description": "Searches.", "input_schema": {"type": "object"}, "workflow": workflow}
    snapshot = {
        "version": 1,
        "source": "dom",
        "extract": EXTRACT,
        "projection": {"language": "jsonata", "expression": BOOKS},
        "output_schema": {"type": "object", "required": ["books"]},
    }
    document = {
        "protocol": "actions.json",
        "version": 1,
        "tools": [tool],
        "state_projections": [{"name": "books", "snapshot": snapshot}],
    }
    async with _search_page() as (page, render):
        runtime, numbers = Runtime(ActionMap.read(document), page), count()

        async def work() -> None:
            await page.perform("browser.navigate", {"url": f"{URL}/search?n={next(numbers)}"})
            output = (await runtime.call("search", {"q": f"the {next(numbers)}"})).output
            assert str(members(output)["url"]).startswith(f"{URL}/search?")

        async def render_both() -> None:
            await render(f"/search?n={next(numbers)}")
            await render(f"/search?q=the+{next(numbers)}")

        async def project() -> None:
            await runtime.state_read("books")

        async def evaluate_alone() -> None:
            found = await page.extract(EXTRACT)
            evaluate(BOOKS, {"records": found.records, "url": page.url, "title": "", "projection": {}}, 100_000)

        workflow_row = await _compared(work, render_both, seconds / 2)
        await page.perform("browser.navigate", {"url": f"{URL}/search?q=the"})
        assert members((await runtime.state_read("books"))["state"])["books"]
        projection_row = await _compared(project, evaluate_alone, seconds / 2)
    ratio, details = workflow_row
    rows = [Row("a workflow of five steps", "rendering its two pages", ratio, at_most(3.0), details)]
    ratio, details = projection_row
    beside = "reading its records and evaluating it"
    return [*rows, Row("a projection", beside, ratio, at_most(1.5), details)]


async def _compared(
    one: Callable[[], Awaitable[None]], other: Callable[[], Awaitable[None]], seconds: float
) -> tuple[float, str]:
    """Take turns for some seconds, and return the median of the ratios with both medians."""
    found: list[tuple[float, float]] = []
    ends = time.monotonic() + seconds
    await one()
    await other()
    while len(found) < 5 or time.monotonic() < ends:
        before = time.process_time()
        await one()
        between = time.process_time()
        await other()
        found.append((between - before, time.process_time() - between))
    details = "{:.2f} : {:.2f} ms".format(*(median(column) * 1000 for column in zip(*found, strict=True)))
    return median(mine / its for mine, its in found), details

"""Drift: differences between a site's pages and its actions.json.

Every declared page is rendered, in process or in a browser, and compared with the published map. A page with several
addresses is visited at the first one that another page links to. Only forms of read-only actions are submitted.
"""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.util import find_spec
from itertools import chain
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlsplit

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.driving import drive
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import Fetch, Fetched, Steps
from awp_publish.browsing.session import Session
from awp_publish.checks.engine import ERROR, WARNING, Level
from awp_publish.checks.places import select
from awp_publish.http.exchange import AsgiApp, Scope
from awp_publish.http.page_request import PageExchange, PageRequest
from awp_publish.http.running import running
from awp_publish.http.site_client import SiteClient
from awp_publish.http.tasks import OwnedTasks
from awp_publish.maps import reading, rules
from awp_publish.maps.chromium import open_chromium
from awp_publish.maps.expressions import has_slots
from awp_publish.maps.failures import RuntimeFailure
from awp_publish.maps.live_page import LivePage, PrimitiveError
from awp_publish.maps.runtime import Runtime
from awp_publish.maps.site_page import SitePage
from awp_publish.maps.targets import locate
from awp_publish.model import Action, Catalog, JsonObject, Page
from awp_publish.plugins.actions_json import document as actions_json
from awp_publish.plugins.actions_json.differences import Drift
from awp_publish.plugins.actions_json.drift_markup import MARKUP, compare_attributes, compare_forms
from awp_publish.plugins.actions_json.page_map import map_of, targets_of
from awp_publish.plugins.actions_json.reading import ActionMap
from awp_publish.problems import DeclarationError

MAX_PAGE_BYTES: Final = 4_194_304
"""Bytes of a page that is rendered."""

OpenPage: TypeAlias = Callable[[], AbstractAsyncContextManager[LivePage]]
"""Opens an empty page as a new visitor."""

_SECONDS: Final = 30.0


@asynccontextmanager
async def in_process(app: AsgiApp, catalog: Catalog, state: Mapping[str, object]) -> AsyncIterator[OpenPage]:
    """Yield a function that opens pages of a running application, without a server or a browser."""
    origins = Origins.of(catalog.url)
    async with _client(app, catalog, state) as client:

        @asynccontextmanager
        async def open_page() -> AsyncIterator[LivePage]:
            async def carry_out(steps: Steps) -> JsonObject:
                return await drive(steps, client.fetch, "page", _SECONDS)

            yield SitePage(Session(origins), carry_out)

        yield open_page


@asynccontextmanager
async def in_chromium(app: AsgiApp, catalog: Catalog, state: Mapping[str, object]) -> AsyncIterator[OpenPage]:
    """Yield a function that opens pages of a running application in Chromium. Requests do not leave this process.

    Raises DeclarationError if the extra "browser" is not installed.
    """
    if find_spec("playwright") is None:
        raise DeclarationError("browser", "needs Playwright.", 'Install it: pip install "awp-publish[browser]".')
    async with _client(app, catalog, state) as client:

        async def answer(fetch: Fetch) -> Fetched:
            try:
                return await client.fetch(fetch)
            except AwpError as error:
                return Fetched(502, (("content-type", "text/plain"),), error.message.encode())

        async with open_chromium([Origins.of(catalog.url).origins[0]], answer=answer) as browser:

            @asynccontextmanager
            async def open_page() -> AsyncIterator[LivePage]:
                page = await browser.open()
                try:
                    yield page
                finally:
                    await page.close()

            yield open_page


@asynccontextmanager
async def _client(app: AsgiApp, catalog: Catalog, state: Mapping[str, object]) -> AsyncIterator[SiteClient]:
    """Yield a client that sends requests as a visitor who is not signed in."""
    tasks = OwnedTasks()
    scope: Scope = {"type": "http", "path": "/", "headers": [], "client": ("127.0.0.1", 0), "state": dict(state)}
    try:
        yield SiteClient(app, scope, catalog.prefix, MAX_PAGE_BYTES, tasks, "127.0.0.1")
    finally:
        await tasks.cancel()


async def check_pages(app: AsgiApp, catalog: Callable[[], Catalog], *, browser: bool = False) -> Sequence[Drift]:
    """Render every declared page of an application, and return its differences from the map.

    This starts and stops the application. `catalog` is called while it runs. With `browser`, pages are opened in
    Chromium, which runs their scripts.
    """
    opening = in_chromium if browser else in_process
    async with running(app) as state:
        # Request the map once: without a lifespan, the first request publishes the site.
        request = PageRequest(urlsplit("http://localhost"), actions_json.PATH.encode(), b"", (), state=state)
        await PageExchange(most=0).run(app, request.scope({"type": "http", "path": "/", "headers": []}))
        async with opening(app, catalog(), state) as open_page:
            return await _Inspection(catalog(), open_page).run()


class _Inspection:
    """The state of one inspection: the findings, and what has been observed at least once."""

    def __init__(self, catalog: Catalog, open_page: OpenPage) -> None:
        self.catalog, self.open_page = catalog, open_page
        self.map = ActionMap.read(dict(actions_json.render(catalog)))
        self.differences: list[Drift] = []
        self.true_states: set[str] = set()
        self.counted: dict[tuple[str, str], int] = {}
        self.missed: dict[tuple[str, str], JsonObject] = {}
        self.diagnosed: dict[str, JsonObject] = {}
        self.links: list[str] = []

    def note(
        self,
        kind: str,
        page: str,
        subject: str,
        message: str,
        evidence: JsonObject | None = None,
        level: Level | None = None,
    ) -> None:
        self.add(Drift.of(kind, page, subject, message, evidence, level))

    def add(self, drift: Drift) -> None:
        if drift not in self.differences:
            self.differences.append(drift)

    async def run(self) -> Sequence[Drift]:
        for finding in self.map.findings:
            if finding.level == "error":
                self.note("drift-page", "", finding.pointer, finding.message, {"check": finding.check})
        pages = sorted(self.catalog.pages, key=lambda page: page.is_template)
        for page in pages if self.map.is_valid else ():
            address = self.address_of(page)
            if address is None:
                self.note("drift-unvisited", page.path, "page", "No link to one of its addresses was found.")
                continue
            async with self.open_page() as live:
                is_there = await self.render(page, live, address)
                if is_there:
                    await self.inspect(page, live)
            for action in self.readers(page) if is_there else ():
                await self.try_workflow(page, action, address)
        for page in pages:
            self.conclude(page)
        order = [page.path for page in self.catalog.pages]
        return sorted(self.differences, key=lambda drift: order.index(drift.page) if drift.page in order else -1)

    def address_of(self, page: Page) -> str | None:
        """Return an address of a page: for a template, the first link to one that was found, None if none was."""
        if not page.is_template:
            return self.catalog.absolute(page.path)
        pieces = [piece.partition("}")[2] if at else piece for at, piece in enumerate(page.path.split("{"))]
        pattern = self.catalog.absolute("*".join(pieces))
        slashes = urlsplit(pattern).path.count("/")
        for link in self.links:
            plain = link.partition("#")[0].partition("?")[0]
            if rules.url_fits({"url_matches": pattern}, plain) and urlsplit(plain).path.count("/") == slashes:
                return plain
        return None

    async def render(self, page: Page, live: LivePage, address: str) -> bool:
        try:
            answer = await live.perform("browser.navigate", {"url": address})
        except PrimitiveError as error:
            self.note("drift-page", page.path, "page", error.message, {"code": error.code, **error.evidence})
            return False
        status = answer.get("status")
        if isinstance(status, int) and status >= 400:
            evidence = {"url": live.url, "status": status}
            is_closed = status in (401, 403)
            message = f"It answers with the status {status}{' to a visitor who is not signed in' if is_closed else ''}."
            self.note("drift-page", page.path, "page", message, evidence, WARNING if is_closed else None)
            return False
        if urlsplit(live.url).path != urlsplit(address).path:
            message = "It leads to another address, perhaps because the visitor is not signed in."
            self.note("drift-page", page.path, "page", message, {"url": live.url, "asked": address}, WARNING)
            return False
        return True

    async def inspect(self, page: Page, live: LivePage) -> None:
        runtime = Runtime(self.map, live)
        records = (await live.extract(MARKUP)).records
        self.links += [urljoin(live.url, str(link.get("href"))) for link in reading.objects(records, "links")]
        current = await self.observe(page, runtime)
        # Some are only there after the form is submitted, and some in a state, which is reported if it is never seen.
        of_states = [target for _, target in select(map_of(page), "/states/[]/diagnostics/[]/target")]
        for name, target in targets_of(page).items():
            if name != "done" and not name.endswith("_done") and target not in of_states:
                await self.find(page, live, f"target {name}", target, is_single=False)
        for section, what in (("attachments", "attachment"), ("signals", "signal")):
            for item in self.map.objects(section):
                name, place = str(item.get("id", item.get("name"))), item.get("target")
                if name.startswith(f"{page.id}.") and isinstance(place, Mapping):
                    await self.find(page, live, f"{what} {name}", place, is_single=False)
        for action in self.catalog.actions:
            if action.id in page.actions:
                await self.inspect_tool(page, live, action, current)
        await self.run_checks(page, runtime)
        for drift in chain(
            compare_attributes(self.catalog, page, records), compare_forms(self.catalog, page, live.url, records)
        ):
            self.add(drift)

    async def find(
        self, page: Page, live: LivePage, subject: str, target: Mapping[str, object], *, is_single: bool
    ) -> bool:
        """Locate an element on a page and note differences. Returns True if it is found."""
        try:
            match = await locate(live, target)
        except PrimitiveError as error:
            self.note("drift-missing", page.path, subject, error.message, {"code": error.code, "target": dict(target)})
            return False
        evidence: dict[str, object] = {"url": live.url, "target": dict(target), **match.evidence}
        if not match.elements:
            self.note("drift-missing", page.path, subject, match.reason, evidence)
        elif is_single and len(match.elements) > 1:
            self.note("drift-several", page.path, subject, f"{len(match.elements)} elements match.", evidence)
        for words in match.drift:
            self.note("drift-other", page.path, subject, words, evidence)
        return bool(match.elements)

    async def inspect_tool(self, page: Page, live: LivePage, action: Action, current: Sequence[str]) -> None:
        """Locate the elements of a tool: its form, and those of its workflow up to the step that leaves the page."""
        tool = self.map.find("tools", action.id) or {}
        target, workflow = tool.get("target"), tool.get("workflow")
        state = reading.part(tool, "target").get("state")
        if state is not None and state not in current:
            return
        if isinstance(target, Mapping):
            await self.find(page, live, f"tool {action.id}", target, is_single=True)
        for step in reading.objects(reading.part(tool, "workflow"), "steps"):
            arguments = reading.part(step, "args")
            place = arguments.get("target", arguments.get("locator"))
            if isinstance(place, Mapping) and not has_slots(place):
                await self.find(page, live, f"tool {action.id}, step {step.get('id')}", place, is_single=True)
            if step.get("id") == "submit" or "settle_after" in step:
                return
        for name, css in action.selectors.items() if not isinstance(workflow, Mapping) else ():
            await self.find(page, live, f"tool {action.id}, input {name}", {"selector": css}, is_single=True)

    async def observe(self, page: Page, runtime: Runtime) -> Sequence[str]:
        """Record the current states and the results of projections. Returns the states."""
        states = await runtime.states()
        current = states["current"]
        assert isinstance(current, list)
        self.true_states |= set(current)
        if isinstance(states["diagnostics"], Mapping):
            for name, diagnostics in states["diagnostics"].items():
                if name.startswith(f"{page.id}."):
                    self.diagnosed[name] = {"url": runtime.page.url, "diagnostics": diagnostics}
        for projection in reading.objects(await runtime.list(), "projections"):
            name = str(projection["name"])
            if not name.startswith(f"{page.id}."):
                continue
            try:
                answer = await runtime.state_read(name)
            except RuntimeFailure as failure:
                error = {"error": failure.describe()}
                self.note("drift-projection", page.path, f"projection {name}", failure.message, error)
                continue
            diagnostics = answer["diagnostics"]
            assert isinstance(diagnostics, Mapping)
            url = runtime.page.url
            for record, count in diagnostics["selector_counts"].items():
                key = (name, str(record).partition(".")[0])
                if "." not in str(record):
                    self.counted[key] = max(self.counted.get(key, 0), int(count))
            for missing in diagnostics["missing_required_fields"]:
                self.missed.setdefault((name, str(missing)), {"url": url, "diagnostics": dict(diagnostics)})
        return current

    async def run_checks(self, page: Page, runtime: Runtime) -> None:
        names = [str(check.get("id")) for check in self.map.objects("checks")]
        ids = [name for name in names if name.startswith(f"{page.id}.")]
        for result in await runtime.check(ids):
            if result["status"] in ("passed", "skipped"):
                continue
            error, severity = result.get("error"), result.get("severity")
            message = str(error.get("message")) if isinstance(error, Mapping) else "The check failed."
            level: Level = ERROR if severity in ("major", "critical") else WARNING
            self.note("drift-check", page.path, f"check {result['check_id']}", message, result, level)

    def readers(self, page: Page) -> Iterable[Action]:
        """Yield the page's read-only actions with a workflow, which may be tried."""
        for action in self.catalog.actions:
            tool = self.map.find("tools", action.id) if action.id in page.actions else None
            if tool is not None and "workflow" in tool and action.effect == "read":
                yield action

    async def try_workflow(self, page: Page, action: Action, address: str) -> None:
        arguments = dict(action.examples[0]) if action.examples else _example(action.inputs)
        workflow = json.dumps((self.map.find("tools", action.id) or {}).get("workflow"))
        arguments = {
            name: value for name, value in arguments.items() if re.search(rf"\binput\.{re.escape(name)}\b", workflow)
        }
        async with self.open_page() as live:
            runtime = Runtime(self.map, live)
            try:
                await live.perform("browser.navigate", {"url": address})
                await runtime.call(action.id, arguments)
            except PrimitiveError:
                return  # the page itself has been reported already
            except RuntimeFailure as failure:
                evidence = {"input": arguments, "error": failure.describe()}
                self.note("drift-workflow", page.path, f"tool {action.id}", failure.message, evidence)
            await self.observe(page, runtime)

    def conclude(self, page: Page) -> None:
        if self.map.is_valid and not any(
            drift.page == page.path and drift.kind in _UNSEEN for drift in self.differences
        ):
            for state in reading.objects(map_of(page), "states"):
                full = f"{page.id}.{state['name']}"
                if full not in self.true_states:
                    message = "It was not true on any visited page."
                    self.note("drift-state", page.path, f"state {full}", message, self.diagnosed.get(full, {}))
            for projection in reading.objects(map_of(page), "state_projections"):
                full = f"{page.id}.{projection['name']}"
                for record in reading.objects(reading.part(projection, "snapshot"), "extract"):
                    if self.counted.get((full, str(record["id"]))) == 0:
                        message = f"Its record {record['id']} was not found on any visited page."
                        css = {"selector": record.get("selector")}
                        self.note("drift-records", page.path, f"projection {full}", message, css)
        for (full, missing), evidence in self.missed.items():
            if full.partition(".")[0] == page.id:
                message = f"The required field {missing} is missing or empty."
                self.note("drift-records", page.path, f"projection {full}", message, evidence)


_UNSEEN: Final = frozenset(("drift-unvisited", "drift-page"))


def _example(schema: JsonObject) -> dict[str, object]:
    """Make up the required inputs of an action without examples, as simple as its schema allows."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        return {}
    inputs: dict[str, object] = {}
    for name in required:
        member = reading.part(properties, name)
        examples, words = member.get("examples"), member.get("enum")
        if isinstance(examples, list) and examples:
            inputs[name] = examples[0]
        elif isinstance(words, list) and words:
            inputs[name] = words[0]
        elif "default" in member:
            inputs[name] = member["default"]
        elif member.get("type") in ("integer", "number"):
            lowest = member.get("minimum", 1)
            inputs[name] = lowest if isinstance(lowest, (int, float)) and lowest > 1 else 1
        elif member.get("type") == "boolean":
            inputs[name] = True
        else:
            shortest = member.get("minLength", 0)
            inputs[name] = "example".ljust(shortest if isinstance(shortest, int) else 0, "e")
    return inputs

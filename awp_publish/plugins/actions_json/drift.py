"""Drift: differences between a site's pages and its actions.json.

Every declared page is rendered, in process or in a browser, and compared with the published map. A page with several
addresses is visited at the first one that another page links to. Only forms of read-only actions are submitted.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlsplit

from awp_publish.browsing.addresses import Origins
from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import Fetch, Fetched, Steps
from awp_publish.browsing.session import Session
from awp_publish.checks.engine import ERROR, WARNING, Level
from awp_publish.http.driving import drive
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
from awp_publish.plugins.actions_json.reading import ActionMap
from awp_publish.problems import DeclarationError

MAX_PAGE_BYTES: Final = 4_194_304
"""Bytes of a page that is rendered."""

KINDS: Final[Mapping[str, tuple[Level, str, str]]] = {
    "drift-page": (ERROR, "A declared page can be rendered, at its own address.", "Correct the page, or its path."),
    "drift-unvisited": (
        WARNING,
        "A page of several addresses is linked from another declared page, so that it can be visited.",
        "Link one of its addresses from a declared page.",
    ),
    "drift-missing": (
        ERROR,
        "Places that a page declares, and that its tools begin with, are on it.",
        "Correct the selector, or the page.",
    ),
    "drift-several": (ERROR, "A place that is acted upon is one element.", "Make the selector narrower."),
    "drift-other": (
        WARNING,
        "Places are found by their first selector and have the declared name.",
        "Correct the selector or the name.",
    ),
    "drift-attribute": (
        ERROR,
        "Attributes in the page name actions and inputs that are declared, with their addresses.",
        "Write the attributes with the template functions, or correct them.",
    ),
    "drift-form": (
        WARNING,
        "Forms of actions are declared on a page where they stand.",
        "Declare the action on the page; a proposal is in the evidence.",
    ),
    "drift-state": (WARNING, "A declared state is true on at least one page.", "Correct its places, or leave it out."),
    "drift-check": (ERROR, "The page's checks pass.", "Correct the page, or the check."),
    "drift-workflow": (
        ERROR,
        "The workflow of an action that only reads succeeds, with an example of its inputs.",
        "Correct the page, the selectors, or the examples of the action.",
    ),
    "drift-projection": (
        ERROR,
        "A projection gives a state that fits its schema.",
        "Correct the expression, the selectors or the schema.",
    ),
    "drift-records": (
        WARNING,
        "Every record of a projection is found on some page, with the fields that it requires.",
        "Correct the selectors.",
    ),
}
"""The kinds of findings: level, rule, and advice."""


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference. `page` is the page's path, `subject` the part of the map that differs."""

    kind: str
    page: str
    subject: str
    message: str
    evidence: JsonObject = field(default_factory=dict)
    level: Level = ERROR

    @property
    def hint(self) -> str:
        """Advice on how to resolve it."""
        return KINDS[self.kind][2]

    def __str__(self) -> str:
        evidence = json.dumps(self.evidence, ensure_ascii=False, default=str)
        evidence = evidence if len(evidence) <= 600 else evidence[:600] + "..."
        finding = f"{self.level}: {self.page}: {self.subject}: {self.message} {self.hint} [{self.kind}]"
        return f"{finding}\n    evidence: {evidence}"

    def describe(self) -> JsonObject:
        """Return the finding as JSON."""
        members = ("kind", "level", "page", "subject", "message", "hint", "evidence")
        return {name: getattr(self, name) for name in members}


OpenPage: TypeAlias = Callable[[], AbstractAsyncContextManager[LivePage]]
"""Opens an empty page as a new visitor."""

_SECONDS: Final = 30.0
_ATTRIBUTES: Final[Sequence[JsonObject]] = (
    {
        "id": "actions",
        "selector": "[data-awas-action], [data-ai-action]",
        "fields": {
            "awas": {"attribute": "data-awas-action"},
            "ai": {"attribute": "data-ai-action"},
            "endpoint": {"attribute": "data-ai-endpoint"},
            "method": {"attribute": "data-ai-method"},
        },
    },
    {
        "id": "params",
        "selector": "[data-awas-param], [data-ai-param]",
        "fields": {
            "awas": {"attribute": "data-awas-param"},
            "ai": {"attribute": "data-ai-param"},
            "of_awas": {
                "closest": "[data-awas-action], [data-ai-action]",
                "attribute": "data-awas-action",
            },
            "of_ai": {"closest": "[data-awas-action], [data-ai-action]", "attribute": "data-ai-action"},
        },
    },
    {
        "id": "forms",
        "selector": "form",
        "fields": {
            "action": {"attribute": "action"},
            "method": {"attribute": "method"},
            "id": {"attribute": "id"},
            "controls": {
                "selector": "input, select, textarea",
                "many": True,
                "fields": {
                    "name": {"attribute": "name"},
                    "type": {"attribute": "type"},
                    "required": {"attribute": "required"},
                    "value": {"property": "value"},
                },
            },
        },
    },
    {"id": "links", "selector": "a[href]", "fields": {"href": {"attribute": "href"}}},
)


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
        exchange = PageExchange(b"", 0)
        await app(request.scope({"type": "http", "path": "/", "headers": []}), exchange.receive, exchange.send)
        async with opening(app, catalog(), state) as open_page:
            return await _Inspection(catalog(), open_page).run()


class _Inspection:
    """The state of one inspection: the findings, and what has been observed at least once."""

    def __init__(self, catalog: Catalog, open_page: OpenPage) -> None:
        self.catalog, self.open_page = catalog, open_page
        self.map = ActionMap.read(dict(actions_json.render(catalog)))
        self.declared = {name for page in catalog.pages for name in page.actions}
        self.found: list[Drift] = []
        self.held: set[str] = set()
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
        drift = Drift(kind, page, subject, message, evidence or {}, level or KINDS[kind][0])
        if drift not in self.found:
            self.found.append(drift)

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
        return sorted(self.found, key=lambda one: order.index(one.page) if one.page in order else -1)

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

    # --- One page ---

    async def inspect(self, page: Page, live: LivePage) -> None:
        runtime = Runtime(self.map, live)
        records = (await live.extract(_ATTRIBUTES)).records
        self.links += [urljoin(live.url, str(one.get("href"))) for one in reading.objects(records, "links")]
        current = await self.observe(page, runtime)
        for name, locator in page.locators.items():
            if name == "done" or name.endswith("_done"):  # appears only after the form is submitted
                continue
            predicates = ("role", "name", "text_equals", "text_contains")
            given = {one: value for one in predicates if (value := getattr(locator, one)) is not None}
            given |= {"fallback_selectors": list(locator.fallbacks)} if locator.fallbacks else {}
            await self.find(page, live, f"locator {name}", {"selector": locator.css, **given}, one=False)
        for section, what in (("attachments", "attachment"), ("signals", "signal")):
            for one in self.map.objects(section):
                named = str(one.get("id", one.get("name")))
                target = one.get("target")
                if named.startswith(f"{page.id}.") and isinstance(target, Mapping):
                    await self.find(page, live, f"{what} {named}", target, one=False)
        for action in self.catalog.actions:
            if action.id in page.actions:
                await self.inspect_tool(page, live, action, current)
        await self.run_checks(page, runtime)
        self.compare_attributes(page, records)
        self.compare_forms(page, live.url, records)

    async def find(self, page: Page, live: LivePage, subject: str, target: Mapping[str, object], *, one: bool) -> bool:
        """Locate an element on a page and note differences. Returns True if it is found."""
        try:
            match = await locate(live, target)
        except PrimitiveError as error:
            self.note("drift-missing", page.path, subject, error.message, {"code": error.code, "target": dict(target)})
            return False
        evidence: dict[str, object] = {"url": live.url, "target": dict(target), **match.evidence}
        if not match.elements:
            self.note("drift-missing", page.path, subject, match.reason, evidence)
        elif one and len(match.elements) > 1:
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
            await self.find(page, live, f"tool {action.id}", target, one=True)
        for step in reading.objects(reading.part(tool, "workflow"), "steps"):
            arguments = reading.part(step, "args")
            place = arguments.get("target", arguments.get("locator"))
            if isinstance(place, Mapping) and not has_slots(place):
                await self.find(page, live, f"tool {action.id}, step {step.get('id')}", place, one=True)
            if step.get("id") == "submit" or "settle_after" in step:
                return
        for name, css in action.selectors.items() if not isinstance(workflow, Mapping) else ():
            await self.find(page, live, f"tool {action.id}, input {name}", {"selector": css}, one=True)

    async def observe(self, page: Page, runtime: Runtime) -> Sequence[str]:
        """Record the current states and the results of projections. Returns the states."""
        states = await runtime.states()
        current = states["current"]
        assert isinstance(current, list)
        self.held |= set(current)
        if isinstance(states["diagnostics"], Mapping):
            for name, one in states["diagnostics"].items():
                if name.startswith(f"{page.id}."):
                    self.diagnosed[name] = {"url": runtime.page.url, "diagnostics": one}
        for one in reading.objects(await runtime.list(), "projections"):
            name = str(one["name"])
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
        ids = [str(one.get("id")) for one in self.map.objects("checks") if str(one.get("id")).startswith(f"{page.id}.")]
        for result in await runtime.check(ids):
            if result["status"] in ("passed", "skipped"):
                continue
            error, severity = result.get("error"), result.get("severity")
            message = str(error.get("message")) if isinstance(error, Mapping) else "The check failed."
            level: Level = ERROR if severity in ("major", "critical") else WARNING
            evidence = {name: value for name, value in result.items() if name != "evidence"}
            self.note("drift-check", page.path, f"check {result['check_id']}", message, evidence, level)

    # --- Attributes and forms ---

    def compare_attributes(self, page: Page, records: Mapping[str, object]) -> None:
        known = {action.id: action for action in self.catalog.actions}
        for one in reading.objects(records, "actions"):
            for style in ("awas", "ai"):
                name = one.get(style)
                if not isinstance(name, str):
                    continue
                action = known.get(name)
                if action is None:
                    message = f"There is no action {name!r}."
                    self.note("drift-attribute", page.path, f"data-{style}-action", message, {"attributes": dict(one)})
                    continue
                if page.id and name not in self.declared:
                    message = f"The page is marked with {name}, which its declaration does not name."
                    proposal = f"actions=[{', '.join(repr(each) for each in (*page.actions, name))}]"
                    self.note("drift-form", page.path, f"action {name}", message, {"proposal": proposal})
                method, path = self.catalog.endpoint_of(action)
                declared = {"endpoint": self.catalog.prefix + path, "method": method}
                given = {each: one.get(each) for each in declared}
                if style == "ai" and any(given[each] not in (None, declared[each]) for each in declared):
                    message = "The address or the method differs from the manifest."
                    self.note(
                        "drift-attribute", page.path, f"action {name}", message, {"page": given, "manifest": declared}
                    )
        for one in reading.objects(records, "params"):
            name, owner = one.get("awas") or one.get("ai"), one.get("of_awas") or one.get("of_ai")
            action = known.get(str(owner))
            properties = action.inputs.get("properties") if action is not None else None
            if action is not None and not (isinstance(properties, Mapping) and name in properties):
                message = f"The action {owner} has no input {name!r}."
                self.note("drift-attribute", page.path, f"input {name}", message, {"attributes": dict(one)})

    def compare_forms(self, page: Page, url: str, records: Mapping[str, object]) -> None:
        """Note forms of actions that are not declared, and differences between their fields and the inputs."""
        by_route = {
            (action.target.method, self.catalog.prefix + action.target.path): action
            for action in self.catalog.actions
            if action.target is not None
        }
        for form in reading.objects(records, "forms"):
            method = str(form.get("method") or "get").upper()
            path = urlsplit(urljoin(url, str(form.get("action") or url))).path
            action = by_route.get((method, path))
            if action is None:
                continue
            controls = {str(one["name"]): one for one in reading.objects(form, "controls") if one.get("name")}
            evidence: JsonObject = {"form": {"method": method, "path": path}, "controls": list(controls.values())}
            if action.id not in page.actions and action.id in self.declared:
                continue  # a form that is on every page has to be declared on one only
            if action.id not in page.actions:
                selector = f"form[action='{form.get('action')}']" if form.get("action") else "form"
                places = {name: f"{selector} [name='{name}']" for name in controls}
                awas = {"selectors": places}
                proposal = f"@site.page(actions=[{action.id!r}]), @site.action({action.id!r}, awas={awas!r})"
                message = f"It has a form of the action {action.id}, which its declaration does not name."
                self.note("drift-form", page.path, f"action {action.id}", message, {"proposal": proposal, **evidence})
                continue
            properties, required = action.inputs.get("properties", {}), action.inputs.get("required", [])
            needed = required if isinstance(required, list) else []
            unknown = [name for name in needed if name not in controls and "{" not in path]
            if unknown:
                message = f"The form has no field for {', '.join(map(str, unknown))}."
                self.note("drift-missing", page.path, f"action {action.id}", message, evidence)
            names = properties if isinstance(properties, Mapping) else {}
            strange = [name for name, one in controls.items() if name not in names and one.get("required") is not None]
            if strange:
                message = f"The form requires {', '.join(strange)}, which the action does not have."
                self.note("drift-form", page.path, f"action {action.id}", message, evidence)

    # --- Workflows ---

    def readers(self, page: Page) -> Iterable[Action]:
        """Yield the page's read-only actions with a workflow, which may be tried."""
        for action in self.catalog.actions:
            tool = self.map.find("tools", action.id) if action.id in page.actions else None
            if tool is not None and "workflow" in tool and action.effect == "read":
                yield action

    async def try_workflow(self, page: Page, action: Action, address: str) -> None:
        given = dict(action.examples[0]) if action.examples else _example(action.inputs)
        workflow = json.dumps((self.map.find("tools", action.id) or {}).get("workflow"))
        given = {name: value for name, value in given.items() if re.search(rf"\binput\.{re.escape(name)}\b", workflow)}
        async with self.open_page() as live:
            runtime = Runtime(self.map, live)
            try:
                await live.perform("browser.navigate", {"url": address})
                await runtime.call(action.id, given)
            except PrimitiveError:
                return  # the page itself has been reported already
            except RuntimeFailure as failure:
                evidence = {"input": given, "error": failure.describe()}
                self.note("drift-workflow", page.path, f"tool {action.id}", failure.message, evidence)
            await self.observe(page, runtime)

    # --- What was never observed ---

    def conclude(self, page: Page) -> None:
        if self.map.is_valid and not any(one.page == page.path and one.kind in _UNSEEN for one in self.found):
            for name in page.states:
                if f"{page.id}.{name}" not in self.held:
                    message = "It was not true on any visited page."
                    seen = self.diagnosed.get(f"{page.id}.{name}", {})
                    self.note("drift-state", page.path, f"state {page.id}.{name}", message, seen)
            for name, projection in page.projections.items():
                full = f"{page.id}.{name}"
                for record in projection.records:
                    if self.counted.get((full, record)) == 0:
                        message = f"Its record {record} was not found on any visited page."
                        css = projection.records[record].css
                        self.note("drift-records", page.path, f"projection {full}", message, {"selector": css})
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
    made: dict[str, object] = {}
    for name in required:
        given = properties.get(name)
        one: Mapping[str, object] = given if isinstance(given, Mapping) else {}
        examples, words = one.get("examples"), one.get("enum")
        if isinstance(examples, list) and examples:
            made[name] = examples[0]
        elif isinstance(words, list) and words:
            made[name] = words[0]
        elif "default" in one:
            made[name] = one["default"]
        elif one.get("type") in ("integer", "number"):
            lowest = one.get("minimum", 1)
            made[name] = lowest if isinstance(lowest, (int, float)) and lowest > 1 else 1
        elif one.get("type") == "boolean":
            made[name] = True
        else:
            shortest = one.get("minLength", 0)
            made[name] = "example".ljust(shortest if isinstance(shortest, int) else 0, "e")
    return made

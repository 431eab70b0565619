"""A page in a real browser, read and controlled by the site's own script in it (`actions.js`).

The script reports what it sees; the runner resolves targets, as for pages in process. Messages reach the script through
a function of the caller's: over the bridge to a visitor's tab, or through Playwright (extra "browser"):

    async with open_chromium(["https://shop.example"]) as browser:
        page = await browser.open("https://shop.example/")

With Playwright, pointer, keyboard and navigation are the browser's own. Only pages of the given origins are opened.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from awp_publish.maps.live_page import (
    MAX_FOUND,
    SCREENLESS_PRIMITIVES,
    Box,
    Extraction,
    FoundElement,
    PageEvent,
    PrimitiveError,
)
from awp_publish.maps.roles import roles_of
from awp_publish.schema import JsonObject

Ask: TypeAlias = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Calls a method of the script by name. Returns its answer, `{ok, value, url, title}` or `{ok, error, url}`."""

CHANGING_METHODS: Final = frozenset({"insert", "perform", "invoke", "attach", "detach"})
"""Methods of the script that are never repeated, because they may change something."""


@dataclass(frozen=True, slots=True)
class ScriptElement:
    """An element as the script reports it (`FoundElement`)."""

    ref: str
    tag: str
    roles: frozenset[str]
    name: str
    text: str
    is_visible: bool
    is_enabled: bool
    box: Box


class ScriptPage:
    """A page that is reached through `ask` (`LivePage`). `url` is its address as of the last answer."""

    has_scripts: Final = True

    def __init__(
        self, ask: Ask, *, host: str = "page", url: str = "", primitives: frozenset[str] = SCREENLESS_PRIMITIVES
    ) -> None:
        self.host, self.primitives = host, primitives
        self.url = url
        self._send = ask
        self._document = ""
        self._documents: dict[tuple[object, object], str] = {}

    async def ask(self, method: str, arguments: JsonObject) -> object:
        """Call a method of the script. Raises PrimitiveError."""
        answer = await self._send(method, arguments)
        url, error = answer.get("url"), answer.get("error")
        if isinstance(url, str):
            self.url = url
        self._document = str(answer.get("document", ""))
        if answer.get("ok") is True:
            return answer.get("value")
        details: Mapping[str, object] = error if isinstance(error, Mapping) else {}
        evidence = details.get("evidence")
        message = str(details.get("message", "The page did not report what was wrong."))[:1000]
        facts = {str(name): value for name, value in evidence.items()} if isinstance(evidence, Mapping) else {}
        raise PrimitiveError(str(details.get("code", "handler_failed"))[:100], message, **facts)

    async def title(self) -> str:
        return str(await self.ask("title", {}))

    async def html(self) -> str:
        return str(await self.ask("html", {}))

    async def find(
        self,
        css: str | None,
        *,
        within: str | None = None,
        roles: frozenset[str] | None = None,
        text_contains: str | None = None,
    ) -> Sequence[FoundElement]:
        elements = await self.ask("find", {"css": css, "within": within, "text_contains": text_contains})
        return (
            [self._read(element) for element in elements if isinstance(element, dict)]
            if isinstance(elements, list)
            else []
        )

    def _read(self, described: Mapping[str, object]) -> ScriptElement:
        """Read an element from the script's description; missing members are empty."""
        tag, box = str(described.get("tag", "")), described.get("box")
        attributes = {str(name): str(value) for name, value in _object(described.get("attributes")).items()}
        sides = [
            float(side) if isinstance(side, (int, float)) else 0.0 for side in (box if isinstance(box, list) else ())
        ]
        element = ScriptElement(
            ref=str(described.get("ref", "")),
            tag=tag,
            roles=roles_of(tag, attributes),
            name=" ".join(str(described.get("name", "")).split()),
            text=" ".join(str(described.get("text", "")).split()),
            is_visible=described.get("visible") is True,
            is_enabled=described.get("enabled") is not False,
            box=Box(*sides) if len(sides) == 4 else Box(0, 0, 0, 0),
        )
        if len(self._documents) >= 10 * MAX_FOUND:
            self._documents.clear()
        self._documents[tuple(element.box.describe_centre().values())] = self._document  # type: ignore[index]
        return element

    def from_document(self, point: JsonObject) -> JsonObject:
        """Return a point with the document in which it was reported, so that it clicks nothing in another document."""
        document = self._documents.get((point.get("x"), point.get("y")))
        return {**point, "document": document} if document else point

    async def closest(self, ref: str, css: str) -> FoundElement | None:
        element = await self.ask("closest", {"ref": ref, "css": css})
        return self._read(element) if isinstance(element, dict) else None

    async def insert(self, ref: str | None, text: str, mode: str) -> JsonObject:
        return _object(await self.ask("insert", {"ref": ref, "text": text, "mode": mode}))

    async def perform(self, primitive: str, arguments: JsonObject) -> JsonObject:
        members = self.from_document(arguments) if primitive.startswith("pointer.") else arguments
        return _object(await self.ask("perform", {"primitive": primitive, "arguments": members}))

    async def extract(self, extracts: Sequence[JsonObject]) -> Extraction:
        extracted = _object(await self.ask("extract", {"extracts": list(extracts)}))
        records, counts, missing = (extracted.get(name) for name in ("records", "selector_counts", "missing"))
        return Extraction(
            _object(records),
            {str(name): int(count) for name, count in _object(counts).items() if isinstance(count, (int, float))},
            [str(name) for name in missing] if isinstance(missing, list) else [],
        )

    async def invoke(self, handler: str, arguments: JsonObject) -> object:
        return await self.ask("invoke", {"handler": handler, "arguments": arguments})

    async def attach(self, attachment_id: str, ref: str, affordance: JsonObject) -> None:
        await self.ask("attach", {"id": attachment_id, "ref": ref, "affordance": affordance})

    async def detach(self, attachment_id: str) -> None:
        await self.ask("detach", {"id": attachment_id})

    async def attached(self) -> frozenset[str]:
        attached = await self.ask("attached", {})
        return frozenset(str(name) for name in attached) if isinstance(attached, list) else frozenset()

    async def listen(self, events: frozenset[str]) -> None:
        await self.ask("listen", {"events": sorted(events)})

    async def take_events(self) -> Sequence[PageEvent]:
        events = await self.ask("takeEvents", {})
        return [
            PageEvent(
                str(event.get("event", "")),
                event.get("detail"),
                str(event.get("url", "")),
                tuple(str(ref) for ref in refs) if isinstance(refs := event.get("refs"), list) else (),
            )
            for event in (events if isinstance(events, list) else [])
            if isinstance(event, dict)
        ]


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}

"""A page in a real browser, read and acted upon by the site's own script in it (`static/actions.js`).

The script says what it sees; what a target means is the runner's, as for pages in process. How messages reach the
script is the caller's: through the bridge to a visitor's tab, or through Playwright.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from awp_publish.browsing.live_page import (
    MAX_FOUND,
    SCREENLESS_PRIMITIVES,
    Box,
    Extraction,
    FoundElement,
    PageEvent,
    PrimitiveError,
)
from awp_publish.browsing.site_page import roles_of
from awp_publish.model import JsonObject

Ask: TypeAlias = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Has the script carry out a method, by name. Returns its answer, `{ok, value, url, title}` or `{ok, error, url}`."""


@dataclass(frozen=True, slots=True)
class ScriptElement:
    """One element as the script has seen it (`FoundElement`)."""

    ref: str
    tag: str
    roles: frozenset[str]
    name: str
    text: str
    is_visible: bool
    is_enabled: bool
    box: Box


class ScriptPage:
    """A page behind `ask` (`LivePage`). `url` is the address that it showed when it answered last."""

    has_scripts: Final = True

    def __init__(
        self, ask: Ask, *, host: str = "page", url: str = "", primitives: frozenset[str] = SCREENLESS_PRIMITIVES
    ) -> None:
        self.host, self.primitives = host, primitives
        self.url = url
        self._send = ask
        self._document = ""
        self._told: dict[tuple[object, object], str] = {}

    async def ask(self, method: str, arguments: JsonObject) -> object:
        """Have the script carry out a method. Raises PrimitiveError."""
        answer = await self._send(method, arguments)
        url, error = answer.get("url"), answer.get("error")
        if isinstance(url, str):
            self.url = url
        self._document = str(answer.get("document", ""))
        if answer.get("ok") is True:
            return answer.get("value")
        told: Mapping[str, object] = error if isinstance(error, Mapping) else {}
        evidence = told.get("evidence")
        message = str(told.get("message", "The page did not say what was wrong."))[:1000]
        known = {str(name): value for name, value in evidence.items()} if isinstance(evidence, Mapping) else {}
        raise PrimitiveError(str(told.get("code", "handler_failed"))[:100], message, **known)

    async def title(self) -> str:
        """Return the title."""
        return str(await self.ask("title", {}))

    async def html(self) -> str:
        """Return the document as it is now."""
        return str(await self.ask("html", {}))

    async def find(
        self,
        css: str | None,
        *,
        within: str | None = None,
        roles: frozenset[str] | None = None,
        text_contains: str | None = None,
    ) -> Sequence[FoundElement]:
        """Return what a selector matches. `roles` are looked at by the runner."""
        found = await self.ask("find", {"css": css, "within": within, "text_contains": text_contains})
        return [self._read(one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []

    def _read(self, told: Mapping[str, object]) -> ScriptElement:
        element = read_element(told)
        if len(self._told) >= 10 * MAX_FOUND:
            self._told.clear()
        self._told[tuple(element.box.describe_centre().values())] = self._document  # type: ignore[index]
        return element

    def from_document(self, point: JsonObject) -> JsonObject:
        """Return a point with the document that it was told of, so that it clicks nothing in another one."""
        told = self._told.get((point.get("x"), point.get("y")))
        return {**point, "document": told} if told else point

    async def closest(self, ref: str, css: str) -> FoundElement | None:
        """Return the nearest element around another that a selector matches."""
        found = await self.ask("closest", {"ref": ref, "css": css})
        return self._read(found) if isinstance(found, dict) else None

    async def insert(self, ref: str | None, text: str, mode: str) -> JsonObject:
        """Type into a field."""
        return _object(await self.ask("insert", {"ref": ref, "text": text, "mode": mode}))

    async def perform(self, primitive: str, arguments: JsonObject) -> JsonObject:
        """Carry out a primitive."""
        given = self.from_document(arguments) if primitive.startswith("pointer.") else arguments
        return _object(await self.ask("perform", {"primitive": primitive, "arguments": given}))

    async def extract(self, extracts: Sequence[JsonObject]) -> Extraction:
        """Read the records of a projection."""
        told = _object(await self.ask("extract", {"extracts": list(extracts)}))
        records, counts, missing = (told.get(name) for name in ("records", "selector_counts", "missing"))
        return Extraction(
            _object(records),
            {str(name): int(count) for name, count in _object(counts).items() if isinstance(count, (int, float))},
            [str(one) for one in missing] if isinstance(missing, list) else [],
        )

    async def invoke(self, handler: str, arguments: JsonObject) -> object:
        """Call a function of the page's own scripts."""
        return await self.ask("invoke", {"handler": handler, "arguments": arguments})

    async def attach(self, attachment_id: str, ref: str, affordance: JsonObject) -> None:
        """Put an affordance beside an element."""
        await self.ask("attach", {"id": attachment_id, "ref": ref, "affordance": affordance})

    async def detach(self, attachment_id: str) -> None:
        """Take an affordance away."""
        await self.ask("detach", {"id": attachment_id})

    async def attached(self) -> frozenset[str]:
        """Return the ids of the affordances in the page."""
        found = await self.ask("attached", {})
        return frozenset(str(one) for one in found) if isinstance(found, list) else frozenset()

    async def listen(self, events: frozenset[str]) -> None:
        """Collect events of these names from now on."""
        await self.ask("listen", {"events": sorted(events)})

    async def take_events(self) -> Sequence[PageEvent]:
        """Return the events since the last call."""
        found = await self.ask("takeEvents", {})
        return [
            PageEvent(
                str(one.get("event", "")),
                one.get("detail"),
                str(one.get("url", "")),
                tuple(str(ref) for ref in refs) if isinstance(refs := one.get("refs"), list) else (),
            )
            for one in (found if isinstance(found, list) else [])
            if isinstance(one, dict)
        ]


def read_element(told: Mapping[str, object]) -> ScriptElement:
    """Read an element as the script describes it; what it does not say is nothing."""
    attributes = {str(name): str(value) for name, value in _object(told.get("attributes")).items()}
    box = told.get("box")
    sides = [float(side) if isinstance(side, (int, float)) else 0.0 for side in box] if isinstance(box, list) else []
    return ScriptElement(
        ref=str(told.get("ref", "")),
        tag=str(told.get("tag", "")),
        roles=roles_of(str(told.get("tag", "")), attributes),
        name=" ".join(str(told.get("name", "")).split()),
        text=" ".join(str(told.get("text", "")).split()),
        is_visible=told.get("visible") is True,
        is_enabled=told.get("enabled") is not False,
        box=Box(*sides) if len(sides) == 4 else Box(0, 0, 0, 0),
    )


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}

"""The primitives of actions.json upon a page: those that read and find are made here, for every kind of page alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from awp_publish.browsing.live_page import LivePage, PrimitiveError
from awp_publish.browsing.locating import MAX_CANDIDATES, Match, describe, locate, locate_one
from awp_publish.model import JsonObject
from awp_publish.schema import Validator, compile_schema
from awp_publish.workflows import rules
from awp_publish.workflows.primitives import PRIMITIVES, arguments_of

READING: Final = frozenset(
    (
        "page.info",
        "dom.observe.visible",
        "dom.snapshot_text",
        "dom.list_sections",
        "locator.element_info",
        "locator.text_content",
        "locator.wait_for",
        "browser.extract_elements",
    )
)
"""Primitives that are made of looking at a page."""
HARMLESS: Final = READING | {"viewport.scroll", "pointer.move", "clipboard.read", "page.fetch"}
"""Primitives that change nothing that a person would miss."""

SNAPSHOT_CHARACTERS: Final = 10_000
POLL_SECONDS: Final = 0.05
_MAX_WAIT_MS: Final = 600_000
_SECTIONS: Final = "section, article, [role='region']"
_SCOPE: Final = frozenset(("selector", "selectors", "text_equals", "text_contains"))
_HEADINGS: Final = "h1, h2, h3, h4, h5, h6, [role='heading']"


@lru_cache(maxsize=128)
def _validator(primitive: str, *, is_located: bool) -> Validator:
    schema = dict(arguments_of(primitive))
    if is_located and primitive in ("pointer.click", "pointer.double_click"):  # in use: an element, not its centre
        properties = {**schema["properties"], "locator": {"type": "object"}}  # type: ignore[dict-item]
        schema |= {"properties": properties, "required": ["locator"]}
    return compile_schema(schema)


def can_run(page: LivePage, primitive: str) -> bool:
    """Say whether a primitive can be carried out on a page."""
    return primitive in READING or primitive == "text.insert" or primitive in page.primitives


def unavailable(page: LivePage, primitive: str) -> PrimitiveError:
    """Return the failure of a primitive that a page has not."""
    message = f"{primitive} cannot be carried out here."
    return PrimitiveError("capability_unavailable", message, capability=primitive, host=page.host)


async def run_primitive(page: LivePage, primitive: str, arguments: object, drift: list[str]) -> JsonObject:
    """Carry out a primitive and return its output; what a target told of drift is added. Raises PrimitiveError."""
    if primitive not in PRIMITIVES:
        raise PrimitiveError("capability_unavailable", f"The primitive {primitive[:100]!r} is not known.")
    if not can_run(page, primitive):
        raise unavailable(page, primitive)
    if not isinstance(arguments, dict):
        raise PrimitiveError("invalid_input", f"The arguments of {primitive} are an object.")
    wrong = _validator(primitive, is_located="locator" in arguments)(arguments)
    if wrong:
        errors = [{"pointer": one.pointer, "detail": one.detail} for one in wrong]
        message = f"The arguments of {primitive} are wrong: {errors[0]['pointer']} {errors[0]['detail']}".strip()
        raise PrimitiveError("invalid_input", message, errors=errors)
    if primitive == "page.info":
        return {"url": page.url, "title": await page.title()}
    if primitive == "locator.element_info":
        match = await locate(page, _locator(arguments))
        drift += match.drift
        if not match.elements:
            raise PrimitiveError("target_not_found", match.reason, url=page.url, **match.evidence)
        if len(match.elements) > 1:
            return {"ambiguous": True, **match.evidence}
        return {"ambiguous": False, "candidate_count": 1, **describe(match.elements[0])}
    if primitive == "locator.text_content":
        element, match = await locate_one(page, _locator(arguments))
        drift += match.drift
        return {"text": element.text}
    if primitive == "locator.wait_for":
        attached = arguments.get("state") == "attached"
        given = arguments.get("timeout_ms")
        timeout = given if isinstance(given, int) else rules.SETTLE_TIMEOUT_MS
        match, waited = await wait_for(page, _locator(arguments), timeout, attached=attached)
        drift += match.drift
        if not match.elements:
            message = f"It did not come within {timeout} ms: {match.reason}" if page.has_scripts else match.reason
            raise PrimitiveError("timeout", message, waited_ms=waited, url=page.url, **match.evidence)
        return {"matched": True, "candidate_count": len(match.elements), "waited_ms": waited}
    if primitive == "dom.observe.visible":
        named = {"selector": arguments["selector"]} if "selector" in arguments else {}
        texts = {"text_contains": arguments["text_contains"]} if "text_contains" in arguments else {}
        match = await locate(page, {**named, **texts} or {"selector": "body > *"})
        found = [describe(element) for element in match.elements[:MAX_CANDIDATES]]
        return {"matches": found, "match_count": len(match.elements)}
    if primitive == "dom.snapshot_text":
        characters = arguments.get("max_chars", SNAPSHOT_CHARACTERS)
        elements = await page.find(str(arguments.get("selector", "body")))
        shown = next((element for element in elements if element.is_visible), None)
        if shown is None:
            raise PrimitiveError("target_not_found", "Nothing visible matches the selector.", url=page.url)
        text = shown.text
        limit = characters if isinstance(characters, int) else SNAPSHOT_CHARACTERS
        return {"text": text[:limit], "truncated": len(text) > limit}
    if primitive == "dom.list_sections":
        return await _sections(page, arguments)
    if primitive == "browser.extract_elements":
        return await _items(page, arguments)
    if primitive == "text.insert":
        ref = None
        if "target" in arguments:
            element, match = await locate_one(page, _locator(arguments, "target"))
            drift += match.drift
            ref = element.ref
        return await page.insert(ref, str(arguments["text"]), str(arguments.get("mode", "append")))
    scope = arguments.get("scope")
    if primitive == "viewport.scroll" and isinstance(scope, Mapping) and scope:
        match = await locate(page, {name: value for name, value in scope.items() if name in _SCOPE})
        if not match.elements:
            raise PrimitiveError("target_not_found", "Nothing on the page fits the scope.", url=page.url)
        arguments = {**arguments, "ref": match.elements[0].ref}
    if "locator" in arguments:
        element, match = await locate_one(page, _locator(arguments))
        drift += match.drift
        rest = {name: value for name, value in arguments.items() if name != "locator"}
        arguments = {**rest, **element.box.describe_centre()}
    return await page.perform(primitive, arguments)


async def _items(page: LivePage, arguments: JsonObject) -> JsonObject:
    """Read a list of elements, each by its fields: the first attribute that is there, or the text."""
    given, scope = arguments["fields"], arguments.get("scope", {})
    assert isinstance(given, list)
    assert isinstance(scope, Mapping)
    fields = [one for one in given if isinstance(one, Mapping) and isinstance(one.get("name"), str)]
    if not fields or len(fields) < len(given):
        raise PrimitiveError("invalid_input", "The fields of browser.extract_elements are objects that have a name.")
    if unknown := sorted(scope.keys() - _SCOPE - {"root_strategy", "max_ancestor_depth"}):
        raise PrimitiveError("capability_unavailable", f"A scope is not found by {unknown[0][:50]!r} here.")
    if scope.get("root_strategy", "scope") != "scope":
        raise PrimitiveError("capability_unavailable", 'The root_strategy of a scope is "scope" here.')
    rules: dict[str, JsonObject] = {}
    for at, field in enumerate(fields):
        several = field.get("attributes")
        for choice, name in enumerate(several if isinstance(several, list) else [field.get("attribute", "text")]):
            read = {"property": "innerText", "trim": True} if name == "text" else {"attribute": str(name)}
            own = field.get("selector", ":scope")
            rules[f"{at}/{choice}"] = read if own == ":scope" else {**read, "selector": own}
    listed = {"id": "items", "selector": arguments["item_selector"], "many": True, "fields": rules}
    found: object = None
    equal, part = scope.get("text_equals"), scope.get("text_contains")
    roots = [scope["selector"]] if "selector" in scope else scope.get("selectors", ["body"] if scope else [])
    for root in roots if isinstance(roots, list) else []:
        within = {"id": "root", "selector": str(root), "fields": {"text": {"property": "innerText"}, "items": listed}}
        regions = (await page.extract([within])).records.get("root")
        fitting = (
            one
            for one in (regions if isinstance(regions, list) else [])
            if (equal is None or one["text"] == equal) and (part is None or str(part) in str(one["text"]))
        )
        if (region := next(fitting, None)) is not None:
            found = region["items"]
            break
    else:
        if scope:
            raise PrimitiveError("target_not_found", "Nothing on the page fits the scope.", url=page.url)
        found = (await page.extract([listed])).records.get("items")
    items = []
    for one in found if isinstance(found, list) else []:
        item: dict[str, object] = {}
        for at, field in enumerate(fields):
            values = (value for name, value in one.items() if name.startswith(f"{at}/") and value not in (None, ""))
            item[str(field["name"])] = next(values, None)
        items.append(item)
    return {"items": items, "item_count": len(items)}


def _locator(arguments: JsonObject, name: str = "locator") -> JsonObject:
    given = arguments[name]
    assert isinstance(given, Mapping)
    return given


async def wait_for(
    page: LivePage, target: Mapping[str, object], timeout_ms: float, *, attached: bool = False
) -> tuple[Match, int]:
    """Look for a target until it is there or the time is up, and return the last look and the milliseconds waited.

    A page without scripts is looked at once: nothing in it changes while nobody acts.
    """
    began = time.monotonic()
    limit = min(max(0.0, timeout_ms), _MAX_WAIT_MS) / 1000
    while True:
        match = await locate(page, target, attached=attached)
        waited = time.monotonic() - began
        if match.elements or not page.has_scripts or waited >= limit:
            return match, round(waited * 1000) if page.has_scripts else 0
        await asyncio.sleep(min(POLL_SECONDS, limit - waited))


async def _sections(page: LivePage, arguments: JsonObject) -> JsonObject:
    """List the sections of a page with their headings."""
    selector, headings, items = (arguments.get(name) for name in ("selector", "heading_selector", "item_selector"))
    wanted, most = arguments.get("text_contains"), arguments.get("max_sections", 50)
    longest = arguments.get("max_heading_length", 200)
    listed: list[JsonObject] = []
    total = 0
    for section in await page.find(str(selector or _SECTIONS)):
        if not section.is_visible or (isinstance(wanted, str) and wanted not in section.text):
            continue
        total += 1
        if len(listed) >= min(int(str(most)), 200):
            continue
        found = await page.find(str(headings or _HEADINGS), within=section.ref)
        heading = next((one.text for one in found if one.is_visible), section.name)
        entry: dict[str, object] = {"heading": heading[: int(str(longest))], "document_y": section.box.y}
        if isinstance(items, str):
            entry["item_count"] = len(await page.find(items, within=section.ref))
        listed.append(entry)
    return {"sections": listed, "section_count": total}

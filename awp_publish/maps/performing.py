"""Primitives on a page. Those that read and find are implemented here for every kind of page, in one table."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from awp_publish.maps import reading, rules
from awp_publish.maps.live_page import LivePage, PrimitiveError
from awp_publish.maps.primitives import PRIMITIVES, arguments_of
from awp_publish.maps.targets import MAX_CANDIDATES, describe, locate, locate_one, wait_for
from awp_publish.schema import JsonObject, Validator, Violation, compile_schema

SNAPSHOT_CHARACTERS: Final = 10_000
_SECTIONS: Final = "section, article, [role='region']"
_SCOPE: Final = frozenset(("selector", "selectors", "text_equals", "text_contains"))
_HEADINGS: Final = "h1, h2, h3, h4, h5, h6, [role='heading']"


def can_run(page: LivePage, primitive: str) -> bool:
    """Return True if a primitive can be run on a page."""
    return primitive in _READERS or primitive == "text.insert" or primitive in page.primitives


async def run_primitive(page: LivePage, primitive: str, arguments: object, drift: list[str]) -> JsonObject:
    """Run a primitive and return its output; adds differences in its target to `drift`. Raises PrimitiveError."""
    if primitive not in PRIMITIVES:
        raise PrimitiveError("capability_unavailable", f"The primitive {primitive[:100]!r} is not known.")
    if not can_run(page, primitive):
        message = f"{primitive} cannot be carried out here."
        raise PrimitiveError("capability_unavailable", message, capability=primitive, host=page.host)
    if not isinstance(arguments, dict):
        raise PrimitiveError("invalid_input", f"The arguments of {primitive} must be an object.")
    wrong = _validator(primitive, is_located="locator" in arguments)(arguments)
    if wrong:
        message = f"The arguments of {primitive} are wrong: {wrong[0].pointer} {wrong[0].detail}".strip()
        raise PrimitiveError("invalid_input", message, errors=errors_of(wrong))
    if primitive in _READERS:
        return await _READERS[primitive](page, arguments, drift)
    if primitive == "text.insert":
        target = (await locate_one(page, arguments["target"], drift)).ref if "target" in arguments else None
        return await page.insert(target, str(arguments["text"]), str(arguments.get("mode", "append")))
    return await page.perform(primitive, await _located(page, primitive, arguments, drift))


@lru_cache(maxsize=128)
def _validator(primitive: str, *, is_located: bool) -> Validator:
    schema = dict(arguments_of(primitive))
    if is_located and primitive in ("pointer.click", "pointer.double_click"):  # as existing maps do
        properties = {**schema["properties"], "locator": {"type": "object"}}  # type: ignore[dict-item]
        schema |= {"properties": properties, "required": ["locator"]}
    return compile_schema(schema)


def errors_of(wrong: Sequence[Violation]) -> list[JsonObject]:
    """Return violations of a schema in the form of evidence."""
    return [{"pointer": violation.pointer, "detail": violation.detail} for violation in wrong]


async def _located(page: LivePage, primitive: str, arguments: JsonObject, drift: list[str]) -> JsonObject:
    """Return the arguments with the place of their scope, or the point of their locator."""
    scope = arguments.get("scope")
    if primitive == "viewport.scroll" and isinstance(scope, Mapping) and scope:
        match = await locate(page, {name: value for name, value in scope.items() if name in _SCOPE})
        if not match.elements:
            raise PrimitiveError("target_not_found", "No element matches the scope.", url=page.url)
        arguments = {**arguments, "ref": match.elements[0].ref}
    if "locator" not in arguments:
        return arguments
    element = await locate_one(page, reading.part(arguments, "locator"), drift)
    rest = {name: value for name, value in arguments.items() if name != "locator"}
    return {**rest, **element.box.describe_centre()}


async def _info(page: LivePage, arguments: JsonObject, drift: list[str]) -> JsonObject:
    return {"url": page.url, "title": await page.title()}


async def _element_info(page: LivePage, arguments: JsonObject, drift: list[str]) -> JsonObject:
    match = await locate(page, reading.part(arguments, "locator"))
    drift += match.drift
    if not match.elements:
        raise PrimitiveError("target_not_found", match.reason, url=page.url, **match.evidence)
    if len(match.elements) > 1:
        return {"ambiguous": True, **match.evidence}
    return {"ambiguous": False, "candidate_count": 1, **describe(match.elements[0])}


async def _text_content(page: LivePage, arguments: JsonObject, drift: list[str]) -> JsonObject:
    return {"text": (await locate_one(page, reading.part(arguments, "locator"), drift)).text}


async def _wait_for(page: LivePage, arguments: JsonObject, drift: list[str]) -> JsonObject:
    limit = arguments.get("timeout_ms")
    timeout = limit if isinstance(limit, int) else rules.SETTLE_TIMEOUT_MS
    is_attached = arguments.get("state") == "attached"
    match, waited = await wait_for(page, reading.part(arguments, "locator"), timeout, attached=is_attached)
    drift += match.drift
    if not match.elements:
        message = (
            f"The element did not appear within {timeout} ms: {match.reason}" if page.has_scripts else match.reason
        )
        raise PrimitiveError("timeout", message, waited_ms=waited, url=page.url, **match.evidence)
    return {"matched": True, "candidate_count": len(match.elements), "waited_ms": waited}


async def _observe(page: LivePage, arguments: JsonObject, drift: list[str]) -> JsonObject:
    target = {name: arguments[name] for name in ("selector", "text_contains") if name in arguments}
    match = await locate(page, target or {"selector": "body > *"})
    described = [describe(element) for element in match.elements[:MAX_CANDIDATES]]
    return {"matches": described, "match_count": len(match.elements)}


async def _snapshot_text(page: LivePage, arguments: JsonObject, drift: list[str]) -> JsonObject:
    limit = arguments.get("max_chars", SNAPSHOT_CHARACTERS)
    elements = await page.find(str(arguments.get("selector", "body")))
    visible = next((element for element in elements if element.is_visible), None)
    if visible is None:
        raise PrimitiveError("target_not_found", "Nothing visible matches the selector.", url=page.url)
    text, limit = visible.text, limit if isinstance(limit, int) else SNAPSHOT_CHARACTERS
    return {"text": text[:limit], "truncated": len(text) > limit}


async def _hide_menu(page: LivePage, arguments: JsonObject, drift: list[str]) -> JsonObject:
    return {"hidden": True}  # no runtime of ours puts a menu over the page


async def _items(page: LivePage, arguments: JsonObject, drift: list[str]) -> JsonObject:
    """Read a list of elements and their fields: the first attribute that exists, or the text."""
    declared, scope = arguments["fields"], arguments.get("scope", {})
    assert isinstance(declared, list)
    assert isinstance(scope, Mapping)
    fields = [field for field in reading.objects(arguments, "fields") if isinstance(field.get("name"), str)]
    if not fields or len(fields) < len(declared):
        raise PrimitiveError("invalid_input", "The fields of browser.extract_elements must be objects with a name.")
    if unknown := sorted(scope.keys() - _SCOPE - {"root_strategy", "max_ancestor_depth"}):
        raise PrimitiveError("capability_unavailable", f"A scope cannot be found by {unknown[0][:50]!r}.")
    if scope.get("root_strategy", "scope") != "scope":
        raise PrimitiveError("capability_unavailable", 'The root_strategy of a scope must be "scope" here.')
    reads: dict[str, JsonObject] = {}
    for at, field in enumerate(fields):
        several = field.get("attributes")
        for choice, name in enumerate(several if isinstance(several, list) else [field.get("attribute", "text")]):
            read = {"property": "innerText", "trim": True} if name == "text" else {"attribute": str(name)}
            own = field.get("selector", ":scope")
            reads[f"{at}/{choice}"] = read if own == ":scope" else {**read, "selector": own}
    listed = {"id": "items", "selector": arguments["item_selector"], "many": True, "fields": reads}
    records: object = None
    equal, part = scope.get("text_equals"), scope.get("text_contains")
    roots = [scope["selector"]] if "selector" in scope else scope.get("selectors", ["body"] if scope else [])
    for root in roots if isinstance(roots, list) else []:
        within = {"id": "root", "selector": str(root), "fields": {"text": {"property": "innerText"}, "items": listed}}
        regions = (await page.extract([within])).records.get("root")
        fitting = (
            region
            for region in (regions if isinstance(regions, list) else [])
            if (equal is None or region["text"] == equal) and (part is None or str(part) in str(region["text"]))
        )
        if (region := next(fitting, None)) is not None:
            records = region["items"]
            break
    else:
        if scope:
            raise PrimitiveError("target_not_found", "No element matches the scope.", url=page.url)
        records = (await page.extract([listed])).records.get("items")
    items = []
    for record in records if isinstance(records, list) else []:
        item: dict[str, object] = {}
        for at, field in enumerate(fields):
            values = (value for name, value in record.items() if name.startswith(f"{at}/") and value not in (None, ""))
            item[str(field["name"])] = next(values, None)
        items.append(item)
    return {"items": items, "item_count": len(items)}


async def _sections(page: LivePage, arguments: JsonObject, drift: list[str]) -> JsonObject:
    """List the sections of a page with their headings."""
    selector, headings, items = (arguments.get(name) for name in ("selector", "heading_selector", "item_selector"))
    contained, most = arguments.get("text_contains"), arguments.get("max_sections", 50)
    longest = arguments.get("max_heading_length", 200)
    listed: list[JsonObject] = []
    total = 0
    for section in await page.find(str(selector or _SECTIONS)):
        if not section.is_visible or (isinstance(contained, str) and contained not in section.text):
            continue
        total += 1
        if len(listed) >= min(int(str(most)), 200):
            continue
        inside = await page.find(str(headings or _HEADINGS), within=section.ref)
        heading = next((element.text for element in inside if element.is_visible), section.name)
        entry: dict[str, object] = {"heading": heading[: int(str(longest))], "document_y": section.box.y}
        if isinstance(items, str):
            entry["item_count"] = len(await page.find(items, within=section.ref))
        listed.append(entry)
    return {"sections": listed, "section_count": total}


Read: TypeAlias = Callable[[LivePage, JsonObject, list[str]], Awaitable[JsonObject]]

_READERS: Final[Mapping[str, Read]] = {
    "page.info": _info,
    "dom.observe.visible": _observe,
    "dom.snapshot_text": _snapshot_text,
    "dom.list_sections": _sections,
    "locator.element_info": _element_info,
    "locator.text_content": _text_content,
    "locator.wait_for": _wait_for,
    "browser.extract_elements": _items,
    "overlay.menu.hide": _hide_menu,
}
"""Primitives that only look at a page, or change nothing on it. They add to the drift what differs from the map."""
HARMLESS: Final = _READERS.keys() | {"viewport.scroll", "pointer.move", "clipboard.read", "page.fetch"}
"""Primitives that change nothing of consequence."""

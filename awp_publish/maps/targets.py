"""Targets: the elements of a page that match what a map describes.

An element matches a target if all of the target's predicates hold. The AWP door has a different rule
(`browsing.targets`): it tries text, role and CSS one after the other.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from awp_publish.maps import reading, rules
from awp_publish.maps.live_page import FoundElement, LivePage, PrimitiveError
from awp_publish.schema import JsonObject

MAX_CANDIDATES: Final = 20
"""Elements that are listed if a target matches several."""
_PREDICATES: Final = ("role", "name", "text_equals", "text_contains")
_UNSUPPORTED: Final = ("xpath", "frame", "frame_selector", "marker")
Locator: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Match:
    """The elements that a target matches now. If there are none, `reason` says which predicate failed.

    `drift` lists differences between the page and what the map expects: a fallback selector matched, or a name differs.
    """

    elements: Sequence[FoundElement]
    reason: str = ""
    attempted: Sequence[JsonObject] = ()
    drift: Sequence[str] = ()

    @property
    def evidence(self) -> JsonObject:
        """Return what was tried, and the elements that were found."""
        elements = [describe(element) for element in self.elements[:MAX_CANDIDATES]]
        evidence: dict[str, object] = {"attempted": list(self.attempted)}
        if self.reason:
            evidence["reason"] = self.reason
        if elements:
            evidence |= {"candidate_count": len(self.elements), "candidates": elements}
        return evidence | ({"drift": list(self.drift)} if self.drift else {})


def describe(element: FoundElement) -> JsonObject:
    """Return an element's description for answers."""
    box = element.box
    return {
        "tag": element.tag,
        "role": min(element.roles, default=None),
        "name": element.name[:200],
        "text": element.text[:200],
        "enabled": element.is_enabled,
        "bounding_box": box.describe(),
        "clickable_center": box.describe_centre(),
    }


def another_address(target: JsonObject) -> str:
    """Return a message that a target is on other pages, and which addresses `browser.navigate` has to open."""
    addresses = " or ".join((*reading.texts(target, "url_contains"), *reading.texts(target, "url_matches")))
    return f"The page has another address. Use browser.navigate to open one that matches {addresses}."


async def locate(page: LivePage, target: Locator, *, attached: bool = False) -> Match:
    """Return the visible elements that match a target, and hidden ones too with `attached`.

    `selector`, `selectors` and `fallback_selectors` are tried in this order until one yields an element. A target that
    has only an address matches the page itself. The runtime checks the state of a target. Raises PrimitiveError
    `invalid_selector` if none of the selectors is valid, and `capability_unavailable`.
    """
    if unsupported := [name for name in _UNSUPPORTED if name in target]:
        message = f"Targets with {', '.join(unsupported)} cannot be resolved here."
        raise PrimitiveError("capability_unavailable", message)
    for name in (*_PREDICATES, "state"):
        if name in target and not isinstance(target[name], str):
            raise PrimitiveError("invalid_input", f"{name} of a target must be a string.")
    if not rules.url_fits(target, page.url):
        return Match((), another_address(target), ({"url": page.url},))
    candidates: list[tuple[str | None, bool]] = []
    for member in rules.SELECTORS:
        candidates += [(css, member == "fallback_selectors") for css in reading.texts(target, member) if css]
    has_selector = bool(candidates)
    if not has_selector:
        if not any(name in target for name in _PREDICATES):
            return Match(await page.find("body"))
        candidates = [(None, False)]
    role, name = _collapsed(target.get("role")).lower(), _collapsed(target.get("name")).casefold()
    equal = None if "text_equals" not in target else _collapsed(target["text_equals"])
    part = None if "text_contains" not in target else _collapsed(target["text_contains"])
    attempted: list[JsonObject] = []
    hidden = 0
    fault_of_selector: PrimitiveError | None = None
    for css, is_fallback in candidates:
        hint = part if equal is None else equal
        try:
            elements = await page.find(css, roles=frozenset((role,)) if role else None, text_contains=hint)
        except PrimitiveError as error:
            if error.code != "invalid_selector":
                raise
            fault_of_selector = error
            attempted.append({"selector": css, "error": error.message})
            continue
        fitting = [
            element
            for element in elements
            if (not role or role in element.roles)
            and (equal is None or element.text == equal)
            and (part is None or part in element.text)
        ]
        same_name = [element for element in fitting if name and _collapsed(element.name).casefold() == name]
        if same_name or (name and not has_selector):
            fitting = same_name
        if not has_selector and not role and not name:  # ancestors have the same text: keep the innermost elements
            refs = {element.ref for element in fitting}
            outer = {ref[:at] for ref in refs for at, sign in enumerate(ref) if sign == "/"}
            fitting = [element for element in fitting if element.ref not in outer]
        visible = fitting if attached else [element for element in fitting if element.is_visible]
        hidden += len(fitting) - len(visible)
        attempted.append({"selector": css, "matches": len(elements), "fitting": len(fitting), "visible": len(visible)})
        if visible:
            drift = [f"{css!r} was found in place of {candidates[0][0]!r}."] if is_fallback else []
            if name and not same_name:
                drift.append(f"No element is named {target['name']!r}; this one is named {visible[0].name[:100]!r}.")
            return await _retargeted(page, Match(visible, "", attempted, drift), target)
    if fault_of_selector is not None and all("error" in attempt for attempt in attempted):
        raise fault_of_selector
    reason = "Every matching element is hidden." if hidden else "No element matches the target."
    return Match((), reason, attempted)


async def locate_one(page: LivePage, target: Locator, drift: list[str]) -> FoundElement:
    """Return the one element that a target matches. Raises PrimitiveError `target_not_found` or `multiple_targets`."""
    match = await locate(page, target)
    if not match.elements:
        raise PrimitiveError("target_not_found", match.reason, target=dict(target), url=page.url, **match.evidence)
    if len(match.elements) > 1:
        message = f"{len(match.elements)} elements match the target; it must match exactly one."
        raise PrimitiveError("multiple_targets", message, target=dict(target), url=page.url, **match.evidence)
    drift += match.drift
    return match.elements[0]


async def _retargeted(page: LivePage, match: Match, target: Locator) -> Match:
    """Apply `closest`: the nearest match around each element, and within it the `selector` of an object."""
    closest = target.get("closest")
    if closest is None:
        return match
    inner = None
    if isinstance(closest, Mapping):
        inner, closest = closest.get("selector"), closest.get("closest", closest.get("selector"))
        inner = inner if inner is not closest else None
    if not isinstance(closest, str) or not (inner is None or isinstance(inner, str)):
        raise PrimitiveError("invalid_input", "closest of a target must be a selector, or an object of selectors.")
    reached: dict[str, FoundElement] = {}
    for element in match.elements:
        around = await page.closest(element.ref, closest)
        if around is None:
            continue
        elements = [around] if inner is None else await page.find(inner, within=around.ref)
        reached |= {element.ref: element for element in elements if element.is_visible}
    return replace(
        match,
        elements=tuple(reached.values()),
        reason="" if reached else "No element encloses the match of the target.",
    )


def _collapsed(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


POLL_SECONDS: Final = 0.05
_MAX_WAIT_MS: Final = 600_000


async def wait_for(
    page: LivePage, target: Mapping[str, object], timeout_ms: float, *, attached: bool = False
) -> tuple[Match, int]:
    """Wait until a target exists or the time is up. Returns the last match and the milliseconds waited.

    A page without scripts is read only once, because it does not change by itself.
    """
    began = time.monotonic()
    limit = min(max(0.0, timeout_ms), _MAX_WAIT_MS) / 1000
    while True:
        match = await locate(page, target, attached=attached)
        waited = time.monotonic() - began
        if match.elements or not page.has_scripts or waited >= limit:
            return match, round(waited * 1000) if page.has_scripts else 0
        await asyncio.sleep(min(POLL_SECONDS, limit - waited))


async def inspect(page: LivePage, target: JsonObject, assertions: JsonObject, drift: list[str]) -> JsonObject:
    """Check assertions about a target and return the evidence. Raises PrimitiveError for the first that fails.

    Assertions are `visible` (true or false), `enabled`, `text_contains`, `text_equals`, `count`; the default is
    `visible`.
    """
    names = {"visible", "enabled", "text_contains", "text_equals", "count"}
    if not assertions.keys() & names:
        assertions = {"visible": True}
    match = await locate(page, target, attached=assertions.get("visible") is False)
    drift += match.drift
    evidence: JsonObject = {"url": page.url, "target": dict(target), **match.evidence}
    visible = [element for element in match.elements if element.is_visible]
    if assertions.get("visible") is False:
        if visible:
            raise PrimitiveError(
                "assertion_failed", "The target is visible, but should not be.", assertion="visible", **evidence
            )
    elif not match.elements and assertions.get("count") != 0:
        raise PrimitiveError("target_not_found", match.reason, assertion="visible", **evidence)
    count = assertions.get("count")
    if isinstance(count, (int, float)) and not isinstance(count, bool) and len(match.elements) != count:
        message = f"The target matches {len(match.elements)} elements, not {count}."
        raise PrimitiveError("assertion_failed", message, assertion="count", **evidence)
    enabled = assertions.get("enabled")
    if isinstance(enabled, bool) and not any(element.is_enabled is enabled for element in match.elements):
        message = f"The target is {'disabled' if enabled else 'enabled'}."
        raise PrimitiveError("assertion_failed", message, assertion="enabled", **evidence)
    for name in ("text_contains", "text_equals"):
        text = assertions.get(name)
        if not isinstance(text, str):
            continue
        plain = " ".join(text.split())
        fits = (
            plain in element.text if name == "text_contains" else plain == element.text for element in match.elements
        )
        if not any(fits):
            verb = "contains" if name == "text_contains" else "has exactly"
            message = f"No matching element {verb} the text {text[:100]!r}."
            raise PrimitiveError("assertion_failed", message, assertion=name, **evidence)
    return evidence

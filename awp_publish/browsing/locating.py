"""The elements that a target of an actions.json means: all of its predicates together (V1, target).

The AWP door has another rule (`browsing.acting`): there text, role and CSS are tried one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from awp_publish.browsing.live_page import FoundElement, LivePage, PrimitiveError
from awp_publish.model import JsonObject
from awp_publish.workflows import rules

MAX_CANDIDATES: Final = 20
"""Elements that are told where a target means several."""

_PREDICATES: Final = ("role", "name", "text_equals", "text_contains")
_UNSUPPORTED: Final = ("xpath", "frame", "frame_selector", "marker")

Locator: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Match:
    """The elements that a target means now. Without any, `reason` says what did not hold.

    `drift` tells how the page differs from what the map's author saw: a fallback that won, another name.
    """

    elements: Sequence[FoundElement]
    reason: str = ""
    attempted: Sequence[JsonObject] = ()
    drift: Sequence[str] = ()

    @property
    def evidence(self) -> JsonObject:
        """Return what was tried, and the elements that were found."""
        found = [describe(element) for element in self.elements[:MAX_CANDIDATES]]
        evidence: dict[str, object] = {"attempted": list(self.attempted)}
        if self.reason:
            evidence["reason"] = self.reason
        if found:
            evidence |= {"candidate_count": len(self.elements), "candidates": found}
        return evidence | ({"drift": list(self.drift)} if self.drift else {})


def describe(element: FoundElement) -> JsonObject:
    """Return an element as answers show it."""
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
    """Say that a target is on other pages than this one, and how to get to one of them."""
    given = [target.get(name) for name in ("url_contains", "url_matches")]
    listed = [one for part in given for one in (part if isinstance(part, list) else [part]) if isinstance(one, str)]
    return f"The address is another. browser.navigate leads to one that fits {' or '.join(listed)}."


def predicate_fault(target: object) -> str | None:
    """Say what of a target cannot be used here, None for nothing."""
    if not isinstance(target, Mapping):
        return "A target is an object."
    unsupported = [name for name in _UNSUPPORTED if name in target]
    if unsupported:
        return f"Targets with {', '.join(unsupported)} cannot be resolved here."
    for name in (*_PREDICATES, "state"):
        if name in target and not isinstance(target[name], str):
            return f"{name} of a target is a text."
    return None


async def locate(page: LivePage, target: Locator, *, attached: bool = False) -> Match:
    """Return the visible elements that fit a target, hidden ones too with `attached`.

    `selector`, `selectors` and `fallback_selectors` are tried in this order; the first that leaves an element wins.
    A target that has only an address is the page itself. The state of a target is the runtime's to diagnose. Raises
    PrimitiveError `invalid_selector`, when none of the selectors is one, and `capability_unavailable`.
    """
    if (fault := predicate_fault(target)) is not None:
        code = "capability_unavailable" if any(name in target for name in _UNSUPPORTED) else "invalid_input"
        raise PrimitiveError(code, fault)
    if not rules.url_fits(target, page.url):
        return Match((), another_address(target), ({"url": page.url},))
    candidates: list[tuple[str | None, bool]] = []
    for member in rules.SELECTORS:
        given = target.get(member)
        texts = given if isinstance(given, list) else [] if given is None else [given]
        candidates += [(css, member == "fallback_selectors") for css in texts if isinstance(css, str) and css]
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
            found = await page.find(css, roles=frozenset((role,)) if role else None, text_contains=hint)
        except PrimitiveError as error:
            if error.code != "invalid_selector":
                raise
            fault_of_selector = error
            attempted.append({"selector": css, "error": error.message})
            continue
        fitting = [
            element
            for element in found
            if (not role or role in element.roles)
            and (equal is None or element.text == equal)
            and (part is None or part in element.text)
        ]
        same_name = [element for element in fitting if name and _collapsed(element.name).casefold() == name]
        if same_name or (name and not has_selector):
            fitting = same_name
        if not has_selector and not role and not name:  # a text is that of all that is around it too
            refs = {element.ref for element in fitting}
            outer = {ref[:at] for ref in refs for at, sign in enumerate(ref) if sign == "/"}
            fitting = [element for element in fitting if element.ref not in outer]
        visible = fitting if attached else [element for element in fitting if element.is_visible]
        hidden += len(fitting) - len(visible)
        attempted.append({"selector": css, "matches": len(found), "fitting": len(fitting), "visible": len(visible)})
        if visible:
            match = Match(visible, attempted=attempted)
            drift = [f"{css!r} was found in place of {candidates[0][0]!r}."] if is_fallback else []
            if name and not same_name:
                drift.append(f"No name is {target['name']!r}; it is {visible[0].name[:100]!r}.")
            match = replace(match, drift=drift)
            return await _retargeted(page, match, target)
    if fault_of_selector is not None and all("error" in one for one in attempted):
        raise fault_of_selector
    reason = "All that fits is hidden." if hidden else "Nothing on the page fits the target."
    return Match((), reason, attempted)


async def locate_one(page: LivePage, target: Locator) -> tuple[FoundElement, Match]:
    """Return the one element that a target means. Raises PrimitiveError `target_not_found` and `multiple_targets`."""
    match = await locate(page, target)
    if not match.elements:
        raise PrimitiveError("target_not_found", match.reason, target=dict(target), url=page.url, **match.evidence)
    if len(match.elements) > 1:
        message = f"{len(match.elements)} elements fit the target, and it is not clear which is meant."
        raise PrimitiveError("multiple_targets", message, target=dict(target), url=page.url, **match.evidence)
    return match.elements[0], match


async def _retargeted(page: LivePage, match: Match, target: Locator) -> Match:
    """Go from the matches to what `closest` names: the nearest around each, and in it the `selector` of an object."""
    closest = target.get("closest")
    if closest is None:
        return match
    inner = None
    if isinstance(closest, Mapping):
        inner, closest = closest.get("selector"), closest.get("closest", closest.get("selector"))
        inner = inner if inner is not closest else None
    if not isinstance(closest, str) or not (inner is None or isinstance(inner, str)):
        raise PrimitiveError("invalid_input", "closest of a target is a selector, or an object of selectors.")
    reached: dict[str, FoundElement] = {}
    for element in match.elements:
        around = await page.closest(element.ref, closest)
        if around is None:
            continue
        found = [around] if inner is None else await page.find(inner, within=around.ref)
        reached |= {one.ref: one for one in found if one.is_visible}
    return replace(match, elements=tuple(reached.values()), reason="" if reached else "Nothing is around what fits.")


def _collapsed(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""

"""The element that an intent means (paper 6.3).

Targets are searched in the page's full SOM, so that elements left out of a smaller one can be reached: by id, by role
and text, by a CSS selector, and then by the fallbacks. The draft's spellings are accepted too: `element_ref` for `ref`,
and `query` around text, role and css.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from awp_publish.browsing.errors import AwpError, refuse
from awp_publish.browsing.markup import Place, parent_of
from awp_publish.browsing.parameters import read_object, read_text
from awp_publish.browsing.som_elements import elements_of, regions_of
from awp_publish.pages.selection import Budget
from awp_publish.schema import JsonObject

if TYPE_CHECKING:
    from awp_publish.browsing.compiled import Compiled


CERTAIN: Final = 1.0
_WHOLE_TEXT: Final = 0.95
_SELECTOR: Final = 0.9
_PART_OF_TEXT: Final = 0.8
_ROLE_ONLY: Final = 0.6
_MAX_SHOWN: Final = 200
"""Characters of a target's text that are reported (MVP 5.4)."""


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A resolved target: the SOM element, its place in the page, and the confidence (0 to 1, paper 6.5)."""

    element: JsonObject
    place: Place
    confidence: float

    def describe(self) -> JsonObject:
        """Return the `resolved` member of an answer."""
        text = self.element.get("text")
        shortened = f"{text[:_MAX_SHOWN]}..." if isinstance(text, str) and len(text) > _MAX_SHOWN else text
        return {"element_id": self.element["id"], "role": self.element["role"], "text": shortened}

    def describe_certainty(self) -> JsonObject:
        """Return the `target_resolved` member of an answer (draft, Result Object)."""
        return {"element_id": self.element["id"], "confidence": self.confidence}


def resolve_target(
    target: JsonObject, compiled: Compiled, max_fallbacks: int, *, action: str = "", forms: bool = False
) -> ResolvedTarget:
    """Return the element that a target means, trying at most so many fallbacks.

    Of several elements with the same text, one that supports the `action` is preferred. With `forms` a form's region
    may be the target too: then the result is the first element in it.

    Raises:
        AwpError: NOT_FOUND with every strategy tried in its details; INVALID_REQUEST for an empty target.
    """
    attempts: list[dict[str, object]] = []
    # The targets still to be tried, the next one last, each with its name for messages. A fallback's own fallbacks come
    # before its siblings.
    waiting: list[tuple[object, str]] = [(target, "intent.target")]
    fallbacks = 0
    while waiting:
        query, name = waiting.pop()
        if not isinstance(query, Mapping):
            refuse(f"Invalid param: {name} must be an object or an array of objects", param=name)
        if fallbacks > max_fallbacks:
            refuse("intent.target has too many fallbacks", param="intent.target")
        where = f"{name}."
        query = {**(read_object(query, "query", where) or {}), **query}
        members = ("ref", "element_ref", "text", "role", "css")
        texts = (read_text(query, member, where) for member in members)
        ref, named, text, role, css = (sent if sent and sent.strip() else None for sent in texts)
        ref = ref or named
        resolved = None
        if ref is not None:
            attempts.append({"ref": ref, "strategy": "direct_lookup"})
            soms = (som for som in map(compiled.som, Budget) if ref in som.places)
            candidates = (
                (element, som) for som in soms for element in elements_of(som.document) if element["id"] == ref
            )
            resolved = next((ResolvedTarget(element, som.places[ref], CERTAIN) for element, som in candidates), None)
            if resolved is None and forms:
                resolved = _in_form(compiled, CERTAIN, ref=ref)
        if resolved is None and (text is not None or role is not None):
            attempts.append({"strategy": "semantic_query", "text": text, "role": role})
            resolved = _by_text_and_role(text, role, action, compiled, forms)
        if resolved is None and css is not None:
            try:
                places = compiled.tree.select(css)
                attempts.append({"strategy": "css", "css": css, "matches": len(places)})
            except ValueError as error:
                places = []
                attempts.append({"strategy": "css", "css": css, "reason": str(error)})
            resolved = next((near for place in places if (near := _nearest(place, compiled))), None)
        if resolved is not None:
            return resolved
        fallback = query.get("fallback")
        if fallback is not None:
            several = fallback if isinstance(fallback, list) else [fallback]
            waiting.extend((fallback, where + "fallback") for fallback in reversed(several))
        fallbacks += 1
    if not attempts:
        refuse("intent.target is empty: it needs ref, text, role, css or fallback", target=dict(target))
    details = {**attempts[0], "target": dict(target), "attempted": attempts}
    raise AwpError("NOT_FOUND", "Target element not found", details)


def _by_text_and_role(
    text: str | None, role: str | None, action: str, compiled: Compiled, forms: bool
) -> ResolvedTarget | None:
    """Return the best element with the role whose text or label contains the text, ignoring case.

    The best is the first that supports the action and has exactly this text, then one that supports the action, then
    one with exactly this text: of a paragraph and a link in it, the link. Between equals, a text comes before a label,
    and the confidence is shared: only their names tell them apart.
    """
    som = compiled.som(Budget.FULL)
    folded = None if text is None else " ".join(text.lower().split())
    candidates = [e for e in elements_of(som.document) if role in (None, e["role"]) and e["id"] in som.places]
    best: tuple[tuple[bool, bool], ResolvedTarget] | None = None
    equals = set[object]()
    for member in ("text", "label"):
        for element in candidates:
            found_text = " ".join(str(element.get(member) or "").lower().split())
            if folded is not None and (not found_text or folded not in found_text):
                continue
            is_whole = found_text == folded
            sure = _ROLE_ONLY if folded is None else _WHOLE_TEXT if is_whole else _PART_OF_TEXT
            actions = element.get("actions")
            rank = (isinstance(actions, list) and action in actions, is_whole)
            if best is None or rank > best[0]:
                best = rank, ResolvedTarget(element, som.places[str(element["id"])], sure)
                equals.clear()
            if rank == best[0]:
                attrs = element.get("attrs")
                equals.add(attrs.get("href") or element["id"] if isinstance(attrs, dict) else element["id"])
    if best is not None:
        return replace(best[1], confidence=round(best[1].confidence / len(equals), 2))
    if not forms or role not in (None, "form"):
        return None
    return _in_form(compiled, _PART_OF_TEXT, label=folded or "")


def _in_form(
    compiled: Compiled, confidence: float, *, ref: str | None = None, label: str = ""
) -> ResolvedTarget | None:
    """Return the first element of a form given by its region's id or a part of its label."""
    som = compiled.som(Budget.FULL)
    for region in regions_of(som.document):
        is_meant = region["id"] == ref if ref is not None else label in str(region.get("label") or "").lower()
        if region["role"] == "form" and is_meant:
            inside = (element for element in elements_of({"regions": [region]}) if element["id"] in som.places)
            places = ((element, som.places[str(element["id"])]) for element in inside)
            return next((ResolvedTarget(element, place, confidence) for element, place in places), None)
    return None


def _nearest(place: Place, compiled: Compiled) -> ResolvedTarget | None:
    """Return the element made from a place or its nearest ancestor, or else the last one inside of the place.

    The original place is kept, because a click there bubbles up from it.
    """
    mapped = place
    while mapped and mapped not in compiled.elements:
        mapped = parent_of(mapped)
    if not mapped:
        mapped = place = compiled.last_inside.get(place, "")
    element = compiled.by_id.get(compiled.elements.get(mapped, ""))
    return None if element is None else ResolvedTarget(element, place, _SELECTOR)

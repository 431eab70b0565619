"""The element that an intent means (paper 6.3): by its id, by role and text, by a CSS selector, else by the fallbacks.

Targets are looked for in the page's full SOM, so what a smaller one leaves out can be reached all the same. The
draft's spellings are understood too: `element_ref` for `ref`, and `query` around text, role and css.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from awp_publish.browsing.errors import AwpError, read_object, read_text, refuse
from awp_publish.browsing.markup import Place, parent_of
from awp_publish.browsing.page import Compiled, elements_of, regions_of
from awp_publish.model import JsonObject
from awp_publish.pages.som import Budget

CERTAIN: Final = 1.0
_WHOLE_TEXT: Final = 0.95
_SELECTOR: Final = 0.9
_PART_OF_TEXT: Final = 0.8
_ROLE_ONLY: Final = 0.6
_MAX_TEXT: Final = 200
"""Characters of a text that are said of a target (MVP 5.4)."""


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """A resolved target: the SOM element, its place in the page, and how sure that is (0 to 1, paper 6.5)."""

    element: JsonObject
    place: Place
    confidence: float

    def describe(self) -> JsonObject:
        """Return the `resolved` member of an answer."""
        text = self.element.get("text")
        shown = f"{text[:_MAX_TEXT]}..." if isinstance(text, str) and len(text) > _MAX_TEXT else text
        return {"element_id": self.element["id"], "role": self.element["role"], "text": shown}

    def describe_certainty(self) -> JsonObject:
        """Return the `target_resolved` member of an answer (draft, Result Object)."""
        return {"element_id": self.element["id"], "confidence": self.confidence}


def resolve_target(
    target: JsonObject, compiled: Compiled, max_fallbacks: int, *, action: str = "", forms: bool = False
) -> ResolvedTarget:
    """Return the element that a target means; at most so many fallbacks are tried.

    Of several that have the same text, one is meant that knows the `action`. With `forms` a form's region can be meant
    as well: the target is then the first element in it.

    Raises:
        AwpError: NOT_FOUND with every strategy tried in its details; INVALID_REQUEST for a target that says nothing.
    """
    attempts: list[dict[str, object]] = []
    # The targets still to be tried, the next one last, each with its name for messages. A fallback's own fallbacks come
    # before its siblings.
    waiting: list[tuple[object, str]] = [(target, "intent.target")]
    fallbacks = 0
    while waiting:
        wanted, name = waiting.pop()
        if not isinstance(wanted, Mapping):
            refuse(f"Invalid param: {name} must be an object or an array of objects", param=name)
        if fallbacks > max_fallbacks:
            refuse("intent.target has too many fallbacks", param="intent.target")
        where = f"{name}."
        wanted = {**(read_object(wanted, "query", where) or {}), **wanted}
        ref = read_text(wanted, "ref", where) or read_text(wanted, "element_ref", where)
        text, role, css = (read_text(wanted, member, where) for member in ("text", "role", "css"))
        found = None
        if ref is not None:
            attempts.append({"ref": ref, "strategy": "direct_lookup"})
            found = _by_id(ref, compiled, forms)
        if found is None and (text is not None or role is not None):
            attempts.append({"strategy": "semantic_query", "text": text, "role": role})
            found = _by_meaning(text, role, action, compiled, forms)
        if found is None and css is not None:
            try:
                places = compiled.tree.select(css)
                attempts.append({"strategy": "css", "css": css, "matches": len(places)})
            except ValueError as error:
                places = []
                attempts.append({"strategy": "css", "css": css, "reason": str(error)})
            found = next((near for place in places if (near := _nearest(place, compiled))), None)
        if found is not None:
            return found
        fallback = wanted.get("fallback")
        if fallback is not None:
            several = fallback if isinstance(fallback, list) else [fallback]
            waiting.extend((one, where + "fallback") for one in reversed(several))
        fallbacks += 1
    if not attempts:
        refuse("intent.target says nothing: it needs ref, text, role, css or fallback", target=dict(target))
    details = {**attempts[0], "target": dict(target), "attempted": attempts}
    raise AwpError("NOT_FOUND", "Target element not found", details)


def _by_id(ref: str, compiled: Compiled, forms: bool) -> ResolvedTarget | None:
    for budget in Budget:
        som = compiled.som(budget)
        found = next((element for element in elements_of(som.document) if element["id"] == ref), None)
        if found is not None and ref in som.places:
            return ResolvedTarget(found, som.places[ref], CERTAIN)
    return _in_form(lambda region: region["id"] == ref, CERTAIN, compiled) if forms else None


def _by_meaning(
    text: str | None, role: str | None, action: str, compiled: Compiled, forms: bool
) -> ResolvedTarget | None:
    """The best with the role whose text has the text in it, in any case; where no text has, whose label has.

    The first is best that knows the action and whose whole text it is, then one that knows the action, then one whose
    whole text it is: of a paragraph and the link in it the link.
    """
    som = compiled.som(Budget.FULL)
    wanted = None if text is None else " ".join(text.lower().split())
    candidates = [e for e in elements_of(som.document) if role in (None, e["role"]) and e["id"] in som.places]
    for member in ("text", "label"):
        best: tuple[tuple[bool, bool], ResolvedTarget] | None = None
        for element in candidates:
            said = " ".join(str(element.get(member) or "").lower().split())
            if wanted is not None and (not said or wanted not in said):
                continue
            is_whole = said == wanted
            sure = _ROLE_ONLY if wanted is None else _WHOLE_TEXT if is_whole else _PART_OF_TEXT
            known = element.get("actions")
            rank = (isinstance(known, list) and action in known, is_whole)
            if best is None or rank > best[0]:
                best = rank, ResolvedTarget(element, som.places[str(element["id"])], sure)
        if best is not None:
            return best[1]
    if not forms or role not in (None, "form"):
        return None
    return _in_form(lambda region: (wanted or "") in str(region.get("label") or "").lower(), _PART_OF_TEXT, compiled)


def _in_form(means: Callable[[JsonObject], bool], confidence: float, compiled: Compiled) -> ResolvedTarget | None:
    """The first element of a form that is meant as a whole."""
    som = compiled.som(Budget.FULL)
    for region in regions_of(som.document):
        if region["role"] == "form" and means(region):
            inside = (element for element in elements_of({"regions": [region]}) if element["id"] in som.places)
            places = ((element, som.places[str(element["id"])]) for element in inside)
            return next((ResolvedTarget(element, place, confidence) for element, place in places), None)
    return None


def _nearest(place: Place, compiled: Compiled) -> ResolvedTarget | None:
    """The element made of what is at a place, or around it, or else the last one in it.

    What is inside of an element stays what is meant: a click there goes up from there.
    """
    mapped = place
    while mapped and mapped not in compiled.elements:
        mapped = parent_of(mapped)
    if not mapped:
        mapped = place = compiled.last_inside.get(place, "")
    element = compiled.element(compiled.elements.get(mapped))
    return None if element is None else ResolvedTarget(element, place, _SELECTOR)

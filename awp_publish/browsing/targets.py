"""Which element an intent means (paper 6.3): by its id, by role and text, by a CSS selector, else by the fallbacks.

Targets are looked for in the page's full SOM, so what a smaller one leaves out can be reached all the same. The
draft's spellings are understood too: `element_ref` for `ref`, and `query` around text, role and css.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from awp_publish.browsing.errors import AwpError, missing, read_object, read_text, refuse
from awp_publish.browsing.markup import Place
from awp_publish.browsing.page import Compiled, elements_of, regions_of
from awp_publish.model import JsonObject
from awp_publish.pages.som import Budget

Attempt: TypeAlias = JsonObject

CERTAIN: Final = 1.0
_WHOLE_TEXT: Final = 0.95
_PART_OF_TEXT: Final = 0.8
_ROLE_ONLY: Final = 0.6
_SELECTOR: Final = 0.9
_LONGEST: Final = 200
"""Characters of a text that are said of a target (MVP 5.4)."""


@dataclass(frozen=True, slots=True)
class Target:
    """A resolved target: the SOM element, where it is in the page, and how sure that is (0 to 1, paper 6.5)."""

    element: JsonObject
    place: Place
    confidence: float

    def describe(self) -> JsonObject:
        """The `resolved` member of an answer."""
        text = self.element.get("text")
        shown = f"{text[:_LONGEST]}..." if isinstance(text, str) and len(text) > _LONGEST else text
        return {"element_id": self.element["id"], "role": self.element["role"], "text": shown}

    def describe_certainty(self) -> JsonObject:
        """The `target_resolved` member of an answer (draft, Result Object)."""
        return {"element_id": self.element["id"], "confidence": self.confidence}


@dataclass(slots=True)
class _Search:
    """The search for one target: the page, what was tried, and how many fallbacks may still be tried."""

    compiled: Compiled
    fallbacks: int
    forms: bool
    attempts: list[Attempt] = field(default_factory=list)


def resolve_target(wanted: JsonObject, compiled: Compiled, fallbacks: int, forms: bool = False) -> Target:
    """The element that a target means; at most so many fallbacks are tried.

    With `forms` a form's region can be meant as well: the target is then the first element in it.

    Raises:
        AwpError: NOT_FOUND with every strategy tried in its details; INVALID_REQUEST for a target that says nothing.
    """
    search = _Search(compiled, fallbacks, forms)
    found = _search(wanted, search, "intent.target.")
    if found is not None:
        return found
    if not search.attempts:
        refuse("intent.target says nothing: it needs ref, text, role, css or fallback", target=dict(wanted))
    raise AwpError(
        "NOT_FOUND",
        "Target element not found",
        {**search.attempts[0], "target": dict(wanted), "attempted": search.attempts},
    )


def _search(wanted: JsonObject, search: _Search, where: str) -> Target | None:
    query = read_object(wanted, "query", where) or {}
    said = {**query, **wanted}
    ref = read_text(said, "ref", where) or read_text(said, "element_ref", where)
    text, role, css = (read_text(said, name, where) for name in ("text", "role", "css"))
    found = _by_id(ref, search) if ref is not None else None
    if found is None and (text is not None or role is not None):
        found = _by_meaning(text, role, search)
    if found is None and css is not None:
        found = _by_selector(css, search)
    if found is None and said.get("fallback") is not None:
        found = _by_fallback(said["fallback"], search, where)
    return found


def _by_id(ref: str, search: _Search) -> Target | None:
    search.attempts.append({"ref": ref, "strategy": "direct_lookup"})
    for budget in Budget:
        som = search.compiled.som(budget)
        found = next((element for element in elements_of(som.document) if element["id"] == ref), None)
        if found is not None and ref in som.places:
            return Target(found, som.places[ref], CERTAIN)
    return _in_region(lambda region: region["id"] == ref, CERTAIN, search)


def _in_region(means: Callable[[JsonObject], bool], confidence: float, search: _Search) -> Target | None:
    """The first element of a form that is meant as a whole."""
    som = search.compiled.som(Budget.FULL)
    for region in regions_of(som.document) if search.forms else ():
        if region["role"] == "form" and means(region):
            inside = (element for element in elements_of({"regions": [region]}) if element["id"] in som.places)
            return next((Target(element, som.places[str(element["id"])], confidence) for element in inside), None)
    return None


def _by_meaning(text: str | None, role: str | None, search: _Search) -> Target | None:
    """The first with the role whose text has the text in it, in any case; where no text has, whose label has."""
    search.attempts.append({"strategy": "semantic_query", "text": text, "role": role})
    som = search.compiled.som(Budget.FULL)
    wanted = None if text is None else " ".join(text.lower().split())
    candidates = [e for e in elements_of(som.document) if role in (None, e["role"]) and e["id"] in som.places]
    for member in ("text", "label"):
        for element in candidates:
            said = str(element.get(member) or "").lower()
            if wanted is None or (wanted in said and said):
                sure = _ROLE_ONLY if wanted is None else _WHOLE_TEXT if said == wanted else _PART_OF_TEXT
                return Target(element, som.places[str(element["id"])], sure)
    if role not in (None, "form"):
        return None
    return _in_region(lambda region: (wanted or "") in str(region.get("label") or "").lower(), _PART_OF_TEXT, search)


def _by_selector(css: str, search: _Search) -> Target | None:
    try:
        places = search.compiled.tree.select(css)
    except ValueError as error:
        search.attempts.append({"strategy": "css", "css": css, "reason": str(error)})
        return None
    search.attempts.append({"strategy": "css", "css": css, "matches": len(places)})
    return next((found for place in places if (found := _nearest(place, search.compiled))), None)


def _nearest(place: Place, compiled: Compiled) -> Target | None:
    """The element made of what is at a place, or around it, or else the first one in it.

    What is inside of an element stays what is meant: a click there goes up from there.
    """
    around = (place[:end] for end in range(len(place), 0, -1) if place[end : end + 1] in ("", "/", "#"))
    mapped = next((outer for outer in around if outer in compiled.elements), None)
    if mapped is None:
        mapped = place = next((e for e in compiled.elements if e.startswith((place + "/", place + "#"))), "")
    element = compiled.element(compiled.elements.get(mapped))
    return None if element is None else Target(element, place, _SELECTOR)


def _by_fallback(fallback: object, search: _Search, where: str) -> Target | None:
    """One target or several (paper 6.3), each of which may have fallbacks of its own."""
    for wanted in fallback if isinstance(fallback, list) else [fallback]:
        if not isinstance(wanted, Mapping):
            refuse(f"Invalid param: {where}fallback must be an object or an array of objects", param=where + "fallback")
        if search.fallbacks == 0:
            refuse("intent.target has too many fallbacks", param="intent.target")
        search.fallbacks -= 1
        found = _search(wanted, search, where + "fallback.")
        if found is not None:
            return found
    return None


def require_target(intent: JsonObject) -> JsonObject:
    """The target of an intent, which must be an object."""
    target = intent.get("target")
    if target is None:
        raise missing("intent.target")
    if not isinstance(target, Mapping):
        refuse("Invalid param: intent.target must be an object", param="intent.target")
    return target

"""Steps on a page: resolving targets, running primitives, and running workflows made of them (V1).

The primitives that read and find are implemented here for every kind of page. An element matches a target if all of the
target's predicates hold. The AWP door has a different rule (`browsing.acting`): it tries text, role and CSS one after
the other.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final, TypeAlias

import orjson

from awp_publish.maps import rules
from awp_publish.maps.expressions import UNDEFINED, ExpressionError, fill
from awp_publish.maps.live_page import FoundElement, LivePage, PrimitiveError
from awp_publish.maps.primitives import PRIMITIVES, arguments_of
from awp_publish.schema import JsonObject, Validator, Violation, compile_schema, depth_exceeds

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
        found = [describe(element) for element in self.elements[:MAX_CANDIDATES]]
        evidence: dict[str, object] = {"attempted": list(self.attempted)}
        if self.reason:
            evidence["reason"] = self.reason
        if found:
            evidence |= {"candidate_count": len(self.elements), "candidates": found}
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
    wanted = " or ".join((*rules.texts(target, "url_contains"), *rules.texts(target, "url_matches")))
    return f"The page has another address. Use browser.navigate to open one that matches {wanted}."


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
            raise PrimitiveError("invalid_input", f"{name} of a target is a text.")
    if not rules.url_fits(target, page.url):
        return Match((), another_address(target), ({"url": page.url},))
    candidates: list[tuple[str | None, bool]] = []
    for member in rules.SELECTORS:
        candidates += [(css, member == "fallback_selectors") for css in rules.texts(target, member) if css]
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
        if not has_selector and not role and not name:  # ancestors have the same text: keep the innermost elements
            refs = {element.ref for element in fitting}
            outer = {ref[:at] for ref in refs for at, sign in enumerate(ref) if sign == "/"}
            fitting = [element for element in fitting if element.ref not in outer]
        visible = fitting if attached else [element for element in fitting if element.is_visible]
        hidden += len(fitting) - len(visible)
        attempted.append({"selector": css, "matches": len(found), "fitting": len(fitting), "visible": len(visible)})
        if visible:
            drift = [f"{css!r} was found in place of {candidates[0][0]!r}."] if is_fallback else []
            if name and not same_name:
                drift.append(f"No name is {target['name']!r}; it is {visible[0].name[:100]!r}.")
            return await _retargeted(page, Match(visible, "", attempted, drift), target)
    if fault_of_selector is not None and all("error" in one for one in attempted):
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
        raise PrimitiveError("invalid_input", "closest of a target is a selector, or an object of selectors.")
    reached: dict[str, FoundElement] = {}
    for element in match.elements:
        around = await page.closest(element.ref, closest)
        if around is None:
            continue
        found = [around] if inner is None else await page.find(inner, within=around.ref)
        reached |= {one.ref: one for one in found if one.is_visible}
    return replace(
        match,
        elements=tuple(reached.values()),
        reason="" if reached else "No element encloses the match of the target.",
    )


def _collapsed(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


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
        "overlay.menu.hide",
    )
)
"""Primitives that only look at a page, or change nothing on it."""
HARMLESS: Final = READING | {"viewport.scroll", "pointer.move", "clipboard.read", "page.fetch"}
"""Primitives that change nothing of consequence."""

SNAPSHOT_CHARACTERS: Final = 10_000
POLL_SECONDS: Final = 0.05
_MAX_WAIT_MS: Final = 600_000
_SECTIONS: Final = "section, article, [role='region']"
_SCOPE: Final = frozenset(("selector", "selectors", "text_equals", "text_contains"))
_HEADINGS: Final = "h1, h2, h3, h4, h5, h6, [role='heading']"


@lru_cache(maxsize=128)
def _validator(primitive: str, *, is_located: bool) -> Validator:
    schema = dict(arguments_of(primitive))
    if is_located and primitive in ("pointer.click", "pointer.double_click"):  # as existing maps do
        properties = {**schema["properties"], "locator": {"type": "object"}}  # type: ignore[dict-item]
        schema |= {"properties": properties, "required": ["locator"]}
    return compile_schema(schema)


def errors_of(wrong: Sequence[Violation]) -> list[JsonObject]:
    """Return violations of a schema in the form of evidence."""
    return [{"pointer": one.pointer, "detail": one.detail} for one in wrong]


def can_run(page: LivePage, primitive: str) -> bool:
    """Return True if a primitive can be run on a page."""
    return primitive in READING or primitive == "text.insert" or primitive in page.primitives


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
    if primitive == "overlay.menu.hide":  # no runtime of ours puts a menu over the page
        return {"hidden": True}
    if primitive == "page.info":
        return {"url": page.url, "title": await page.title()}
    if primitive == "locator.element_info":
        match = await locate(page, rules.part(arguments, "locator"))
        drift += match.drift
        if not match.elements:
            raise PrimitiveError("target_not_found", match.reason, url=page.url, **match.evidence)
        if len(match.elements) > 1:
            return {"ambiguous": True, **match.evidence}
        return {"ambiguous": False, "candidate_count": 1, **describe(match.elements[0])}
    if primitive == "locator.text_content":
        return {"text": (await locate_one(page, rules.part(arguments, "locator"), drift)).text}
    if primitive == "locator.wait_for":
        attached = arguments.get("state") == "attached"
        given = arguments.get("timeout_ms")
        timeout = given if isinstance(given, int) else rules.SETTLE_TIMEOUT_MS
        match, waited = await wait_for(page, rules.part(arguments, "locator"), timeout, attached=attached)
        drift += match.drift
        if not match.elements:
            message = f"It did not appear within {timeout} ms: {match.reason}" if page.has_scripts else match.reason
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
            ref = (await locate_one(page, rules.part(arguments, "target"), drift)).ref
        return await page.insert(ref, str(arguments["text"]), str(arguments.get("mode", "append")))
    scope = arguments.get("scope")
    if primitive == "viewport.scroll" and isinstance(scope, Mapping) and scope:
        match = await locate(page, {name: value for name, value in scope.items() if name in _SCOPE})
        if not match.elements:
            raise PrimitiveError("target_not_found", "No element matches the scope.", url=page.url)
        arguments = {**arguments, "ref": match.elements[0].ref}
    if "locator" in arguments:
        element = await locate_one(page, rules.part(arguments, "locator"), drift)
        rest = {name: value for name, value in arguments.items() if name != "locator"}
        arguments = {**rest, **element.box.describe_centre()}
    return await page.perform(primitive, arguments)


async def _items(page: LivePage, arguments: JsonObject) -> JsonObject:
    """Read a list of elements and their fields: the first attribute that exists, or the text."""
    given, scope = arguments["fields"], arguments.get("scope", {})
    assert isinstance(given, list)
    assert isinstance(scope, Mapping)
    fields = [one for one in rules.objects(arguments, "fields") if isinstance(one.get("name"), str)]
    if not fields or len(fields) < len(given):
        raise PrimitiveError("invalid_input", "The fields of browser.extract_elements are objects that have a name.")
    if unknown := sorted(scope.keys() - _SCOPE - {"root_strategy", "max_ancestor_depth"}):
        raise PrimitiveError("capability_unavailable", f"A scope cannot be found by {unknown[0][:50]!r}.")
    if scope.get("root_strategy", "scope") != "scope":
        raise PrimitiveError("capability_unavailable", 'The root_strategy of a scope is "scope" here.')
    reads: dict[str, JsonObject] = {}
    for at, asked in enumerate(fields):
        several = asked.get("attributes")
        for choice, name in enumerate(several if isinstance(several, list) else [asked.get("attribute", "text")]):
            read = {"property": "innerText", "trim": True} if name == "text" else {"attribute": str(name)}
            own = asked.get("selector", ":scope")
            reads[f"{at}/{choice}"] = read if own == ":scope" else {**read, "selector": own}
    listed = {"id": "items", "selector": arguments["item_selector"], "many": True, "fields": reads}
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
            raise PrimitiveError("target_not_found", "No element matches the scope.", url=page.url)
        found = (await page.extract([listed])).records.get("items")
    items = []
    for one in found if isinstance(found, list) else []:
        item: dict[str, object] = {}
        for at, asked in enumerate(fields):
            values = (value for name, value in one.items() if name.startswith(f"{at}/") and value not in (None, ""))
            item[str(asked["name"])] = next(values, None)
        items.append(item)
    return {"items": items, "item_count": len(items)}


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


Progress: TypeAlias = Callable[[str, bool], None]
"""Called before each step with its id and whether it may change something."""

RECOVERY: Final[Mapping[str, tuple[str, bool, str]]] = {
    "overlay_interference": (
        "mutation",
        True,
        "Close whatever covers the page, return to a known state, then try the step again.",
    ),
    "postcondition_failed": (
        "postcondition",
        False,
        "Read the state of the page before trying again: the action may have taken effect in part.",
    ),
    "control_not_ready": (
        "readiness",
        True,
        "Wait for the control, then try again from the last verified state.",
    ),
    "target_not_found": (
        "precondition",
        False,
        "Return to a known state, check that the target exists, and only then try again.",
    ),
}
"""Classes of failures: the state that failed, whether a retry may help, and what a caller can safely do."""

WORKFLOW_CODES: Final[Mapping[str, str]] = {
    "workflow_step_failed": "a step failed; `cause` has the code of its primitive or expression",
    "workflow_loop_input_invalid": "`for_each` did not return an array",
    "workflow_retry_exhausted": "`retry_until` did not hold after `max_attempts` attempts; `on_error` cannot catch it",
    "workflow_retry_not_executed": "`retry_until` made no attempt",
    "workflow_output_failed": "`output` could not be evaluated; `cause` has the code of the expression",
    "workflow_output_too_large": "the output has more than 32,000 bytes",
    "partial_expression_unsupported": "a slot is not the whole text",
    "disallowed_expression_function": "`$eval`, `$random`, `$now` or `$millis` is named",
    "invalid_expression": "the expression cannot be read",
    "expression_evaluation_failed": "the expression failed, or took longer than 50 ms",
    "expression_output_too_large": "an expression returned more than 16,000 bytes",
}
"""Codes of workflows and expressions, in the evidence of a failure."""

_FATAL: Final = ("workflow_retry_exhausted", "transport_failed")
"""Codes of errors after which a workflow ends even if the step may fail."""
_COVERED: Final = re.compile(r"overlay|occlud|intercept", re.IGNORECASE)
_CONTROL: Final = re.compile(r"find|verify|ready|badge|button|control", re.IGNORECASE)


class WorkflowFailure(Exception):
    """A workflow failed. `error` has the form of the published runtime's; `cause` is what happened in the step."""

    def __init__(self, code: str, message: str, *, cause: JsonObject | None = None, **error: object) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.cause = code, message, cause
        self.error: JsonObject = {"code": code, **error, "message": message, "cause": cause}


@dataclass(slots=True)
class Trace:
    """The progress of a call: summaries of completed steps, the current step, and differences (drift) found."""

    steps: list[dict[str, object]] = field(default_factory=list)
    current: str | None = None
    has_changed: bool = False
    drift: list[str] = field(default_factory=list)
    on_step: Progress | None = None

    def begin(self, step_id: str, primitive: str) -> None:
        """Record that a step begins."""
        changes = primitive not in HARMLESS
        self.current, self.has_changed = step_id, self.has_changed or changes
        if self.on_step is not None:
            self.on_step(step_id, changes)

    def end(
        self,
        step: JsonObject,
        began: float,
        *,
        ok: bool = True,
        skipped: bool = False,
        settle: JsonObject | None = None,
    ) -> None:
        """Record how a step ended."""
        summary = {"id": step.get("id"), "primitive": step.get("primitive", step.get("type")), "ok": ok}
        summary |= {"skipped": skipped, "duration_ms": round((time.monotonic() - began) * 1000)}
        self.steps.append(summary | ({} if settle is None else {"settle": settle}))
        self.current = None


class _Skipped(Exception):
    """The condition of a step does not hold."""


def _failed(step: JsonObject, cause: JsonObject) -> WorkflowFailure:
    """Return the failure of a step, with its class (`RECOVERY`)."""
    code, step_id = str(cause.get("code", "")), str(step.get("id", ""))
    is_looking = str(step.get("primitive", "")).startswith("locator.") or _CONTROL.search(step_id) is not None
    named = "target_not_found"
    if _COVERED.search(f"{code} {cause.get('message', '')}"):
        named = "overlay_interference"
    elif code == "postcondition_failed" or "postcondition" in step_id.lower():
        named = "postcondition_failed"
    elif code.startswith("workflow_retry_") or code in ("timeout", "target_not_ready") or is_looking:
        named = "control_not_ready"
    state, retryable, recovery = RECOVERY[named]
    return WorkflowFailure(
        code if code.startswith("workflow_") else "workflow_step_failed",
        str(cause.get("message") or f"The step {step.get('id')} failed."),
        cause=cause,
        step_id=step.get("id"),
        primitive=step.get("primitive"),
        failure_class=named,
        failed_state=state,
        retryable=retryable,
        recoverable=named != "target_not_found" or code in ("target_not_found", "navigation_failed"),
        safe_recovery=recovery,
    )


class _Run:
    """One run of a workflow."""

    def __init__(self, page: LivePage, arguments: JsonObject, trace: Trace) -> None:
        self.page, self.trace = page, trace
        self.document: dict[str, object] = {"input": arguments, "steps": {}, "item": None, "index": None}

    def value(self, slot: object, **names: object) -> object:
        """Return a value with its slots filled. Raises ExpressionError."""
        value = fill(slot, {**self.document, **names}, rules.MAX_EXPRESSION_BYTES)
        return None if value is UNDEFINED else value

    async def once(self, primitive: object, arguments: object, **names: object) -> dict[str, object]:
        """Run a primitive: `{ok, output}`, or `{ok, error}`."""
        await asyncio.sleep(0)  # a page in process never awaits: yield to other tasks and timeouts
        filled: object = None
        try:
            filled = self.value(arguments if arguments is not None else {}, **names)
            output = await run_primitive(self.page, str(primitive), filled, self.trace.drift)
            if depth_exceeds(output, rules.MAX_DEPTH):
                raise PrimitiveError("invalid_result", f"The answer is nested more than {rules.MAX_DEPTH} deep.")
            return {"ok": True, "output": output}
        except PrimitiveError as error:
            cause = {"code": error.code, "message": error.message, **error.evidence}
            if error.code == "invalid_input" and isinstance(filled, Mapping) and isinstance(arguments, Mapping):
                lost = {name: slot for name, slot in arguments.items() if name not in filled}
                if lost:
                    cause["message"] = f"{error.message}; {', '.join(map(str, lost.values()))} has no value"[:1000]
                    cause["undefined"] = lost
            return {"ok": False, "error": cause}
        except ExpressionError as error:
            return {"ok": False, "error": {"code": error.code, "message": error.message}}

    async def settle(self, step: JsonObject) -> JsonObject | None:
        """Wait according to `settle_after`. A timeout is not a failure: settling is only pacing (V1, workflow)."""
        given = step.get("settle_after")
        if not isinstance(given, Mapping):
            return None
        delay = given.get("delay_ms")
        if isinstance(delay, (int, float)):
            if self.page.has_scripts:
                await asyncio.sleep(delay / 1000)
            return {"ok": True, "mode": "delay", "delay_ms": delay, "waited_ms": delay if self.page.has_scripts else 0}
        timeout = given.get("timeout_ms")
        try:
            locator = self.value(given.get("locator"))
            match, waited = await wait_for(
                self.page,
                locator if isinstance(locator, Mapping) else {},
                timeout if isinstance(timeout, (int, float)) else rules.SETTLE_TIMEOUT_MS,
                attached=given.get("state") == "attached",
            )
        except (PrimitiveError, ExpressionError) as error:
            return {"ok": False, "mode": "locator", "reason": error.code, "waited_ms": 0}
        if not match.elements:
            return {"ok": False, "mode": "locator", "reason": "timeout", "waited_ms": waited}
        return {"ok": True, "mode": "locator", "waited_ms": waited}

    async def step(self, step: JsonObject) -> dict[str, object]:
        """Run a step, with its loop or its attempts. Raises _Skipped, ExpressionError and WorkflowFailure."""
        if "when" in step and not self.value(step["when"]):
            raise _Skipped
        primitive, arguments = step.get("primitive"), step.get("args")
        continues = step.get("on_error") == "continue"
        if "for_each" in step:
            items = self.value(step["for_each"])
            if not isinstance(items, list):
                message = "for_each did not return an array. Write $append([], ...) where there may be only one item."
                raise _failed(step, {"code": "workflow_loop_input_invalid", "message": message})
            most = _bound(step.get("max_items"), rules.MAX_ITEMS)
            results: list[dict[str, object]] = []
            for index, item in enumerate(items[:most]):
                results.append(await self.once(primitive, arguments, item=item, index=index))
                if not results[-1]["ok"] and not continues:
                    return {"ok": False, "items": results, "error": results[-1]["error"]}
            cut = {"truncated": True, "total": len(items)} if len(items) > most else {}
            return {"ok": all(result["ok"] for result in results), "items": results, **cut}
        if "retry_until" not in step:
            return await self.once(primitive, arguments)
        most = _bound(step.get("max_attempts"), rules.MAX_ATTEMPTS)
        attempts: list[dict[str, object]] = []
        steps = self.document["steps"]
        assert isinstance(steps, dict)
        result: dict[str, object] = {
            "ok": False,
            "error": {"code": "workflow_retry_not_executed", "message": "No try."},
        }
        for attempt in range(most):
            result = await self.once(primitive, arguments, index=attempt)
            attempts.append(result)
            steps[str(step.get("id"))] = result
            if not result["ok"] and not continues:
                return result | {"attempts": attempts}
            if self.value(step["retry_until"], index=attempt):
                return result | {"attempts": attempts}
            after = step.get("after_each")
            if attempt < most - 1 and isinstance(after, Mapping):
                between = await self.once(after.get("primitive"), after.get("args"), index=attempt)
                attempts.append(between)
                if not between["ok"] and not continues:
                    return between | {"attempts": attempts}
        error = {
            "code": "workflow_retry_exhausted",
            "message": f"retry_until of the step {step.get('id')} did not hold after {most} attempts.",
            "cause": result.get("error"),
        }
        return {**result, "ok": False, "attempts": attempts, "error": error}


def _bound(given: object, limit: int) -> int:
    is_number = isinstance(given, (int, float)) and not isinstance(given, bool)
    return max(1, min(int(given), limit)) if is_number else 1  # type: ignore[call-overload]


async def run_workflow(page: LivePage, workflow: JsonObject, arguments: JsonObject, trace: Trace) -> object:
    """Run a workflow of a checked map. Returns its output, or `{steps}` without one. Raises WorkflowFailure."""
    run = _Run(page, arguments, trace)
    results = run.document["steps"]
    assert isinstance(results, dict)
    for step in rules.objects(workflow, "steps")[: rules.MAX_STEPS]:
        step_id, began = str(step.get("id")), time.monotonic()
        trace.begin(step_id, str(step.get("primitive")))
        try:
            result = await run.step(step)
        except _Skipped:
            results[step_id] = {"ok": True, "skipped": True}
            trace.end(step, began, skipped=True)
            continue
        except ExpressionError as error:
            result = {"ok": False, "error": {"code": error.code, "message": error.message}}
        except WorkflowFailure:
            trace.end(step, began, ok=False)
            raise
        except asyncio.CancelledError:
            trace.steps.append({"id": step_id, "primitive": step.get("primitive"), "ok": False, "skipped": False})
            raise
        results[step_id] = result
        failure = result.get("error")
        cause: JsonObject = failure if isinstance(failure, Mapping) else {}
        if not result["ok"] and (step.get("on_error") != "continue" or cause.get("code") in _FATAL):
            trace.end(step, began, ok=False)
            raise _failed(step, cause)
        settle = await run.settle(step) if result["ok"] else None
        trace.end(step, began, ok=bool(result["ok"]), settle=settle)
    if "output" not in workflow:
        value: object = {"steps": results}
    else:
        try:
            value = run.value(workflow["output"])
        except ExpressionError as error:
            reason = {"code": error.code, "message": error.message}
            code = error.code if error.code == "expression_output_too_large" else "workflow_output_failed"
            raise WorkflowFailure(code, f"The output failed: {error.message}", cause=reason) from error
    size = len(orjson.dumps(value))
    if size > rules.MAX_WORKFLOW_BYTES:
        message = f"The output has {size} bytes of JSON; {rules.MAX_WORKFLOW_BYTES} are allowed."
        raise WorkflowFailure("workflow_output_too_large", message)
    return value


# --- The steps of x_actions.execution ---


async def run_steps(page: LivePage, steps: Sequence[object], arguments: JsonObject, trace: Trace) -> JsonObject:
    """Run the steps of `x_actions.execution`. Returns `ok` and the extracted values. Raises PrimitiveError.

    The error's evidence names the failed step as `step_id`.
    """
    output: dict[str, object] = {"ok": True}
    for number, given in enumerate(steps):
        step: JsonObject = given if isinstance(given, Mapping) else {}
        step_id, kind, began = str(step.get("id", f"step_{number + 1}")), str(step.get("type")), time.monotonic()
        trace.begin(step_id, kind if kind in ("type", "click") else "page.info")
        try:
            skipped = await _execute(page, kind, step, arguments, output, trace)
        except PrimitiveError as error:
            trace.end({**step, "id": step_id}, began, ok=False)
            error.evidence = {"step_id": step_id, **error.evidence}
            raise
        except asyncio.CancelledError:
            trace.steps.append({"id": step_id, "primitive": kind, "ok": False, "skipped": False})
            raise
        trace.end({**step, "id": step_id}, began, skipped=skipped)
    return output


async def _execute(
    page: LivePage, kind: str, step: JsonObject, arguments: JsonObject, output: dict[str, object], trace: Trace
) -> bool:
    """Run one step. Returns True if it was skipped."""
    if kind not in rules.STEP_TYPES:
        raise PrimitiveError("capability_unavailable", f"Steps of the type {kind!r} are not known.", capability=kind)
    target = step.get("until", step.get("target")) if kind == "wait" else step.get("target")
    if not isinstance(target, Mapping):
        raise PrimitiveError("target_not_found", f"The {kind} step has no target.")
    if kind == "wait":
        given = step.get("timeout_ms")
        timeout = given if isinstance(given, (int, float)) else rules.SETTLE_TIMEOUT_MS
        match, waited = await wait_for(page, target, timeout, attached=target.get("visible") is False)
        trace.drift += match.drift
        if not match.elements:
            message = f"What the step waits for did not appear: {match.reason}"
            raise PrimitiveError("timeout", message, waited_ms=waited, url=page.url, **match.evidence)
        return False
    if kind == "inspect":
        wanted = step.get("assert")
        await inspect(page, target, wanted if isinstance(wanted, Mapping) else {"visible": True}, trace.drift)
        return False
    text = ""
    if kind == "type":
        name = step.get("value_from")
        value: object = arguments if isinstance(name, str) else step.get("value")
        for part in name.removeprefix("input.").split(".") if isinstance(name, str) else ():
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:  # an optional argument was not given
            return True
        if not isinstance(value, (str, int, float)):
            raise PrimitiveError("invalid_input", f"{name} is not text that can be typed.")
        text = str(value).lower() if isinstance(value, bool) else str(value)
    element = await locate_one(page, target, trace.drift)
    if kind == "type":
        await page.insert(element.ref, text, "append" if step.get("mode") == "append" else "replace")
    elif kind == "click":
        await page.perform("pointer.click", element.box.describe_centre())
    else:
        name = step.get("as")
        output[name if isinstance(name, str) else str(step.get("id"))] = element.text
    return False


async def inspect(page: LivePage, target: JsonObject, wanted: JsonObject, drift: list[str]) -> JsonObject:
    """Check assertions about a target and return the evidence. Raises PrimitiveError for the first that fails.

    Assertions are `visible` (true or false), `enabled`, `text_contains`, `text_equals`, `count`; the default is
    `visible`.
    """
    known = {"visible", "enabled", "text_contains", "text_equals", "count"}
    if not wanted.keys() & known:
        wanted = {"visible": True}
    match = await locate(page, target, attached=wanted.get("visible") is False)
    drift += match.drift
    evidence: JsonObject = {"url": page.url, "target": dict(target), **match.evidence}
    shown = [element for element in match.elements if element.is_visible]
    if wanted.get("visible") is False:
        if shown:
            raise PrimitiveError(
                "assertion_failed", "It is visible, but should not be.", assertion="visible", **evidence
            )
    elif not match.elements and wanted.get("count") != 0:
        raise PrimitiveError("target_not_found", match.reason, assertion="visible", **evidence)
    count = wanted.get("count")
    if isinstance(count, (int, float)) and not isinstance(count, bool) and len(match.elements) != count:
        message = f"There are {len(match.elements)}; expected {count}."
        raise PrimitiveError("assertion_failed", message, assertion="count", **evidence)
    enabled = wanted.get("enabled")
    if isinstance(enabled, bool) and not any(element.is_enabled is enabled for element in match.elements):
        message = f"It is {'disabled' if enabled else 'enabled'}."
        raise PrimitiveError("assertion_failed", message, assertion="enabled", **evidence)
    for name in ("text_contains", "text_equals"):
        text = wanted.get(name)
        if not isinstance(text, str):
            continue
        plain = " ".join(text.split())
        fits = (plain in one.text if name == "text_contains" else plain == one.text for one in match.elements)
        if not any(fits):
            raise PrimitiveError("assertion_failed", f"The text is not {text[:100]!r}.", assertion=name, **evidence)
    return evidence

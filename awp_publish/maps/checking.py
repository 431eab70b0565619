"""Checks of a map: probes of the present page, with evidence (V1, checks)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias
from urllib.parse import urljoin

from awp_publish.maps import reading, rules
from awp_publish.maps.composed import ComposedMap
from awp_publish.maps.failures import RuntimeFailure, code_of_primitive
from awp_publish.maps.live_page import LivePage, PrimitiveError
from awp_publish.maps.performing import run_primitive
from awp_publish.maps.states import States
from awp_publish.maps.targets import describe, inspect
from awp_publish.maps.trace import ToolResult
from awp_publish.schema import JsonObject

MAX_EVIDENCE: Final = 20_000
"""Characters of a document that are stored as the evidence of a check."""

CallTool: TypeAlias = Callable[[str, object], Awaitable[ToolResult]]


class MapChecks:
    """Runs the checks of a map on a page; `call` runs its tools."""

    def __init__(
        self, action_map: ComposedMap, page: LivePage, states: States, call: CallTool, observed: Callable[[], str]
    ) -> None:
        self._map, self._page, self._states, self._call, self._observed = action_map, page, states, call, observed

    async def run(self, ids: Sequence[str] | None = None) -> Sequence[JsonObject]:
        """Run checks of the map, by default all, and return their results with evidence.

        `status` is `passed`, `failed`, `error` (it could not run) or `skipped` (it is for another state).
        """
        return [
            await self._check(check)
            for check in self._map.objects("checks")
            if ids is None or check.get("id") in set(ids)
        ]

    async def _check(self, check: JsonObject) -> JsonObject:
        evidence: dict[str, object] = {}
        error: dict[str, object] | None = None
        status, drift = "passed", list[str]()
        state, attachment = check.get("state"), check.get("attachment")
        try:
            if check.get("setup"):  # it navigates by itself
                pass
            elif not rules.url_fits(reading.part(check, "target"), self._page.url):
                evidence["reason"] = "The check is for another address."
            elif isinstance(state, str) and (await self._states.diagnose(state))["holds"] is False:
                evidence["reason"] = f"The check is about the state {state}, which does not hold."
            elif isinstance(attachment, str) and attachment not in await self._page.attached():
                evidence["reason"] = f"The check is about the attachment {attachment}, which is not attached."
            if evidence:
                status = "skipped"
            else:
                evidence["assertions"] = await self._assert(check, drift)
        except PrimitiveError as failed:
            is_drift = failed.code in ("target_not_found", "assertion_failed", "multiple_targets", "timeout")
            status = "failed" if is_drift else "error"
            facts = {name: value for name, value in failed.evidence.items() if name != "candidates"}
            code = "drift_detected" if is_drift else code_of_primitive(failed)
            error = {"code": code, "message": failed.message, "evidence": {"code": failed.code, **facts}}
        except RuntimeFailure as failed:
            status = "error" if failed.code in ("runtime_not_ready", "capability_unavailable") else "failed"
            error = dict(failed.describe())
        if drift:
            evidence["drift"] = drift
        failing = reading.part(check, "on_fail")
        if error is not None:
            error |= {"severity": check.get("severity", "major"), "recoverable": True}
            evidence |= await self._stored(failing)
        result: dict[str, object] = {
            "check_id": check.get("id"),
            "status": status,
            "observed_at": self._observed(),
            "url": self._page.url,
            "severity": check.get("severity", "major"),
            "evidence": evidence,
        }
        if error is not None:
            result["error"] = error
            if "contingency" in failing:
                result["contingency"] = failing["contingency"]
        return result

    async def _assert(self, check: JsonObject, drift: list[str]) -> Sequence[JsonObject]:
        """Run the setup, the steps and the assertions of a check, and return the evidence of each."""
        collected: list[JsonObject] = []
        output: object = None
        for section in ("setup", "steps"):
            for step in reading.objects(check, section):
                if step.get("type") == "navigate":
                    # Relative to the site, not to the present page: its surface, otherwise the root of the page's
                    # origin.
                    origin = str(reading.part(self._map.document, "surface").get("origin"))
                    home = f"{origin.rstrip('/')}/" if origin.startswith(("http://", "https://")) else None
                    arguments = {"url": urljoin(home or urljoin(self._page.url, "/"), str(step.get("url", "")))}
                    collected.append(await run_primitive(self._page, "browser.navigate", arguments, drift))
                elif step.get("type") == "call":
                    called = await self._call(str(step.get("tool")), step.get("arguments", {}))
                    output = called.output
                    drift += called.drift
                    collected.append({"tool": step.get("tool"), "steps": list(called.steps)})
                else:
                    message = f"Steps of the type {str(step.get('type'))[:50]!r} are not known in checks."
                    raise PrimitiveError("capability_unavailable", message)
        assertions = reading.objects(check, "assertions")
        if isinstance(check.get("target"), Mapping) and not assertions:
            assertions = [{"target": check["target"]}]
        for assertion in assertions:
            target = reading.part(assertion, "target")
            state = target.get("state")
            if isinstance(state, str) and (await self._states.diagnose(state))["holds"] is False:
                message = f"The state {state} does not hold."
                raise PrimitiveError("assertion_failed", message, assertion="state", state=state)
            evidence = await inspect(self._page, target, assertion, drift)
            collected.append({name: value for name, value in evidence.items() if name != "candidates"})
        members = output if isinstance(output, Mapping) else {}
        for name, value in reading.part(check, "expected_result").items():  # `..._contains` compares parts of texts
            actual = members.get(name.removesuffix("_contains")) if name not in members else members[name]
            is_part = name.endswith("_contains") and name not in members
            if not (str(value) in str(actual) if is_part else actual == value):
                message = f"The result has {str(actual)[:100]!r} as {name}, and {str(value)[:100]!r} is expected."
                raise PrimitiveError("assertion_failed", message, assertion="expected_result", member=name)
        return collected

    async def _stored(self, failing: JsonObject) -> dict[str, object]:
        """Return the evidence that a failed check stores, and which of its alternate selectors match."""
        kinds, stored = reading.texts(failing, "store_evidence"), dict[str, object]()
        if "url" in kinds:
            stored["url"] = self._page.url
        try:
            if "dom_snapshot" in kinds:
                stored["dom_snapshot"] = (await self._page.html())[:MAX_EVIDENCE]
            alternates = {}
            for css in reading.texts(failing, "alternate_selectors"):
                elements = [element for element in await self._page.find(css) if element.is_visible]
                alternates[css] = [describe(element) for element in elements[:3]]
            if alternates:
                stored["alternate_selectors"] = alternates
        except PrimitiveError as error:
            stored["incomplete"] = error.message
        return stored

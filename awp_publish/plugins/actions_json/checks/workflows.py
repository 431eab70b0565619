"""Checks of workflows and their steps (V1, workflow).

Most maps have hundreds of correct steps: a first pass looks at them without tracking their places.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from awp_publish.checks.engine import ERROR, WARNING, Finding, JsonObject, finding, shown
from awp_publish.checks.places import arrays, objects, strings
from awp_publish.maps import rules
from awp_publish.maps.expressions import has_slots
from awp_publish.plugins.actions_json.checks.places import STEPS, WORKFLOWS
from awp_publish.plugins.actions_json.checks.specification import check, schema_row
from awp_publish.schema.pointers import child

Step: TypeAlias = Mapping[str, object]


def all_steps(document: JsonObject) -> list[Step]:
    """Return the steps of all workflows."""
    tools = document.get("tools")
    workflows = [tool.get("workflow") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    listed = [workflow.get("steps") for workflow in workflows if isinstance(workflow, dict)]
    return [step for steps in listed if isinstance(steps, list) for step in steps if isinstance(step, dict)]


@check("actions-workflow", ERROR, "workflow", hint='Write version 1, expression_language "jsonata" and known keys.')
def bad_workflows(document: JsonObject) -> Iterator[Finding]:
    """A workflow has the version 1, the language jsonata, at most 25 steps, and no other keys than the known ones."""
    for pointer, workflow in objects(document, WORKFLOWS):
        for name in workflow.keys() - rules.WORKFLOW_KEYS:
            yield finding(child(pointer, name), f"A workflow has no key {shown(name)}.")
        version, language, steps = (workflow.get(name) for name in ("version", "expression_language", "steps"))
        if "version" in workflow and (isinstance(version, bool) or version != 1):
            yield finding(f"{pointer}/version", f"The version is {shown(version)}.")
        if "expression_language" in workflow and language != "jsonata":
            yield finding(f"{pointer}/expression_language", f"The language is {shown(language)}.")
        if isinstance(steps, list) and len(steps) > rules.MAX_STEPS:
            yield finding(f"{pointer}/steps", f"There are {len(steps)} steps; {rules.MAX_STEPS} are allowed.")


@check("actions-no-steps", WARNING, "workflow", hint="Add a step, or leave the workflow out.")
def empty_workflows(document: JsonObject) -> Iterator[Finding]:
    """A workflow has steps."""
    for pointer, steps in arrays(document, f"{WORKFLOWS}/steps"):
        if not steps:
            yield finding(pointer, "The workflow has no steps.")


@check("actions-step", ERROR, "workflow", hint="Correct the step; the set of its keys is closed.")
def bad_steps(document: JsonObject) -> Iterator[Finding]:
    """Steps have known keys, an id without dots, and bounds for what they repeat."""
    if all(step.keys() <= _PLAIN_STEP and rules.is_step_id(step.get("id")) for step in all_steps(document)):
        return
    for pointer, step in objects(document, STEPS):
        identifier = step.get("id")
        for name in step.keys() - rules.STEP_KEYS:
            yield finding(child(pointer, name), f"The step {shown(identifier)} has no key {shown(name)}.")
        if isinstance(identifier, str) and not rules.is_step_id(identifier):
            yield finding(f"{pointer}/id", f"{shown(identifier)} is not the id of a step: letters, digits, _ and -.")
        for repeating, bound in (("for_each", "max_items"), ("retry_until", "max_attempts")):
            if repeating in step and bound not in step:
                yield finding(f"{pointer}/{bound}", f"{repeating} needs {bound}.")
            if isinstance(step.get(bound), bool):
                yield finding(f"{pointer}/{bound}", f"{bound} must be a number.")
        if "for_each" in step and "retry_until" in step:
            yield finding(f"{pointer}/retry_until", "A step may have for_each or retry_until, not both.")
        for condition in ("when", "retry_until"):
            if condition in step and not isinstance(step[condition], bool) and not _is_slot(step[condition]):
                yield finding(f"{pointer}/{condition}", f"{condition} must be an expression {{% ... %}} or a boolean.")
        if "for_each" in step and not isinstance(step["for_each"], list) and not _is_slot(step["for_each"]):
            yield finding(f"{pointer}/for_each", "for_each must be an expression {% ... %} or an array.")
        yield from _settling(f"{pointer}/settle_after", step.get("settle_after"))


_PLAIN_STEP: Final = frozenset(("id", "primitive", "args", "on_error"))
"""Keys of a step that do not restrict each other."""
schema_row(
    "actions-step-value",
    "workflow",
    "Bounds of repetitions are within 1 and 50, and on_error is stop or continue.",
    hint="Choose a value within the bounds.",
    violation=r"(?:enum|const|minimum|maximum) .*/workflow/.*",
)


def _is_slot(value: object) -> bool:
    """Return True for a slot, or a broken one, which is reported elsewhere."""
    return isinstance(value, str) and has_slots(value)


def _settling(pointer: str, settle_after: object) -> Iterator[Finding]:
    if not isinstance(settle_after, dict):
        return
    delay = settle_after.get("delay_ms")
    is_waiting = isinstance(delay, (int, float)) and not isinstance(delay, bool) and delay > 0
    if ("locator" in settle_after) == ("delay_ms" in settle_after):
        yield finding(pointer, "settle_after may have a locator or a delay_ms, not both.")
    elif "locator" in settle_after and not isinstance(settle_after["locator"], dict):
        yield finding(pointer, "The locator of settle_after must be an object.")
    elif "delay_ms" in settle_after and not is_waiting:
        yield finding(pointer, "delay_ms must be a number above 0.")


@check("actions-step-id", WARNING, "workflow", hint="Use _ instead: steps.find-it is a subtraction in JSONata.")
def subtracting_ids(document: JsonObject) -> Iterator[Finding]:
    """Ids of steps can be written in expressions."""
    if not any("-" in str(step.get("id")) for step in all_steps(document)):
        return
    for pointer, identifier in strings(document, f"{STEPS}/id"):
        if "-" in identifier:
            yield finding(pointer, f"The id {shown(identifier)} needs backticks in expressions.")


@check("actions-after-each", WARNING, "workflow", hint="Add retry_until, or leave it out.")
def idle_after_each(document: JsonObject) -> Iterator[Finding]:
    """A recovery, which runs between attempts, stands in a step that has attempts."""
    if not any("after_each" in step for step in all_steps(document)):
        return
    for pointer, step in objects(document, STEPS):
        if "after_each" in step and "retry_until" not in step:
            yield finding(f"{pointer}/after_each", "max_attempts has no effect without retry_until.")

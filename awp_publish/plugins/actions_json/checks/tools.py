"""Checks of tools (V1, tools and x_actions)."""

from collections.abc import Iterator

from awp_publish.checks.engine import ERROR, WARNING, Finding, JsonObject, finding, shown
from awp_publish.checks.places import members, objects, strings
from awp_publish.maps import rules
from awp_publish.maps.primitives import PRIMITIVES
from awp_publish.plugins.actions_json.checks.places import FILES
from awp_publish.plugins.actions_json.checks.specification import check, unknown_words


@check("actions-executable", ERROR, "Validation Rules", hint="Give it a handler, execution.steps or a workflow.")
def tools_without_execution(document: JsonObject) -> Iterator[Finding]:
    """A tool that agents may call has a handler, steps or a workflow."""
    for pointer, tool in objects(document, "/tools/[]"):
        x_actions = members(tool.get("x_actions"))
        steps = members(x_actions.get("execution")).get("steps")
        is_called = x_actions.get("direction") != "html_to_agent"
        if is_called and not (x_actions.get("handler") or steps or isinstance(tool.get("workflow"), dict)):
            yield finding(pointer, f"The map does not say how the tool {shown(tool.get('name'))} is executed.")


@check("actions-requires", WARNING, "tools", hint="Name a primitive of the dictionary.")
def unknown_requirements(document: JsonObject) -> Iterator[Finding]:
    """The primitives that a tool requires are known."""
    yield from unknown_words(document, PRIMITIVES, "The primitive", "/tools/[]/requires/[]")


@check("actions-execution", WARNING, "x_actions", hint="Runtimes that follow the text answer capability_unavailable.")
def unknown_execution(document: JsonObject) -> Iterator[Finding]:
    """Modes, fallbacks and types of execution steps are known."""
    execution = "/tools/[]/x_actions/execution"
    yield from unknown_words(document, rules.EXECUTION_FALLBACKS, "The fallback", f"{execution}/fallback")
    yield from unknown_words(document, rules.EXECUTION_MODES, "The mode", f"{execution}/mode")
    yield from unknown_words(document, rules.STEP_TYPES, "The type of a step", f"{execution}/steps/[]/type")


@check("actions-two-results", WARNING, "x_actions", hint="Keep the one in x_actions.")
def differing_result_schemas(document: JsonObject) -> Iterator[Finding]:
    """A tool has one result_schema."""
    for pointer, tool in objects(document, "/tools/[]"):
        inner = members(tool.get("x_actions")).get("result_schema")
        if inner is not None and tool.get("result_schema", inner) != inner:
            yield finding(f"{pointer}/result_schema", "It differs from the result_schema in x_actions, which counts.")


@check("actions-file", ERROR, "Validation Rules", hint="Write a path below the root of the site: pages/search.html.")
def outer_paths(document: JsonObject) -> Iterator[Finding]:
    """Source files are relative paths that stay within the site."""
    for pointer, path in strings(document, *FILES):
        if fault := rules.path_fault(path):
            yield finding(pointer, f"{shown(path)} {fault}.")

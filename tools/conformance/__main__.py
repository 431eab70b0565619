"""`make conformance`: run the published MCP scenarios, those for authorization servers too, and the MCP inspector.

It fails when one fails that applies to us.

The scenarios expect tools, prompts and resources of certain names, and count their absence as failures. What applies is
decided by what the application lists and by its capabilities, never by the words of a failure: as soon as it has a tool
of the name, the scenario counts.
"""

import json
import logging
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from awp_publish.plugins.mcp.door import McpDoor
from tests.plugins.mcp.mcp_messages import headers_of, message
from tools.conformance.application import make_application
from tools.conformance.authorization import judge_authorization, judge_typescript
from tools.conformance.inspector import inspect
from tools.conformance.server import ADDRESS, served

REVISIONS = ("2026-07-28", "2025-11-25")
SECONDS = 600

NEEDS = {
    "elicitation-sep1034-defaults": "tool test_elicitation_sep1034_defaults",
    "elicitation-sep1330-enums": "tool test_elicitation_sep1330_enums",
    "http-custom-header-server-validation": "header x-mcp-header",
    "input-required-result-basic-elicitation": "tool test_input_required_result_elicitation",
    "input-required-result-basic-list-roots": "tool test_input_required_result_list_roots",
    "input-required-result-basic-sampling": "tool test_input_required_result_sampling",
    "input-required-result-capability-check": "tool test_input_required_result_capabilities",
    "input-required-result-multi-round": "tool test_input_required_result_multi_round",
    "input-required-result-multiple-input-requests": "tool test_input_required_result_multiple_inputs",
    "input-required-result-non-tool-request": "prompt test_input_required_result_prompt",
    "input-required-result-result-type": "tool test_input_required_result_elicitation",
    "logging-set-level": "capability logging",
    "prompts-get-embedded-resource": "prompt test_prompt_with_embedded_resource",
    "prompts-get-with-image": "prompt test_prompt_with_image",
    "resources-read-binary": "resource test://static-binary",
    "resources-read-text": "resource test://static-text",
    "resources-subscribe": "capability resources.subscribe",
    "resources-templates-read": "resource test://template/{id}/data",
    "resources-unsubscribe": "capability resources.subscribe",
    "sep-2322-ignore-unexpected-params": "tool test_input_required_result_elicitation",
    "sep-2322-missing-response-rerequests": "tool test_input_required_result_elicitation",
    "sep-2575-http-server-no-independent-requests-on-stream": "tool test_streaming_elicitation",
    "sep-2575-missing-capability-http-400": "tool test_missing_capability",
    "sep-2575-server-no-log-without-loglevel": "tool test_logging_tool",
    "sep-2575-server-rejects-undeclared-capability": "tool test_missing_capability",
    "sep-2663-mrtr-synchronous-before-task-creation": "tool test_tool_with_task",
    # A site's background action can always be served without a task: by its job's document and get_job.
    "tasks-required-task-error": "tool that only clients with tasks may call",
    "tasks-mrtr-partial-fulfillment": "tool multi_input",
    "tools-call-audio": "tool test_audio_content",
    "tools-call-elicitation": "tool test_elicitation",
    "tools-call-embedded-resource": "tool test_embedded_resource",
    "tools-call-image": "tool test_image_content",
    "tools-call-mixed-content": "tool test_multiple_content_types",
    "tools-call-sampling": "tool test_sampling",
    "tools-call-with-logging": "capability logging",
    "tools-call-with-progress": "tool test_tool_with_progress",
}
"""What scenarios, and checks of their own, are about; a server that does not offer it is not judged by them."""

NAMED = (
    "completion-complete",
    *(
        f"tasks-{item}"
        for item in (
            "lifecycle",
            "capability-negotiation",
            "wire-fields",
            "request-state-removal",
            "mrtr-input",
            "request-headers",
            "dispatch-and-envelope",
            "status-notifications",
            "required-task-error",
            "mrtr-composition",
        )
    ),
    *(f"sep-2640-skills-{item}" for item in ("directory", "enumeration", "manifest")),
)
"""Scenarios that are run by name: of extensions, which no revision requires, and of what we have promised."""

MOST_WARNED = {"2026-07-28": 0, "2025-11-25": 0, "by name": 0}
"""Warnings that were there when this was written."""

LEAST_PASSED = {"2026-07-28": 160, "2025-11-25": 52, "by name": 80}
"""Checks that applied when this was written: fewer mean that the run itself went wrong."""


def main(node: str, conformance: str, inspector: str) -> int:
    """Run the scenarios of both generations, then the inspector. All three are paths of programs."""
    logging.disable()
    with served(make_application), tempfile.TemporaryDirectory() as folder:
        command = [node, conformance]
        offered = {revision: _offered(revision) for revision in REVISIONS}
        failed = [
            _judge(revision, _run(command, revision, Path(folder) / revision), offered[revision])
            for revision in REVISIONS
        ]
        failed.append(_judge("by name", _run_named(command, Path(folder) / "by name"), offered[REVISIONS[0]]))
        McpDoor.takes_plain_calls = False
        again = _run(command, REVISIONS[0], Path(folder) / "through the SDK")
        failed.append(_judge(REVISIONS[0], again, offered[REVISIONS[0]]))
    failed.append(judge_authorization(command))
    failed.append(judge_typescript(node, Path(conformance).parents[3]))
    return max(*failed, inspect([node, inspector]))


def _run(command: Sequence[str], revision: str, folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Every check of every scenario. The program's own exit status counts what is absent."""
    return _checks(command, folder, "--requirements", revision)


def _run_named(command: Sequence[str], folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Every check of the scenarios in NAMED; one that the program does not know has failed."""
    found = [_checks(command, folder / name, "--scenario", name) for name in NAMED]
    unknown = [name for name, checks in zip(NAMED, found, strict=True) if not checks]
    lost = {"id": "unknown", "status": "FAILURE", "errorMessage": "The program has no such scenario."}
    return [*(check for checks in found for check in checks), *((name, lost) for name in unknown)]


def _checks(command: Sequence[str], folder: Path, *options: str) -> list[tuple[str, dict[str, Any]]]:
    whole = [*command, "server", "--url", f"{ADDRESS}/mcp", *options, "-o", str(folder)]
    subprocess.run(whole, check=False, timeout=SECONDS, stdout=subprocess.DEVNULL)
    return [
        (file.parent.name, check)
        for file in sorted(folder.glob("*/checks.json"))
        for check in json.loads(file.read_text())
    ]


def _offered(revision: str) -> frozenset[str]:
    """What the application lists, and its capabilities in one revision, in the words of NEEDS."""

    def ask(method: str, params: dict[str, Any] | None = None, version: str = REVISIONS[0]) -> Any:
        sent = message(method, params, version=version)
        answer = httpx.post(f"{ADDRESS}/mcp", json=sent, headers=headers_of(sent, version), timeout=60).json()
        return answer.get("result", {})

    tools = ask("tools/list").get("tools", [])
    offered = {f"tool {tool['name']}" for tool in tools}
    offered |= {f"prompt {prompt['name']}" for prompt in ask("prompts/list").get("prompts", [])}
    offered |= {f"resource {resource['uri']}" for resource in ask("resources/list").get("resources", [])}
    templates = ask("resources/templates/list").get("resourceTemplates", [])
    offered |= {f"resource {template['uriTemplate']}" for template in templates}
    greeting = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    is_modern = revision == REVISIONS[0]
    response = ask("server/discover") if is_modern else ask("initialize", greeting, revision)
    for name, facts in response["capabilities"].items():
        offered |= {f"capability {name}", *(f"capability {name}.{part}" for part, is_on in facts.items() if is_on)}
    if '"x-mcp-header"' in json.dumps(tools):
        offered.add("header x-mcp-header")
    return frozenset(offered)


def _judge(revision: str, checks: Sequence[tuple[str, dict[str, Any]]], offered: frozenset[str]) -> int:
    """Print what fails and what a server SHOULD do otherwise, and count both. Returns 1 if something fails."""
    passed = sum(check["status"] == "SUCCESS" for _, check in checks)
    warned = [(name, check) for name, check in checks if check["status"] == "WARNING"]
    failed = [(name, check) for name, check in checks if check["status"] == "FAILURE"]
    failed += [(name, check) for name, check in warned if "sep-2640" in check["id"]]
    wrong = [(name, check) for name, check in failed if _applies(name, check["id"], offered)]
    should = [(name, check) for name, check in warned if _applies(name, check["id"], offered)]
    for kind, listed in (("failed", wrong), ("SHOULD", should)):
        for name, check in listed:
            print(f"{kind}: {name}: {check['id']}: {_words(check)}")
    counts = f"{passed} checks passed, {len(wrong)} failed, {len(should)} warnings of a SHOULD"
    print(f"{revision}: {counts}, {len(failed) - len(wrong)} do not apply")
    return int(bool(wrong) or passed < LEAST_PASSED[revision] or len(should) > MOST_WARNED[revision])


def _applies(folder: str, check_id: str, offered: frozenset[str]) -> bool:
    # The folder of a scenario is "server-", its name and the time.
    scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", folder.removeprefix("server-"))
    return all(NEEDS[item] in offered for item in (scenario, check_id) if item in NEEDS)


def _words(check: dict[str, Any]) -> str:
    return f"{check.get('errorMessage')} {check.get('details')}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

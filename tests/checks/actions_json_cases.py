"""Broken maps of actions.json."""

from .case import actions
from .documents import ABSENT

TOOL = "/tools/0"
STEPS = f"{TOOL}/workflow/steps"
STEP = f"{STEPS}/0"
SNAPSHOT = "/state_projections/0/snapshot"


def deep(levels: int) -> object:
    value: object = []
    for _ in range(levels):
        value = [value]
    return value


ACTIONS_CASES = (
    actions("actions-protocol", "/protocol", ABSENT),
    actions("actions-protocol", "/protocol", "actions"),
    actions("actions-version", "/version", ABSENT),
    *(actions("actions-version", "/version", value) for value in ("1", "0.1.0-draft", True, 2)),
    actions("actions-required", f"{TOOL}/workflow/expression_language", ABSENT),
    actions("actions-required", "/tools", ABSENT, also="actions-transition actions-reference actions-check-reference"),
    *(
        actions(
            "actions-required",
            f"{TOOL}/{name}",
            ABSENT,
            also="actions-transition actions-reference actions-check-reference",
        )
        for name in ("name", "description")
    ),
    actions("actions-input-schema", f"{TOOL}/input_schema", ABSENT),
    actions("actions-required", "/checks/0/id", ABSENT),
    actions("actions-required", "/attachments/0/target", ABSENT),
    actions("actions-required", "/attachments/0/lifecycle", ABSENT),
    actions("actions-required", "/transitions/0/from", ABSENT),
    actions("actions-required", "/imports/0/uri", ABSENT),
    actions("actions-required", f"{STEP}/primitive", ABSENT),
    actions("actions-snapshot", f"{SNAPSHOT}/projection", ABSENT),
    actions("actions-type", "/tools", {}, also="actions-transition actions-reference actions-check-reference"),
    actions("actions-type", "/states", {}, also="actions-transition actions-reference actions-check-reference"),
    actions("actions-type", f"{TOOL}/input_schema", True),
    actions("actions-type", f"{TOOL}/x_actions/result_schema", []),
    actions("actions-type", "/signals/0/payload", None),
    actions("actions-type", "/state_projections/0/scope", "https://books.example/*"),
    actions("actions-type", f"{STEP}/args", []),
    actions("actions-type", "/imports/0/enabled", "no"),
    actions("actions-empty", f"{TOOL}/description", ""),
    actions("actions-empty", "/attachments/0/lifecycle", {}),
    actions("actions-name", "/attachments/0/id", 5),
    actions("actions-name", "/imports/0/namespace", 5, also="actions-reference"),
    actions("actions-name", "/signals/0/name", []),
    actions("actions-transition", "/transitions/0/to", True),
    actions("actions-word", "/imports/0/kind", "site"),
    actions("actions-word", "/imports/0/trust", "full"),
    actions("actions-word", f"{TOOL}/x_actions/direction", "down"),
    actions("actions-word", f"{TOOL}/x_actions/scope", "global"),
    actions("actions-word", "/signals/0/ingestion", "on"),
    actions("actions-word", "/checks/0/severity", "blocker"),
    actions("actions-word", f"{SNAPSHOT}/source", "accessibility"),
    actions("actions-word", f"{SNAPSHOT}/version", 2),
    actions("actions-number", "/transitions/0/rate_limit_ms", -1),
    actions("actions-number", "/state_projections/0/summaries/0/max_bytes", 0),
    actions(
        "actions-many-tools",
        "/tools",
        [
            {
                "name": f"tool_{number}",
                "description": "A tool.",
                "input_schema": {},
                "x_actions": {"handler": "shop.do"},
            }
            for number in range(2001)
        ],
    ),
    actions("actions-schema", f"{TOOL}/input_schema/properties/q/type", "text"),
    actions("actions-schema", "/signals/0/payload/properties/slug/$ref", "#/$defs/slug"),
    actions("actions-depth", "/notes", deep(70), at=""),
    actions("actions-text", f"{TOOL}/description", "Half a pair: \ud800"),
    *(
        actions(
            "actions-name", f"{TOOL}/name", name, also="actions-transition actions-reference actions-check-reference"
        )
        for name in ("search books", "search.", "search.2", "search_books\n", "b\u00fccher", "1st", ".search", "a..b")
    ),
    actions(
        "actions-name", "/states/0/name", "1st", also="actions-transition actions-reference actions-check-reference"
    ),
    actions("actions-name", "/context/0/id", "a b"),
    actions("actions-name", "/imports/0/namespace", "a..b", also="actions-reference"),
    actions("actions-name", "/tools/1/x_actions/handler", "agents/invoke"),
    actions("actions-surface-id", "/surface/surface_id", "books example"),
    actions("actions-unique", "/tools/1/name", "search_books", also="actions-reference"),
    actions("actions-unique", "/signals/0/name", "search_books", also="actions-transition"),
    actions("actions-unique", "/states/1/name", "search.ready", also="actions-transition actions-reference"),
    actions("actions-unique", f"{STEPS}/1/id", "type_q", also="actions-expression"),
    actions("actions-namespace", "/imports/0/namespace", ABSENT, also="actions-reference"),
    actions("actions-conflict-policy", "/composition/default_conflict_policy", "prefer_import"),
    actions("actions-executable", "/tools/1/x_actions/handler", ABSENT, at="/tools/1"),
    actions("actions-requires", f"{TOOL}/requires/0", "pointer.tap"),
    actions(
        "actions-execution",
        "/tools/1/x_actions/execution",
        {"mode": "steps_last"},
        at="/tools/1/x_actions/execution/mode",
    ),
    actions(
        "actions-execution",
        "/tools/1/x_actions/execution",
        {"fallback": "guess"},
        at="/tools/1/x_actions/execution/fallback",
    ),
    actions(
        "actions-execution",
        "/tools/1/x_actions/execution",
        {"steps": [{"type": "swipe"}]},
        at="/tools/1/x_actions/execution/steps/0/type",
    ),
    actions("actions-two-results", f"{TOOL}/result_schema", {"type": "string"}),
    *(
        actions("actions-file", f"{TOOL}/x_actions/source/files", [path], at=f"{TOOL}/x_actions/source/files/0")
        for path in (
            "/etc/passwd",
            "pages/../../x",
            "pages/%2e%2e/%2e%2e/x",
            "pages/%252e%252e/../../x",
            "..\\x",
            "C:\\x",
            "file:///x",
            "\\\\host\\x",
            "~/x",
            "https://books.example/x",
        )
    ),
    actions("actions-selector", f"{TOOL}/target/selector", 5),
    actions("actions-selector", f"{TOOL}/target/fallback_selectors", ["a", 1]),
    actions("actions-selector", f"{TOOL}/target/selector", "form["),
    actions("actions-selector-form", f"{TOOL}/target/selector", ["form", "main form"]),
    actions("actions-selector-form", f"{TOOL}/target/fallback_selectors", "form"),
    actions("actions-confidence", f"{TOOL}/target/confidence", "sure"),
    actions("actions-transition", "/transitions/0/from", "home"),
    actions("actions-transition", "/transitions/0/to", "home"),
    actions(
        "actions-transition",
        "/transitions/0/to",
        ["search.listed", "home"],
        at="/transitions/0/to/1",
        also="actions-type",
    ),
    actions("actions-transition", "/transitions/0/tool", "find_books"),
    actions("actions-transition", "/transitions/0/signal", "search.done"),
    actions("actions-transition-method", "/transitions/0/method", "telepathy"),
    actions("actions-transition-method", "/transitions/0/tool", ABSENT),
    actions("actions-check-reference", "/checks/0/assertions/0/target/state", "home"),
    actions(
        "actions-check-reference", "/checks/0/steps", [{"type": "call", "tool": "nope"}], at="/checks/0/steps/0/tool"
    ),
    actions("actions-check-reference", "/checks/0/attachment", "nope"),
    actions("actions-check-reference", "/checks/0/target", "form"),
    actions("actions-reference", "/context/0/available_tools/0", "find_books"),
    actions("actions-reference", "/context/0/next_states/0", "home"),
    actions("actions-reference", f"{TOOL}/target/state", "home"),
    actions("actions-signal-event", "/signals/0/event", ABSENT),
    actions("actions-signal-direction", "/signals/0/direction", "agent_to_html"),
    actions("actions-attachment-kind", "/attachments/0/kind", "banner"),
    actions("actions-workflow", f"{TOOL}/workflow/name", "x"),
    actions("actions-workflow", f"{TOOL}/workflow/version", 2),
    actions("actions-workflow", f"{TOOL}/workflow/version", True),
    actions("actions-workflow", f"{TOOL}/workflow/expression_language", "jmespath"),
    actions("actions-workflow", STEPS, [{"id": f"step_{n}", "primitive": "page.info"} for n in range(26)]),
    actions("actions-no-steps", STEPS, []),
    actions("actions-step", f"{STEP}/save_as", "x"),
    actions("actions-step", f"{STEP}/id", "a.b"),
    actions("actions-step", f"{STEP}/for_each", "{% input.q %}", at=f"{STEP}/max_items"),
    actions("actions-step", f"{STEP}/retry_until", "{% true %}", at=f"{STEP}/max_attempts"),
    actions("actions-step", f"{STEP}/when", "always"),
    actions("actions-step", f"{STEPS}/2/settle_after/delay_ms", 5, at=f"{STEPS}/2/settle_after"),
    actions("actions-step", f"{STEPS}/2/settle_after", {}),
    actions("actions-step", f"{STEPS}/2/settle_after", {"delay_ms": 0}),
    actions("actions-step-value", f"{STEP}/on_error", "retry"),
    actions("actions-step-value", f"{STEP}/max_items", 51),
    actions("actions-primitive", f"{STEP}/primitive", "click"),
    actions(
        "actions-primitive",
        f"{STEP}/after_each",
        {"primitive": "pointer.click"},
        also="actions-after-each actions-arguments",
    ),
    actions("actions-arguments", f"{STEP}/args/speed", 1),
    actions("actions-arguments", f"{STEP}/args/text", ABSENT),
    actions("actions-arguments", f"{STEP}/args/mode", "prepend"),
    actions("actions-expression", f"{STEP}/args/text", "for {% input.q %}"),
    actions("actions-expression", f"{STEP}/args/text", "{% input.q %} {% input.q %}"),
    actions("actions-expression", f"{STEP}/args/target", {"selector": "{% input.q"}, at=f"{STEP}/args/target/selector"),
    *(
        actions("actions-expression", f"{TOOL}/workflow/output", f"{{% {expression} %}}")
        for expression in (
            "{'ok': ",
            "($e := $eval; $e('1'))",
            "$now/* */()",
            "$map([1], $random)",
            "$match('a', /'/) & $millis() & ''",
            f"'{'x' * 4000}'",
        )
    ),
    actions("actions-expression", f"{SNAPSHOT}/projection/expression", "records.("),
    actions("actions-step-id", f"{STEPS}/3/id", "wait-for-it"),
    actions("actions-after-each", f"{STEP}/after_each", {"primitive": "viewport.scroll"}),
    actions("actions-field", f"{SNAPSHOT}/extract/0/fields/title/property", "innerHTML"),
    actions("actions-field", f"{SNAPSHOT}/extract/0/fields/first-author", {}),
    actions(
        "actions-field",
        f"{SNAPSHOT}/extract/0/fields/author",
        {"selector": ".by", "fields": {"name": {"property": "outerHTML"}}},
        at=f"{SNAPSHOT}/extract/0/fields/author/fields/name/property",
    ),
    actions(
        "actions-selector",
        f"{SNAPSHOT}/extract/0/fields/author",
        {"selector": ".by", "many": True, "fields": {"name": {"closest": "li["}}},
        at=f"{SNAPSHOT}/extract/0/fields/author/fields/name/closest",
    ),
    actions("actions-expression", "/state_projections/0/markers", "{% records.( %}"),
    actions("actions-selector", "/context/0/source", {"selectors": [1]}, at="/context/0/source/selectors"),
    actions("actions-file", "/checks/0/source", {"files": ["../x"]}, at="/checks/0/source/files/0"),
    actions(
        "actions-unique",
        "/states/0/diagnostics",
        [{"name": name, "target": {"selector": "h1"}} for name in ("title", "other", "title")],
        at="/states/0/diagnostics/2/name",
    ),
)

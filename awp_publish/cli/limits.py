"""The bounds of maps and their runtime, as `check --explain limits` prints them."""

from typing import Final

from awp_publish.maps import engine, expressions, live_page, projections, rules, runtime

MAP_LIMITS: Final = (
    ("steps of a workflow", rules.MAX_STEPS),
    ("items of a loop, attempts of a step", rules.MAX_ITEMS),
    ("characters of an expression", expressions.MAX_EXPRESSION_CHARACTERS),
    ("milliseconds of one expression", engine.TIMEOUT_MS),
    ("seconds of all expressions of one value", expressions.MAX_FILL_SECONDS),
    ("bytes of the data that expressions see", expressions.MAX_DOCUMENT_BYTES),
    ("bytes that an expression of a workflow gives", rules.MAX_EXPRESSION_BYTES),
    ("bytes of a workflow's output", rules.MAX_WORKFLOW_BYTES),
    ("bytes of a state", rules.MAX_STATE_BYTES),
    ("bytes of a summary that says no other number", rules.MAX_SUMMARY_BYTES),
    ("operations of a `state_diff`", projections.MAX_PATCHES),
    ("elements of one look at a page", live_page.MAX_FOUND),
    ("values that are read for one projection", live_page.MAX_VALUES),
    ("milliseconds of a wait that says no other number", rules.SETTLE_TIMEOUT_MS),
    ("seconds of a call", runtime.CALL_SECONDS),
    ("tools of a map", rules.MAX_TOOLS),
    ("bytes of a map", rules.MAX_MAP_BYTES),
    ("depth of a map", rules.MAX_DEPTH),
    ("maps that are imported", rules.MAX_IMPORTS),
    ("depth of imports", rules.MAX_IMPORT_DEPTH),
    ("bytes of an imported map", rules.MAX_IMPORT_BYTES),
)
"""Each is a maximum."""

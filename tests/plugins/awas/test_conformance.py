"""The conformance levels of AWAS 1.1, as far as they can be told from the actions."""

import pytest

from awp_publish.plugins.awas.checks.manifest import unmet_levels

READ: dict[str, object] = {"method": "GET", "sideEffect": "safe", "intent": "read"}
WRITE: dict[str, object] = {"method": "POST", "sideEffect": "destructive", "intent": "write"}
COMPLETE: dict[str, object] = {
    "authScopes": [],
    "preconditions": [],
    "rateLimitHint": {"requests": 1, "window": "1s"},
    "inputSchema": {},
    "outputs": {"schema": {}},
}
SAFE_WRITE: dict[str, object] = {**WRITE, "previewUrl": "/preview", "idempotencyKeySupported": True}


@pytest.mark.parametrize(
    ("level", "action"),
    [
        ("L1", READ),
        ("L2", READ),
        ("L2", {**WRITE, "dryRunSupported": True}),
        ("L2", {**WRITE, "previewUrl": "/preview"}),
        ("L3", {**READ, **COMPLETE}),
        ("L3", {**SAFE_WRITE, **COMPLETE}),
        ("L9", WRITE),
        (None, WRITE),
        ([], WRITE),
    ],
)
def test_a_level_that_is_met_or_not_claimed_passes(level: object, action: dict[str, object]) -> None:
    document = {"conformanceLevel": level, "actions": [action], "security": {"csrfRequired": False}}
    assert list(unmet_levels(document)) == []


@pytest.mark.parametrize(
    ("level", "action", "lacking"),
    [
        ("L1", WRITE, 'method "GET", sideEffect "safe", intent "read"'),
        ("L1", {"method": "GET"}, 'sideEffect "safe", intent "read"'),
        ("L2", WRITE, "previewUrl or dryRunSupported"),
        ("L2", {"method": "GET", "intent": "read"}, 'sideEffect "safe"'),
        ("L3", READ, "authScopes, preconditions, rateLimitHint, inputSchema, outputSchema"),
        ("L3", {**WRITE, **COMPLETE, "dryRunSupported": True}, "idempotencyKeySupported true"),
    ],
)
def test_missing_requirements_of_a_level_are_listed(level: str, action: dict[str, object], lacking: str) -> None:
    document = {"conformanceLevel": level, "actions": [action], "security": {"csrfRequired": False}}
    assert [found.message for found in unmet_levels(document)] == [
        f"{level} is claimed, for which this action lacks {lacking}."
    ]
    by_itself = {"actions": [{**action, "conformanceLevel": level}]}
    assert [found.pointer for found in unmet_levels(by_itself)] == ["/actions/0"]

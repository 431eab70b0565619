"""AWAS 1.1 conformance levels: a claim is compared with what the actions say.

L1 is reading only, L2 adds writing that can be previewed, L3 adds scopes, preconditions, limits, idempotency keys and
schemas on everything. An action may name the level it needs itself; it is then held to that level as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from awp_publish.checks.finding import Flaw
from awp_publish.checks.pointer import objects

Action = Mapping[str, object]
SOURCE = "AWAS 1.1 conformance levels"


def _wants_to_write(action: Action) -> bool:
    return (
        action.get("method") != "GET"
        or action.get("intent", "read") != "read"
        or action.get("sideEffect", "safe") != "safe"
    )


def _not_reading(action: Action) -> Iterator[str]:
    for name, wanted in (("method", "GET"), ("sideEffect", "safe"), ("intent", "read")):
        if action.get(name) != wanted:
            yield f'{name} "{wanted}"'


def _without_preview(action: Action) -> Iterator[str]:
    if not _wants_to_write(action):
        yield from _not_reading(action)
    elif not action.get("previewUrl") and action.get("dryRunSupported") is not True:
        yield "previewUrl or dryRunSupported"


def _incomplete(action: Action) -> Iterator[str]:
    yield from _without_preview(action)
    for name in ("authScopes", "preconditions", "rateLimitHint"):
        if name not in action:
            yield name
    if _wants_to_write(action) and action.get("idempotencyKeySupported") is not True:
        yield "idempotencyKeySupported true"
    if "inputSchema" not in action:
        yield "inputSchema"
    outputs = action.get("outputs")
    if "outputSchema" not in action and not (isinstance(outputs, Mapping) and "schema" in outputs):
        yield "outputSchema"


RULES: Mapping[str, Callable[[Action], Iterator[str]]] = {
    "L1": _not_reading,
    "L2": _without_preview,
    "L3": _incomplete,
}


def unmet_levels(document: Mapping[str, object]) -> Iterator[Flaw]:
    """Find actions that do not meet the level claimed for the document or for themselves."""
    claimed = document.get("conformanceLevel")
    actions = list(objects(document, "/actions/[]"))
    if claimed in ("L2", "L3") and any(_wants_to_write(action) for _, action in actions):
        yield from _undocumented_csrf(document, str(claimed))
    for pointer, action in actions:
        levels = [level for level in (claimed, action.get("conformanceLevel")) if isinstance(level, str)]
        yield from _unmet(pointer, action, levels)


def _undocumented_csrf(document: Mapping[str, object], level: str) -> Iterator[Flaw]:
    security = document.get("security")
    if not isinstance(security, Mapping):
        yield Flaw("/security", f"The document claims {level}, has writing actions, and no security section.")
    elif "csrfRequired" not in security:
        yield Flaw(
            "/security/csrfRequired", f"The document claims {level} and does not say whether it uses CSRF tokens."
        )


def _unmet(pointer: str, action: Action, levels: Sequence[str]) -> Iterator[Flaw]:
    # The highest level that is not met is reported; it contains what the lower ones say.
    for level in sorted(set(levels) & RULES.keys(), reverse=True):
        lacking = list(RULES[level](action))
        if lacking:
            yield Flaw(pointer, f"{level} is claimed, for which this action lacks {', '.join(lacking)}.")
            return

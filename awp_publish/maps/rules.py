"""Rules of actions.json V1 that the validator and the runtime share: names, addresses, paths, selectors, limits."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote

PROTOCOL: Final = "actions.json"
VERSION: Final = 1

# Bounds (V1, workflow and state_projections); the figures are those of the published runtime.
MAX_STEPS: Final = 25
MAX_ITEMS: Final = 50
MAX_ATTEMPTS: Final = 50
MAX_EXPRESSION_BYTES: Final = 16_000
MAX_WORKFLOW_BYTES: Final = 32_000
MAX_PROJECTION_EXPRESSION_BYTES: Final = 32_000
MAX_STATE_BYTES: Final = 48_000
MAX_SUMMARY_BYTES: Final = 12_000
SETTLE_TIMEOUT_MS: Final = 8_000

MAX_TOOLS: Final = 2_000
MAX_MAP_BYTES: Final = 10_000_000
MAX_DEPTH: Final = 64
MAX_IMPORT_DEPTH: Final = 3
MAX_IMPORTS: Final = 20
MAX_IMPORT_BYTES: Final = 1_000_000

WORKFLOW_KEYS: Final = frozenset(("version", "expression_language", "steps", "output", "x_state_machine"))
STEP_KEYS: Final = frozenset(
    (
        "id",
        "primitive",
        "args",
        "when",
        "for_each",
        "max_items",
        "retry_until",
        "max_attempts",
        "after_each",
        "on_error",
        "settle_after",
    )
)
AFTER_EACH: Final = frozenset(
    (
        "locator.wait_for",
        "locator.element_info",
        "dom.observe.visible",
        "viewport.scroll",
        "overlay.menu.hide",
        "overlay.menu.show",
    )
)
"""Primitives that may run between two attempts: none of them changes the page."""
RECIPE: Final = frozenset(
    (
        "keyboard.press",
        "pointer.click",
        "pointer.move",
        "pointer.double_click",
        "locator.element_info",
        "locator.wait_for",
        "text.insert",
        "text.type",
        "viewport.scroll",
    )
)
"""Primitives in the recipe of a marker."""
STEP_TYPES: Final = frozenset(("inspect", "type", "click", "wait", "extract"))
"""Types of the steps of `x_actions.execution`."""
FIELD_PROPERTIES: Final = frozenset(("innerText", "textContent", "value", "checked", "ariaLabel", "boundingClientRect"))
DIRECTIONS: Final = frozenset(("agent_to_html", "html_to_agent", "bidirectional"))
SCOPES: Final = frozenset(("active_surface", "persistent"))
EXECUTION_MODES: Final = frozenset(("steps_first", "handler_first"))
EXECUTION_FALLBACKS: Final = frozenset(("steps_on_missing_handler_or_drift",))
IMPORT_KINDS: Final = frozenset(("website", "local", "storage", "shared", "public", "package"))
TRUST: Final = frozenset(("website", "private", "shared", "public", "local", "unknown"))
CONFIDENCE: Final = frozenset(("observed", "inferred", "generated", "unknown"))
SEVERITIES: Final = frozenset(("info", "minor", "major", "critical"))
INGESTION: Final = frozenset(("enabled", "disabled_by_default"))
TRANSITION_METHODS: Final = frozenset(
    ("tool_call", "signal", "navigation", "click", "type", "scroll", "handler_call", "attachment_install")
)
ATTACHMENT_KINDS: Final = frozenset(("overlay_launcher", "annotation", "shortcut", "status_badge"))
POSTCONDITION: Final = "postcondition"
"""The `purpose`, a member of ours, of a projection that no agent reads: it only verifies what a tool has done."""
SELECTORS: Final = ("selector", "selectors", "fallback_selectors")
"""Members of a target that hold selectors, in the order in which they are tried."""
TARGETS: Final = (
    "/tools/[]/target",
    "/tools/[]/x_actions/execution/steps/[]/target",
    "/states/[]/diagnostics/[]/target",
    "/signals/[]/target",
    "/attachments/[]/target",
    "/checks/[]/target",
    "/checks/[]/assertions/[]/target",
    "/context/[]/load_when/targets/[]",
)
"""Where targets are, as pointers in which `[]` stands for every item of an array."""

_IDENTIFIER: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]*(?:\.[a-zA-Z][a-zA-Z0-9_-]*)*")
_STEP_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def is_identifier(name: object) -> bool:
    """Return True for a safe identifier (V1, Safe Identifiers)."""
    return isinstance(name, str) and _IDENTIFIER.fullmatch(name) is not None


def is_step_id(name: object) -> bool:
    """Return True for a valid id of a workflow's step: an identifier without dots."""
    return isinstance(name, str) and _STEP_ID.fullmatch(name) is not None


def url_fits(target: Mapping[str, object], url: str) -> bool:
    """Return True if an address satisfies `url_contains` and `url_matches`; lists are alternatives."""
    for name, fits in (("url_contains", str.__contains__), ("url_matches", _matches)):
        condition = target.get(name)
        if condition is None:
            continue
        choices = condition if isinstance(condition, list) else [condition]
        if not any(isinstance(choice, str) and fits(url, choice) for choice in choices):
            return False
    return True


def _matches(url: str, pattern: str) -> bool:
    """Match a whole address, ignoring case; `*` stands for any characters, and nothing else is special.

    The parts between the stars are searched one after the other, each at its first occurrence, so there is no
    backtracking.
    """
    address = url.lower()
    first, *others = pattern.lower().split("*")
    if not others:
        return address == first
    *middle, last = others
    if not address.startswith(first) or len(address) < len(first) + len(last) or not address.endswith(last):
        return False
    place, end = len(first), len(address) - len(last)
    for part in middle:
        start = address.find(part, place, end)
        if start < 0:
            return False
        place = start + len(part)
    return True


def path_fault(path: str) -> str | None:
    """Return why a source path is outside the site's own tree, None if it is inside (V1, Validation Rules)."""
    plain = path
    for _ in range(3):  # percent-encoding may be nested
        plain = unquote(plain)
    plain = plain.replace("\\", "/")
    if plain.startswith(("/", "~")) or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", plain):
        return "is absolute"
    depth = 0
    for part in plain.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return "leaves the root of the site"
    return None

"""AWAS conformance levels (1.1, CONFORMANCE_LEVELS), computed from the actions instead of typed.

L1: every action is a GET that is safe and reads. L2: writes have a preview or a dry run, and `security` documents CSRF.
L3: besides, every action has scopes, preconditions, a rate limit and schemas, and every write takes idempotency keys.
"""

from collections.abc import Sequence

from awp_publish.model import Action, Catalog


def site_level(catalog: Catalog, actions: Sequence[Action]) -> str | None:
    """The highest level that the whole site meets, None if it meets none."""
    levels = {action_level(catalog, action) for action in actions}
    if not levels or None in levels:
        return None
    if catalog.site.security is not None and all(_is_transactional(action) for action in actions):
        return "L3"
    return "L2" if "L2" in levels else "L1"


def action_level(catalog: Catalog, action: Action) -> str | None:
    """The lowest level at which a site may have this action, None if no level allows it."""
    method, _ = catalog.endpoint_of(action)
    if not action.is_write:
        return "L1" if method == "GET" and action.side_effect == "safe" else None
    has_preview = action.preview_url is not None or action.dry_run
    return "L2" if has_preview and catalog.site.security is not None else None


def preconditions(action: Action) -> list[str]:
    """The declared conditions, then a sentence for each action that has to come first."""
    return [*action.preconditions, *(f"{earlier} has been called successfully." for earlier in action.depends_on)]


def _is_transactional(action: Action) -> bool:
    """What L3 asks of every action beyond L2."""
    is_repeatable = action.idempotency is not None or not action.is_write
    has_schemas = bool(action.inputs) and bool(action.outputs)
    return is_repeatable and has_schemas and bool(action.scopes and action.rate_limit and preconditions(action))

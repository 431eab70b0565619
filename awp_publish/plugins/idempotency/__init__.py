"""Idempotency: calls with a key are made once."""

from dataclasses import replace

from awp_publish.model import Action, Catalog
from awp_publish.plugin import Plugin, Setup
from awp_publish.plugins.idempotency.gate import idempotency_gate
from awp_publish.plugins.idempotency.options import Window


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    """Return the catalog with the windows of the actions whose calls may have a key."""
    return replace(catalog, actions=tuple(map(_with_window, catalog.actions)))


def _with_window(action: Action) -> Action:
    window = action.options.get("idempotency")
    return action if window is None else replace(action, idempotency=window)


PLUGIN = Plugin(
    name="idempotency",
    is_default=True,
    action_options={"idempotency": Window},
    derive=_derive,
    gates=lambda setup: (idempotency_gate(setup),),
)

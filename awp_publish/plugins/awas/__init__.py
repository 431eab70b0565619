"""AWAS: a manifest of the site's actions, and those for MCP and A2A clients."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from awp_publish.model import Action, Catalog
from awp_publish.plugin import Finding, Plugin, Setup
from awp_publish.plugins.awas.bridge_manifests import A2A_MANIFEST, MCP_MANIFEST
from awp_publish.plugins.awas.manifest import PROTOCOL, selector_page
from awp_publish.plugins.awas.options import AwasSettings
from awp_publish.plugins.awas.schemas import SCHEMAS_PROTOCOL
from awp_publish.problems import DeclarationError
from awp_publish.schema import member_names

_STYLES: Final = {"data-awas": ("data-awas-action", "data-awas-param"), "data-ai": ("data-ai-action", "data-ai-param")}


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    """Return the catalog with what its owner says of actions for AWAS. Raises DeclarationError."""
    actions = tuple(_with_options(action, action.options.get("awas", {})) for action in catalog.actions)
    return replace(catalog, actions=actions)


def _with_options(action: Action, options: AwasSettings) -> Action:
    if not options:
        return action
    return replace(
        action,
        type=options.get("type", action.type),
        selector=options.get("selector"),
        selectors=_selectors_of(action, options.get("selectors", {})),
        result=options.get("result"),
        preconditions=tuple(options.get("preconditions", ())),
        preview_url=options.get("preview_url"),
        dry_run=options.get("dry_run", False),
    )


def _selectors_of(action: Action, selectors: str | Mapping[str, str]) -> Mapping[str, str]:
    """Return the selectors of the inputs; the name of a style of attributes is short for all of them."""
    names = member_names(action.inputs)
    if not isinstance(selectors, str):
        for unknown in selectors.keys() - set(names):
            wrong = f'awas.selectors: "{unknown}" is not an input.'
            raise DeclarationError(f'action "{action.id}"', wrong, f"There are: {', '.join(names) or 'none'}.")
        return selectors
    of_action, of_input = _STYLES[selectors]
    escaped = {name: name.replace("\\", "\\\\").replace("'", "\\'") for name in names}
    return {name: f"[{of_action}='{action.id}'] [{of_input}='{css}']" for name, css in escaped.items()}


def _check(setup: Setup, catalog: Catalog) -> Iterator[Finding]:
    unplaced = [
        action.id
        for action in catalog.actions
        if (action.selector or action.selectors or action.result) and selector_page(catalog, action) is None
    ]
    if unplaced:
        message = f"The selectors of {', '.join(unplaced)} are left out of AWAS: no page is declared for them."
        remedy = (
            'Write site.page("/basket", actions=[...]), or extensions={"awas": {"x-page": "/basket"}} for an action.'
        )
        yield Finding("warning", "start-selectors", "", message, remedy, "awp_publish")


PLUGIN = Plugin(
    name="awas",
    is_default=True,
    documents=(PROTOCOL, SCHEMAS_PROTOCOL, MCP_MANIFEST, A2A_MANIFEST),
    action_options={"awas": AwasSettings},
    derive=_derive,
    check=_check,
)

"""Patterns of schemas, in ECMA-262's syntax."""

from dataclasses import replace
from typing import Final

from awp_publish.checks.engine import WARNING
from awp_publish.model import Action, Catalog
from awp_publish.plugin import Finding, Plugin, Setup
from awp_publish.plugins.patterns.portable import portable

_REMEDY: Final = (
    "Write the pattern as ECMA-262 has it, or say it in the description; the site checks it in either case."
)


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    setup.state.clear()
    return replace(catalog, actions=tuple(_with_portable_patterns(action, setup.state) for action in catalog.actions))


def _with_portable_patterns(action: Action, findings: list[Finding]) -> Action:
    """Return an action whose patterns compile everywhere, and add a finding for each that had to be left out."""
    inputs, of_inputs = portable(action.inputs)
    outputs, of_outputs = portable(action.outputs)
    for kind, lost in (("input", of_inputs), ("output", of_outputs)):
        for words in lost:
            message = f'Action "{action.id}" is published without a pattern of its {kind}: {words}.'
            findings.append(Finding(WARNING, "start-pattern", "", message, _REMEDY, "ECMA-262"))
    return replace(action, inputs=inputs, outputs=outputs)


PLUGIN: Final = Plugin(
    name="patterns",
    is_default=True,
    start=lambda setup: list[Finding](),
    derive=_derive,
    check=lambda setup, catalog: setup.state,
)

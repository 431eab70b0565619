"""Confirmation: a person agrees to a call before it is made (agent.json section 9)."""

from collections.abc import Iterable
from dataclasses import replace
from string import Formatter

from awp_publish.model import Action, Catalog, Summary
from awp_publish.plugin import Plugin, Setup
from awp_publish.plugins.confirmation.gate import confirmation_gate
from awp_publish.plugins.confirmation.options import Confirm, Confirmation
from awp_publish.problems import DeclarationError
from awp_publish.schema import member_names


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    """Return the catalog with what has to be confirmed, and the questions. Raises DeclarationError."""
    return replace(catalog, actions=tuple(map(_with_question, catalog.actions)))


def _with_question(action: Action) -> Action:
    confirm: bool | Summary | None = action.options.get("confirm")
    if confirm is None:
        return action
    subject = f'action "{action.id}"'
    if action.is_irreversible and confirm is False:
        raise DeclarationError(subject, "confirm: an irreversible action always needs confirmation.", "Leave it out.")
    if isinstance(confirm, str):
        _refuse_unknown_names(subject, confirm, member_names(action.inputs))
    summary = None if isinstance(confirm, bool) else confirm
    return replace(action, needs_confirmation=confirm is not False, confirmation_summary=summary)


def _refuse_unknown_names(subject: str, template: str, inputs: Iterable[str]) -> None:
    for _, name, _, _ in Formatter().parse(template):
        if name is not None and name not in inputs:
            listed = ", ".join(inputs) or "none"
            raise DeclarationError(subject, f'confirm: "{name}" is not an input.', f"There are: {listed}.")


PLUGIN = Plugin(
    name="confirmation",
    options=Confirmation,
    is_default=True,
    action_options={"confirm": Confirm},
    derive=_derive,
    gates=lambda setup: (confirmation_gate(setup),),
)

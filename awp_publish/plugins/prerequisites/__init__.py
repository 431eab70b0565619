"""Prerequisites: actions that have to succeed before a call."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from awp_publish.model import KNOWN, PUBLIC, Action, Catalog
from awp_publish.plugin import Plugin, Setup
from awp_publish.plugins.prerequisites.gate import gates_of
from awp_publish.plugins.prerequisites.successes import Successes
from awp_publish.problems import DeclarationError


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    """Return the catalog with what each action requires. Raises DeclarationError."""
    by_id = {action.id: action for action in catalog.actions}
    actions = tuple(_with_requirements(action, by_id) for action in catalog.actions)
    required = {needed for action in actions for needed in action.requires}
    return replace(
        catalog,
        actions=tuple(replace(action, is_required=True) if action.id in required else action for action in actions),
    )


def _with_requirements(action: Action, by_id: Mapping[str, Action]) -> Action:
    given: Sequence[str] = action.options.get("requires", ())
    if not given:
        return action
    requires = tuple(dict.fromkeys(given))
    for needed in requires:
        if needed not in by_id:
            raise DeclarationError(f'action "{action.id}"', f'requires: there is no action "{needed}".')
        _refuse_narrower(action, by_id[needed])
    return replace(action, requires=requires, depends_on=tuple(dict.fromkeys((*requires, *action.depends_on))))


def _refuse_narrower(action: Action, needed: Action) -> None:
    """Raise DeclarationError if some callers of an action cannot call the one that it requires."""
    if needed.audience in (PUBLIC, action.audience) or (needed.audience == KNOWN and action.audience != PUBLIC):
        return
    raise DeclarationError(
        f'action "{action.id}"',
        f'requires: "{needed.id}" is for the audience "{needed.audience}": some callers of this action cannot call it.',
        f'Give this action audience="{needed.audience}" too, or leave the requirement out.',
    )


PLUGIN = Plugin(
    name="prerequisites",
    is_default=True,
    start=lambda setup: Successes(setup.site),
    action_options={"requires": Sequence[str]},
    derive=_derive,
    gates=lambda setup: gates_of(setup.state),
)

"""Whether actions can come after those that they depend on."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import cast

from awp_publish.model import Action
from awp_publish.problems import DeclarationError


def refuse_impossible_order(actions: Sequence[Action]) -> None:
    """Raise DeclarationError for an action that could not come after those that it names."""
    ids = {action.id for action in actions}
    for action in actions:
        for needed in action.depends_on:
            if needed not in ids:
                raise DeclarationError(f'action "{action.id}"', f'depends_on: there is no action "{needed}".')
    try:
        TopologicalSorter({action.id: action.depends_on for action in actions}).prepare()
    except CycleError as error:
        cycle = " -> ".join(reversed(cast(Sequence[str], error.args[1])))
        raise DeclarationError("site", f"depends_on: actions wait for each other: {cycle}.") from error

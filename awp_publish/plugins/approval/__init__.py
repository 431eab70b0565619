"""Approval: no action is published before its owner has approved it, in a file under version control."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Final

from awp_publish.model import Action, Catalog
from awp_publish.plugin import Plugin, Setup
from awp_publish.plugins.approval.command import APPROVE
from awp_publish.plugins.approval.file import (
    Approval,
    compare,
    digests_of,
    path_of,
    read_approved,
    withhold,
    write_approved,
)
from awp_publish.problems import DeclarationError
from awp_publish.schema.options import listing

logger: Final = logging.getLogger("awp_publish")


class Approvals:
    """The approvals of one site."""

    def __init__(self, setup: Setup) -> None:
        self._site = setup.site

    @property
    def path(self) -> Path:
        """The file with the approvals."""
        return path_of(self._site.settings.approval)

    def _own_actions(self) -> dict[str, Action]:
        """Return the owner's actions by id: those of plug-ins need no approval."""
        return {one.id: one for one in self._site.catalog.actions if one.id not in self._site.own_actions}

    def digest_of(self, action: Action) -> str:
        """Return what changes whenever an approval of an action ends."""
        return digests_of(action)["digest"]

    def standing(self) -> tuple[Approval, ...]:
        """Compare each action with the approvals in the file: approved, new, changed or gone.

        Raises DeclarationError before the site is published, and for a damaged file.
        """
        return compare(self._own_actions().values(), read_approved(self.path))

    def approve(self, *actions: str) -> Path:
        """Approve actions as they are now and drop approvals of actions that are gone. Returns the file's path.

        Takes effect when the site starts again. Raises DeclarationError as `standing` does, and for an unknown action.
        """
        path, own = self.path, self._own_actions()
        for name in actions:
            if name not in own:
                raise DeclarationError(f'action "{name}"', "is not declared.", f"There are: {listing(own, name)}.")
        kept = {name: one for name, one in read_approved(path).items() if name in own}
        write_approved(path, {**kept, **{name: digests_of(own[name]) for name in actions}})
        return path


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    path = setup.state.path
    actions = withhold(catalog.actions, path, setup.site.own_actions)
    if waiting := [action.id for action in actions if not action.is_approved]:
        logger.warning(
            "%d actions are hidden, because %s does not approve them as they are (%s); "
            "awp-publish approve module:app says what is new or has changed.",
            len(waiting),
            path,
            listing(waiting),
        )
    return replace(catalog, actions=actions)


PLUGIN = Plugin(
    name="approval",
    start=Approvals,
    declares={"approvals": Approvals.standing, "approve": Approvals.approve},
    derive=_derive,
    commands={"approve": APPROVE},
)

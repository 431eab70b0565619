"""Approval: no action is published before its owner has approved it, in a file under version control."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from awp_publish.http.running import INSPECTED
from awp_publish.model import Action, Catalog
from awp_publish.plugin import Plugin, Serving, Setup
from awp_publish.plugins.approval.command import APPROVE
from awp_publish.plugins.approval.file import (
    ActionApproval,
    compare,
    digests_of,
    read_approved,
    withhold,
    write_approved,
)
from awp_publish.plugins.approval.options import Approval
from awp_publish.problems import DeclarationError
from awp_publish.schema.options import listing

logger: Final = logging.getLogger("awp_publish")


LOOK_EVERY: Final = 2.0
"""Seconds between two looks of a running process at the file."""


class Approvals:
    """The approvals of one site. `approved` are those that were read last."""

    def __init__(self, setup: Setup) -> None:
        self._site = setup.site
        self._look = asyncio.Lock()
        self._seen: tuple[int, ...] | None = None
        self.approved: Mapping[str, Mapping[str, str]] = {}
        self.path = Path(setup.options.file)
        """The file with the approvals."""

    def _own_actions(self) -> dict[str, Action]:
        """Return the owner's actions by id: those of plug-ins need no approval."""
        return {action.id: action for action in self._site.catalog.actions if action.id not in self._site.own_actions}

    def digest_of(self, action: Action) -> str:
        """Return what changes whenever an approval of an action ends."""
        return digests_of(action)["digest"]

    def read(self) -> bool:
        """Read the file. Returns False if it has not changed since. Raises DeclarationError for a damaged one."""
        seen = _state_of(self.path)
        if seen == self._seen:
            return False
        self.approved = read_approved(self.path)
        self._seen = seen
        return True

    def standing(self) -> tuple[ActionApproval, ...]:
        """Compare each action with the approvals in the file: approved, new, changed or gone.

        Raises DeclarationError before the site is published, and for a damaged file.
        """
        return compare(self._own_actions().values(), read_approved(self.path))

    def approve(self, *actions: str) -> Path:
        """Approve actions as they are now and drop approvals of actions that are gone. Returns the file's path.

        Running processes publish them within seconds. Raises DeclarationError as `standing` does, and for an unknown
        action.
        """
        path, own = self.path, self._own_actions()
        for name in actions:
            if name not in own:
                raise DeclarationError(f'action "{name}"', "is not declared.", f"There are: {listing(own, name)}.")
        entries = {name: digests for name, digests in read_approved(path).items() if name in own}
        write_approved(path, {**entries, **{name: digests_of(own[name]) for name in actions}})
        return path

    async def publish_approved(self) -> None:
        """Publish what has been approved since the file was read last."""
        async with self._look:
            try:
                if await asyncio.to_thread(self.read):
                    self._site.derive_again("approval")
            except DeclarationError as error:
                logger.warning("what was approved before stays published: %s", error)
                self._seen = _state_of(self.path)


def _state_of(path: Path) -> tuple[int, ...] | None:
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino
    return None


def _derive(setup: Setup, catalog: Catalog) -> Catalog:
    """Hide what is not approved. What this process has published stays so: a file may be of newer code."""
    approvals: Approvals = setup.state
    if not setup.site.is_frozen:
        approvals.read()
        published = setup.site.own_actions
    else:
        published = frozenset(action.id for action in catalog.actions if action.is_approved)
    actions = withhold(catalog.actions, approvals.approved, published)
    if waiting := [action.id for action in actions if not action.is_approved]:
        logger.warning(
            "hidden, because %s does not approve them as they are: %s; "
            "awp-publish approve module:app says what is new or has changed.",
            approvals.path,
            listing(waiting),
        )
    return catalog if actions == catalog.actions else replace(catalog, actions=actions)


@asynccontextmanager
async def _running(serving: Serving) -> AsyncIterator[None]:
    """Look at the file, so that an approval in any process takes effect in all."""
    if INSPECTED in serving.application.extensions():
        yield
        return

    async def look() -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await serving.state.publish_approved()

    await serving.state.publish_approved()  # since the site was prepared, which may be long ago
    task = asyncio.create_task(look(), name="awp_publish approvals")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


PLUGIN = Plugin(
    name="approval",
    options=Approval,
    start=Approvals,
    declares={"approvals": Approvals.standing, "approve": Approvals.approve},
    derive=_derive,
    running=_running,
    commands={"approve": APPROVE},
)

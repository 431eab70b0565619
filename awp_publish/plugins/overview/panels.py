"""Panels of plug-ins: tables that operators read, with a button in each row."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from awp_publish.plugin import Panel
from awp_publish.plugins.overview.html import Html, tag
from awp_publish.plugins.overview.markup import table
from awp_publish.plugins.overview.view import View, expired_form
from awp_publish.problems import InsufficientPermissions, StoreUnavailable

logger: Final = logging.getLogger("awp_publish.overview")

FIELD: Final = "awp-panel"


@dataclass(frozen=True, slots=True)
class ShownPanel:
    """A panel with its rows, which are None if the store cannot be read."""

    plugin: str
    panel: Panel
    rows: Sequence[tuple[str, Sequence[str]]] | None


async def read_panels(view: View) -> list[ShownPanel]:
    """Return the panels of the site's plug-ins, none for a reader who is no operator."""
    panels = list[ShownPanel]()
    for name, setup in view.door.site.plugins.items() if view.may_approve else ():
        if (panel := setup.plugin.panel) is not None:
            try:
                panels.append(ShownPanel(name, panel, await panel.rows(setup.state)))
            except StoreUnavailable as problem:
                logger.warning("the panel of %s cannot be read: %s", name, problem.detail)
                panels.append(ShownPanel(name, panel, None))
    return panels


def panel_section(view: View, panel: ShownPanel, notice: Html | None) -> Sequence[object]:
    """Return the table of a panel, below what a button has just done."""
    if panel.rows is None:
        return notice, tag("p", "This cannot be read at the moment.", class_="error")
    plugin, label = panel.plugin, panel.panel.button
    rows = [(*cells, view.act_button(plugin, FIELD, label, panel=plugin, row=row)) for row, cells in panel.rows]
    return notice, table(panel.panel.title, (*panel.panel.heads, ""), rows)


async def act(view: View, fields: Mapping[str, object]) -> tuple[str, Html]:
    """Do what a button of a panel is for, and return section and result. Raises a Problem for an invalid form."""
    if not view.may_approve:
        raise InsufficientPermissions('Only a caller with the scope "operator" can do that.')
    facts = view.read_act(fields[FIELD])
    setup = view.door.site.plugins.get(str(facts.get("panel")))
    if setup is None or setup.plugin.panel is None:
        raise expired_form()
    done = await setup.plugin.panel.act(setup.state, str(facts["row"]))
    return setup.plugin.name, tag("p", done, role="status")

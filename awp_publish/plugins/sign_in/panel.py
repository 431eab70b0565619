"""What the owner of a site sees in the overview: the agents that are connected, each with a button that ends it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from awp_publish.plugin import Panel

if TYPE_CHECKING:
    from awp_publish.plugins.sign_in.site import SignInSite


async def _rows(site: "SignInSite") -> Sequence[tuple[str, Sequence[str]]]:
    from awp_publish.plugins.sign_in.pages import day_of

    return [
        (
            grant.id,
            (
                grant.client_name,
                grant.host,
                grant.person_name,
                ", ".join(grant.scopes),
                day_of(max(grant.refreshed, grant.began)),
                day_of(grant.until),
            ),
        )
        for grant in await site.grants.recent()
    ]


async def _end(site: "SignInSite", grant_id: str) -> str:
    ended = await site.disconnect(grant_id)
    return (
        f"{ended.client_name} is disconnected from {ended.person_name}."
        if ended is not None
        else "It had already ended."
    )


PANEL: Final = Panel(
    title="Connected agents",
    heads=("agent", "of", "for", "may", "last used", "until"),
    rows=_rows,
    button="End",
    act=_end,
)

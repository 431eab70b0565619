"""`page.som_mutation`: what an action made of a page, told unasked to a client that wants it (paper, section 7.4).

Nothing changes by itself where no JavaScript runs, so the event follows the answer to the request that made the change.
"""

from collections.abc import Mapping
from typing import Final

from awp_publish.browsing.observing import write_cursor
from awp_publish.browsing.session import Session
from awp_publish.serve.awp_messages import tell_event

MUTATION: Final = "page.som_mutation"


def cursors_of(session: Session) -> Mapping[str, int]:
    """Where the pages of a session are."""
    return {tab.id: tab.history.cursor for tab in session.tabs.values() if tab.history.current is not None}


def tell_changes(session: Session, before: Mapping[str, int], trace: str) -> list[dict[str, object]]:
    """The events of the pages that have changed since, in the trace of the request that did it.

    The patch makes the present SOM of the one before.
    """
    events = []
    for page_id, cursor in before.items():
        tab = session.tabs.get(page_id)
        if tab is None or tab.history.cursor <= cursor:
            continue
        told = tab.observe({"mode": "mutations", "cursor": cursor})
        if told.get("changed"):
            where = {"session_id": session.id, "page_id": page_id, "cursor": write_cursor(tab.history.cursor)}
            events.append(tell_event(MUTATION, {**where, "patch": told["patch"]}, trace))
    return events

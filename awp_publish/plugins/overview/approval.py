"""What waits for approval, and the forms with which an operator approves it."""

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from awp_publish.calls.call import scopes_of
from awp_publish.calls.threads import run_in_thread
from awp_publish.model import Action, Catalog
from awp_publish.plugins.overview.html import Html, tag
from awp_publish.plugins.overview.markup import block, fill
from awp_publish.plugins.overview.view import View
from awp_publish.plugins.overview.words import policy_facts, schema_tables
from awp_publish.problems import DeclarationError, InsufficientPermissions, InvalidInput
from awp_publish.stores.store import Add, Swap

logger: Final = logging.getLogger("awp_publish.overview")

APPROVING_FOR: Final = 5.0
"""Seconds after which the lock of an operator who writes approvals expires."""

APPROVABLE_FOR: Final = 3600.0
"""Seconds for which an approval form is valid."""

FIELD: Final = "awp-approve"

MAX_DETAILED: Final = 100
"""Actions that are listed with their inputs and outputs."""


@dataclass(slots=True)
class Waiting:
    """The actions that wait, by the current file: those that the reader may know of once they are approved.

    `states` are sentences by action; `unread` says why the file cannot be read.
    """

    approvals: Any
    states: dict[str, str] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)
    visible: dict[str, Action] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    unread: str | None = None


def read_waiting(view: View) -> Waiting | None:
    """Return what waits for approval, None for a site without approval."""
    site, approvals = view.door.site, view.door.ask("approval")
    if approvals is None:
        return None
    waiting = Waiting(approvals)
    try:
        standing = approvals.standing()
    except DeclarationError as error:
        logger.warning("%s", error)
        waiting.unread = f"{approvals.path.name} cannot be read. {error.remedy}"
        return waiting
    actions = waiting.actions = {action.id: action for action in site.catalog.actions}
    approved = replace(site.catalog, actions=tuple(replace(action, is_approved=True) for action in actions.values()))
    visible = waiting.visible = {action.id: action for action in approved.visible_to(scopes_of(view.caller)).actions}
    for entry in standing:
        action, is_approved = actions.get(entry.action), entry.state == "approved"
        if action is None or (is_approved and action.is_approved) or action.id not in visible:
            continue
        if is_approved:
            state = "Approved. It stays hidden until everything that it requires is approved."
        elif entry.state == "new":
            state = "New: it was never approved."
        else:
            state = f"Changed since it was approved: {', '.join(entry.changed)}."
        waiting.states[action.id] = state
        if not is_approved:
            waiting.names.append(action.id)
    waiting.gone = [entry.action for entry in standing if view.may_approve and entry.action not in actions]
    return waiting


def approval_section(view: View, waiting: Waiting, notice: Html | None) -> Html:
    """Return the cards of the actions that wait.

    An operator's button submits the digests of the displayed actions, so that an action that has changed meanwhile is
    not approved.
    """
    if waiting.unread is not None:
        return tag("p", waiting.unread, class_="error")

    def button(names: Sequence[str], label: str) -> Html | None:
        if not view.may_approve:
            return None
        digests = {name: waiting.approvals.digest_of(waiting.actions[name]) for name in names}
        return view.act_button("approval", FIELD, label, digests=digests)

    cards = list[Html]()
    for name, state in waiting.states.items():
        own = button([name], f"Approve {name}") if name in waiting.names else None
        cards.append(_card(view.door.site.catalog, waiting.visible[name], state, own, len(cards) < MAX_DETAILED))
    line = block(f"awp-publish approve module:app {' '.join(waiting.names)}", "Line that approves them")
    return fill(
        "approval",
        notice=notice,
        cards=cards,
        none=None if cards else "Nothing is waiting.",
        gone=", ".join(waiting.gone) or None,
        button=button(waiting.names, "Approve all of these") if len(waiting.names) > 1 else None,
        command=line if waiting.names else None,
    )


def _card(catalog: Catalog, action: Action, state: str, button: Html | None, is_detailed: bool) -> Html:
    return fill(
        "card",
        ident=f"waiting-{action.id}",
        name=action.name,
        id=action.id,
        state=state,
        description=action.description,
        facts=[fill("fact", term=term, words=words) for term, words in policy_facts(catalog, action)],
        schemas=fill("schemas", id=action.id, tables=schema_tables(action)) if is_detailed else None,
        button=button,
    )


async def approve(view: View, fields: Mapping[str, object]) -> tuple[str, Html]:
    """Approve the actions of a form, and return section and result. Raises a Problem for an invalid form."""
    site, caller, approvals = view.door.site, view.caller, view.door.ask("approval")
    if approvals is None or FIELD not in fields:
        raise InvalidInput("This is not a form of the overview.", recovery="Load the page again.")
    if not view.may_approve:
        raise InsufficientPermissions('Only a caller with the scope "operator" can approve actions.')
    digests: Mapping[str, str] = view.read_act(fields[FIELD]).get("digests", {})
    now = {action.id: approvals.digest_of(action) for action in site.catalog.actions}
    same = [name for name, digest in digests.items() if now.get(name) == digest]
    notices = list[object]()
    if len(same) < len(digests):
        changed = ", ".join(name for name in digests if name not in same)
        notices.append(tag("p", f"Not approved, because it has changed since you read it: {changed}.", class_="error"))
    if same:
        name = approvals.path.name
        # One operator at a time, across processes. An action that another one has approved meanwhile is reported.
        turn, store = Add("approving", secrets.token_bytes(16), APPROVING_FOR), site.store
        while True:
            if (await store.run((turn,))).failed is None:
                break
            await asyncio.sleep(APPROVING_FOR / 100)
        try:
            late = [
                entry.action for entry in approvals.standing() if entry.state == "approved" and entry.action in same
            ]
            same = [action_id for action_id in same if action_id not in late]
            if same:
                await run_in_thread(partial(approvals.approve, *same), asyncio.to_thread)
                await approvals.publish_approved()
        except (DeclarationError, OSError) as error:
            logger.warning("the approval of %s could not be written: %s", ", ".join(same), error)
            wrong = f"{name} cannot be written. Approve on the command line."
            return "approval", tag("p", wrong, class_="error", role="alert")
        finally:
            await store.run((Swap(turn.key, turn.value, None),))
        if late:
            notices.append(tag("p", f"Already approved, and left as it is: {', '.join(late)}."))
        if same:
            logger.info("%s approved %s", caller.id if caller is not None else "", ", ".join(same))
            then = f"Every worker publishes it within seconds. Keep {name} in version control."
            notices.append(f"Approved: {', '.join(same)}. {then}")
    return "approval", tag("div", notices, role="status")

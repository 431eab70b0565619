"""Has a person agreed? (agent.json section 9)

The first call returns what would happen, the second brings a signed token. A token is bound to its caller, action and
input and to the text that the person read; it expires, and is used up by the call that it admits, in every process. If
only the route knows the caller, it is bound to the credentials sent to it.
"""

import logging
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from awp_publish.calls.call import Call, Outcome, Result
from awp_publish.calls.challenges import ask_to_sign_in
from awp_publish.calls.fingerprints import canonical, shown_by
from awp_publish.calls.gates.gate import GuardedSite, need_keys
from awp_publish.calls.tokens import Expired, NotOurs, Tokens
from awp_publish.model import Action, Catalog, seconds_of, utc_text
from awp_publish.plugin import Ask, Facts, Gate, GateCheck, Setup
from awp_publish.plugins.confirmation.problems import (
    ConfirmationExpired,
    ConfirmationForeign,
    ConfirmationMismatch,
    ConfirmationSpent,
    ConfirmationStale,
    ConfirmationTampered,
)
from awp_publish.plugins.confirmation.summarizing import Summaries
from awp_publish.problems import (
    ConfirmationRequired,
    Problem,
    Refused,
    StoreUnavailable,
)
from awp_publish.stores.store import Add, Look, Seen, Swap

logger: Final = logging.getLogger("awp_publish.calls")

SPENT_MARGIN: Final = 86400.0
"""Seconds that a used token is remembered beyond its lifetime, so that a clock set back does not revive it."""

_NOT_STARTED: Final = frozenset({"too-many-jobs", "job-queue-full"})
"""Refusals, by the feature of jobs, of calls that had been admitted, but did nothing."""

_USED: Final = "This confirmation has already been used."


class _Consent(Ask):
    """A call's confirmation: why it is asked for anew, or the step that uses it up and a digest of the summary."""

    waits = True

    def __init__(
        self, fault: tuple[type[Problem], str] | None = None, spend: Add | None = None, summary: object = None
    ) -> None:
        self.looks = () if spend is None else (Look(spend.key),)
        self.fault = fault
        self.spend = spend
        self.summary = summary


class _Confirmation(GateCheck[_Consent]):
    def __init__(self, action: Action, facts: Facts, tokens: Tokens) -> None:
        self._action = action
        self._store = facts.guards.store
        self._tokens = tokens
        self._check = facts.check
        self._rehearse = facts.rehearse if action.rehearsal is not None else None
        self._summaries = Summaries(action, facts.guards.codes)

    def ask(self, call: Call) -> _Consent:
        """Read the call's token, and look whether it was used. What the person read is compared later."""
        tokens, action = self._tokens, self._action
        if not call.members.confirmation:  # models that must fill in every member send ""
            return _Consent(fault=(ConfirmationRequired, f"Action {action.id} needs a person's confirmation."))
        try:
            facts = tokens.read(call.members.confirmation)
        except Expired:
            return _Consent(fault=(ConfirmationExpired, "The confirmation has expired."))
        except NotOurs:
            detail = "The confirmation was not issued by this site, or was modified."
            return _Consent(fault=(ConfirmationTampered, detail))
        if facts.get("action") != action.id or facts.get("caller") != call.caller_key:
            detail = "The confirmation belongs to another caller or another action."
            return _Consent(fault=(ConfirmationForeign, detail))
        if facts.get("shown") not in tokens.digests(self._shown(call)):
            return _Consent(fault=(ConfirmationForeign, "The confirmation was requested with other credentials."))
        if facts.get("input") not in tokens.digests(canonical(call.input)):
            return _Consent(fault=(ConfirmationMismatch, "The input is not the one that was confirmed."))
        # No place for an unknown caller, who may have another address by now.
        owner = f"{{user:{call.caller_key}}}" if call.principal else ""
        spend = Add(f"{owner}spent:{facts.get('id')}", b"1", tokens.lifetime + SPENT_MARGIN)
        return _Consent(spend=spend, summary=facts.get("summary"))

    async def consider(self, call: Call, ask: _Consent, seen: Sequence[Seen]) -> None:
        """Claim the confirmation. Without a valid one, raises a Problem with the question for a person.

        The summary is made again, because what the person agreed to may no longer be what would happen. No question is
        returned to a caller without credentials if the route requires some, or for an input that cannot be sent to the
        route.
        """
        is_spent = bool(seen) and seen[0] is not None
        if self._action.auth_required and not (call.principal or self._shown(call)):
            raise ask_to_sign_in(self._action)
        if self._check is not None:
            self._check(call)
        if self._rehearse is not None and ask.spend is None:
            await self._rehearse(call)
        try:
            summary = await self._summaries.of(call)
        except Problem as problem:  # a basket is empty once its order is placed
            raise ConfirmationSpent(_USED) if is_spent else problem from None
        if is_spent:
            raise self._question(call, summary, ConfirmationSpent, _USED)
        if ask.fault is not None or ask.spend is None:
            raise self._question(call, summary, *(ask.fault or (ConfirmationRequired, "")))
        if ask.summary not in self._tokens.digests(summary):
            raise self._question(call, summary, ConfirmationStale, "The call would no longer do what was confirmed.")
        ask.claims = (ask.spend,)

    async def refused(self, call: Call, ask: _Consent, failed: int, seen: Seen) -> Outcome:
        """Raise ConfirmationSpent: another call was faster."""
        raise ConfirmationSpent(_USED)

    def needs_answer(self, call: Call, ask: _Consent | None) -> bool:
        """Return False: what is given back is the confirmation of a call without an answer."""
        return False

    async def ended(self, call: Call, ask: _Consent | None, result: Result) -> None:
        """Give the confirmation of a call back that was not started, or that asks for something first."""
        if ask is None or ask.spend is None:
            return
        is_not_started = isinstance(result, Problem) and result.slug in _NOT_STARTED
        asks_first = isinstance(result, Refused) and result.status == 428  # the route did nothing (RFC 6585, section 3)
        if not (is_not_started or asks_first):
            return
        try:
            await self._store.run((Swap(ask.spend.key, ask.spend.value, None),), durable=True)
        except StoreUnavailable:
            where = (self._action.id, call.request_id)
            logger.exception("a confirmation of action %s could not be given back (request_id=%s)", *where)

    def _shown(self, call: Call) -> str:
        """Return the credentials of a caller whom only the route, or a session of ours, identifies."""
        if call.principal is not None:
            return ""
        words = f"session {call.session_id}" if call.session_id else ""
        if self._action.way is not None:
            words = shown_by(call.credentials(), self._action.route_credentials, cookies=True) + words
        return words

    def _question(self, call: Call, summary: str, kind: type[Problem], detail: str) -> Problem:
        """Return a refusal with the question for a person, and the token to send if they agree."""
        tokens = self._tokens
        facts = {
            "id": secrets.token_urlsafe(12),
            "action": self._action.id,
            "caller": call.caller_key,
            "shown": tokens.digests(self._shown(call))[0],
            "input": tokens.digests(canonical(call.input))[0],
            "summary": tokens.digests(summary)[0],
        }
        token, expires = tokens.write(facts)
        expires_at = utc_text(datetime.fromtimestamp(expires, UTC))
        question = {"token": token, "summary": summary, "expires_at": expires_at}
        return kind(detail, members={"confirmation": question})


def _check(catalog: Catalog, site: GuardedSite) -> None:
    for action in catalog.actions:
        if action.needs_confirmation:
            need_keys(action, site)


def confirmation_gate(setup: Setup) -> Gate:
    """Return the gate of a site, with the tokens that it gives and takes."""
    settings, lifetime = setup.site.settings, float(seconds_of(setup.options.within))
    tokens = Tokens(setup.site.keys, f"confirmation:{settings.namespace}", lifetime)

    def of(action: Action, facts: Facts) -> GateCheck[Any] | None:
        return _Confirmation(action, facts, tokens) if action.needs_confirmation else None

    return Gate(
        name="confirmation",
        order=800,
        of=of,
        refuses=(
            ConfirmationRequired,
            ConfirmationExpired,
            ConfirmationTampered,
            ConfirmationForeign,
            ConfirmationSpent,
            ConfirmationMismatch,
            ConfirmationStale,
        ),
        options=("confirm", 'effect="irreversible"'),
        acts=False,
        check=_check,
    )

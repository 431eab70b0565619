"""Prerequisites (agent.json section 11): a success hands out a signed receipt, a dependent call has to carry it.

A receipt is its caller's: the known one's, or that of the credentials which an unknown one shows to a route. What
nobody in particular did, anybody may build upon; that is how signing in can come first.
"""

from collections.abc import Iterable
from typing import Final

from awp_publish.model import Action
from awp_publish.policy.call import Call
from awp_publish.policy.idempotency import shown_by
from awp_publish.policy.tokens import Expired, NotOurs, Tokens
from awp_publish.problems import PrerequisiteRequired

RECEIPT: Final = b"awp-receipt"
MAX_RECEIPTS: Final = 50
"""Receipts that one call may carry; more are not read."""


class Receipts:
    """Writes and reads the receipts of a site, whose routes know callers by the credentials of these `actions`."""

    def __init__(self, tokens: Tokens, actions: Iterable[Action]) -> None:
        self._tokens = tokens
        self._credentials = frozenset(known for action in actions for known in action.route_credentials)

    def check(self, call: Call) -> None:
        """Refuse a call without a receipt of every action that it requires. Raises PrerequisiteRequired."""
        proven = frozenset(self._proven(call))
        missing = [needed for needed in call.action.requires if needed not in proven]
        if missing:
            raise PrerequisiteRequired(
                f"Action {call.action.id} needs a receipt of {', '.join(missing)}; none that was sent is valid.",
                members={"missing": missing},
            )

    def write(self, call: Call) -> tuple[bytes, bytes]:
        """The header that proves that a call has succeeded."""
        facts = {"action": call.action.id, "caller": call.caller_id}
        if shown := self._shown(call):
            facts["shown"] = self._tokens.digests(shown)[0]
        token, _ = self._tokens.write(facts)
        return RECEIPT, token.encode("ascii")

    def _proven(self, call: Call) -> Iterable[str]:
        """The actions that the call's receipts stand for."""
        shown = self._tokens.digests(self._shown(call)) if call.receipts else ()
        for receipt in call.receipts[:MAX_RECEIPTS]:
            try:
                facts = self._tokens.read(receipt)
            except (NotOurs, Expired):
                continue
            if facts.get("caller") in ("", call.caller_id) and facts.get("shown") in (None, *shown):
                yield str(facts.get("action"))

    def _shown(self, call: Call) -> str:
        """Without the session: the very actions that come first change what is in it."""
        if call.principal is not None or call.credentials is None:
            return ""
        return shown_by(call.credentials(), self._credentials, session=False)

"""The interface of gates: a `Gate` is a value, and makes a `GateCheck` for each action that it concerns.

A call passes all checks of its action in the order of their gates, in three stages:

1. `enter`: who calls, and may they know of the action? Nothing is counted yet. What is refused here needs no store.
2. `ask`: what has to be counted, looked at or claimed? The steps of all checks go to the store together.
3. `judge` and `consider`: is the call refused for what was found, answered from a record, or admitted?

Most calls need the store once, to count and to claim. If a check has to see something before anything is claimed
(`Ask.waits`), the first trip only counts and looks, and a second one claims: a call that is refused claims nothing.

When an admitted call has ended, the checks are told in the reverse order (`ended`).
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Generic, Protocol, TypeVar

from awp_publish.calls.authentication import AuthenticationGate
from awp_publish.calls.call import Call, Outcome, Result
from awp_publish.calls.callers import Authenticator
from awp_publish.model import Action, Catalog, SiteFacts
from awp_publish.problems import DeclarationError, Problem, RateLimited, Refused, in_seconds
from awp_publish.schema import Validator
from awp_publish.stores.store import Count, Counted, Seen, Step, Store


class Ask:
    """What a check wants of the store for one call. A check may keep more about the call in a subclass.

    `counts` are counted whatever comes of the call. `looks` are read if any check waits, and `claims` are carried out
    for a call that nothing else refuses; a check that `waits` may set its claims until it has considered the call. A
    `refusal` refuses the call after it was judged by this check and those before it; later ones are not asked.
    """

    # Not a dataclass: two are made for most guarded calls, and each sets only what it has.
    counts: Sequence[Step] = ()
    looks: Sequence[Step] = ()
    looked: Sequence[Seen] = ()
    """What the looks have found, once the store was asked."""
    claims: Sequence[Step] = ()
    waits: bool = False
    refusal: Callable[[], Problem] | None = None


AskT = TypeVar("AskT", bound=Ask)


class GateCheck(Generic[AskT]):
    """What a gate does for the calls of one action. Each method is optional; what is not overridden costs nothing.

    `GateCheck[Ask]`, or of the subclass of Ask that the check itself returns and gets back.
    """

    def enter(self, call: Call) -> Awaitable[None] | None:
        """Refuse a call, by raising a Problem, before anything is counted. What it returns is awaited."""
        return None

    def ask(self, call: Call) -> AskT | None:
        """Return what the store is asked, None for nothing. A Problem that is raised refuses the call in its turn."""
        return None

    def judge(self, call: Call, ask: AskT, seen: Sequence[Seen], failed: int | None) -> Outcome | None:
        """Return a recorded answer, or None to let the call pass. Raises the Problem for which it is refused.

        `seen` is what the counts found, then the looks if any check waits. `failed` is the index of a count that did
        not hold; then `seen` ends with it, and the call has to be refused.
        """
        return None

    async def consider(self, call: Call, ask: AskT, seen: Sequence[Seen]) -> None:
        """Refuse a call that all checks let pass, by raising a Problem, after what takes longer. Only if it waits."""

    async def refused(self, call: Call, ask: AskT, failed: int, seen: Seen) -> Outcome:
        """Return a recorded answer for a call of which a claim did not hold, or raise a Problem.

        `failed` is the index of the claim, `seen` what it found. By default such a call does not go with the present
        state (409), or is one too many (429).
        """
        if isinstance(claim := ask.claims[failed], Count) and isinstance(seen, Counted):
            raise too_many(f"Action {call.action.id} allows {claim.most} calls; the next is possible", seen)
        raise Refused(f"Another call of action {call.action.id} came first.")

    async def replayed(self, call: Call, answer: Outcome) -> None:
        """Add to the headers of a call that is answered from a record."""

    def needs_answer(self, call: Call, ask: AskT | None) -> bool:
        """Return True if `ended` needs the whole answer, or adds to its headers: then it is not passed on in parts."""
        return True

    async def ended(self, call: Call, ask: AskT | None, result: Result) -> None:
        """Record how an admitted call ended. It may add to the call's headers; its answer stands, whatever happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """Facts that the guards of one catalog share.

    `realm` and `metadata_url` are parts of challenges (RFC 9110 section 11.5, RFC 9728 section 5.1). `codes` are the
    site's own problem codes, with their recovery. `gates` are those of plug-ins.
    """

    store: Store
    authenticators: tuple[Authenticator, ...] = ()
    realm: str = ""
    metadata_url: str | None = None
    codes: Mapping[str, str] = field(default_factory=dict)
    gates: "tuple[Gate, ...]" = ()

    def identify(self, *, required: bool = False, scopes: tuple[str, ...] = ()) -> AuthenticationGate:
        """Return a gate that identifies the caller of a request that is not a call of an action."""
        known = self.authenticators, required, scopes, self.realm, self.metadata_url
        return AuthenticationGate(*known, store=self.store)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the gates of one action are made of.

    `inputs` validates its input. `check` raises InvalidInput for a call that cannot be sent to its route, `rehearse`
    whatever the route's own security raises for its caller. `clock` tells Unix seconds.
    """

    guards: Guards
    inputs: Validator
    check: Callable[[Call], None] | None = None
    rehearse: Callable[[Call], Awaitable[None]] | None = None
    clock: Callable[[], float] = time.time


class GuardedSite(Protocol):
    """What a gate may have to know of a site to tell whether it can guard its actions."""

    facts: SiteFacts
    settings: Any
    authenticators: tuple[Authenticator, ...]

    @property
    def store(self) -> Store: ...
    def door_names(self) -> frozenset[str]:
        """Return the names of all doors of the site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate: its place among the others, the options that declare it, and the problems with which it refuses.

    `of` returns the check of an action, None if the gate does not concern it. A gate that is not `alone` guards
    nothing by itself: an action with no other gate is called without any. One without `acts` does nothing before the
    handler that others would see, except for an action that `needs_confirmation`. `check` raises DeclarationError when
    the site is published, for a declaration that the gate cannot keep there.
    """

    name: str
    order: int
    of: Callable[[Action, Facts], GateCheck[Any] | None]
    refuses: tuple[type[Problem], ...]
    options: tuple[str, ...] = ()
    alone: bool = True
    acts: bool = True
    check: Callable[[Catalog, GuardedSite], None] | None = None


def need_keys(action: Action, site: GuardedSite) -> None:
    """Raise DeclarationError if other processes could not verify the tokens of an action's gate."""
    if site.store.is_shared and not site.settings.secret_keys:  # a store in memory works with any key
        raise DeclarationError(
            f'action "{action.id}"',
            "needs signed tokens, and the site has no secret_keys.",
            'Give Site(secret_keys=["..."]) one that all processes share, from the environment say.',
        )


def too_many(detail: str, seen: Counted) -> RateLimited:
    """Return the refusal for a limit; `detail` goes on with "in ... seconds"."""
    seconds = max(1, ceil(seen.seconds_left))
    return RateLimited(
        f"{detail} in {in_seconds(seconds)}.",
        headers=[("Retry-After", str(seconds))],
        members={"retry_after": seconds},
    )

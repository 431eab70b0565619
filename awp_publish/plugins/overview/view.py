"""What one reader of the overview is shown: the catalog, documents, findings and traffic that are theirs to see."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from awp_publish.calls.call import Principal, key_of
from awp_publish.calls.tokens import Expired, NotOurs, Tokens
from awp_publish.calls.wire import Wire
from awp_publish.checks import Finding
from awp_publish.http.documents import Prepared
from awp_publish.model import OPERATOR, Action, Catalog
from awp_publish.plugin import Context
from awp_publish.plugins.overview.html import Html
from awp_publish.plugins.overview.markup import fill
from awp_publish.problems import InvalidInput


class CallCounts(Protocol):
    """The number of an action's calls, by kind of outcome: "ok", "asked", "refused", "failed"."""

    kinds: dict[str, int]

    @property
    def calls(self) -> int: ...
    @property
    def errors(self) -> int: ...
    @property
    def p95(self) -> float | None: ...
    @property
    def p95_text(self) -> str | None: ...


class RecordedTraffic(Protocol):
    """The report of the plug-in that records traffic over some days, if the site has it."""

    @property
    def days(self) -> Sequence[str]: ...
    @property
    def rows(self) -> Sequence[object]: ...
    def figures(self) -> Mapping[str, CallCounts]: ...
    def total(self) -> CallCounts: ...
    def calls_on(self, day: str) -> int: ...
    def of_action(self, action_id: str) -> "RecordedTraffic": ...
    def of_actions(self, action_ids: Collection[str]) -> "RecordedTraffic": ...
    def failures(self) -> Mapping[tuple[str, ...], int]: ...
    def chart(self, *, height: int, legend: bool) -> str: ...
    def table(self) -> str: ...
    def breakdowns(self, *, with_callers: bool) -> Iterable[Any]: ...


Traffic: TypeAlias = RecordedTraffic | str | None
"""The report, the reason why it cannot be read, or None if no traffic is kept."""


def expired_form() -> InvalidInput:
    """Return the refusal of a form whose token is not valid."""
    return InvalidInput("This form has expired, or was made for somebody else.", recovery="Load the page again.")


@dataclass(frozen=True, slots=True)
class View:
    """The material of a page of the overview. `wires` are the protocols that the site speaks, `tokens` sign forms.

    `catalog` and `traffic` have the actions that the reader may know of; `is_restricted` means that the overview
    requires a scope.
    """

    door: Context
    root: str
    wires: tuple[Wire, ...]
    caller: Principal | None
    is_restricted: bool
    tokens: Tokens
    catalog: Catalog
    documents: Mapping[str, Prepared]
    findings: Sequence[Finding] = ()
    traffic: Traffic = None

    @property
    def may_approve(self) -> bool:
        """True if the overview requires a scope, or the caller has the scope "operator"."""
        return self.is_restricted or (self.caller is not None and OPERATOR in self.caller.scopes)

    def act_button(self, section: str, field: str, label: str, **facts: object) -> Html:
        """Return a button that submits `facts` in a signed token, which is for this operator alone."""
        token, _ = self.tokens.write({"caller": key_of(self.caller), **facts})
        return fill("act", root=self.root, section=section, name=field, token=token, label=label)

    def read_act(self, token: object) -> Mapping[str, Any]:
        """Return the facts of a button. Raises InvalidInput if its token has expired or is somebody else's."""
        facts: Mapping[str, Any] = {}
        with suppress(NotOurs, Expired):
            facts = self.tokens.read(str(token))
        if not facts or facts["caller"] != key_of(self.caller):
            raise expired_form()
        return facts

    def wires_of(self, action: Action) -> tuple[Wire, ...]:
        """Return the protocols whose doors offer an action."""
        return tuple(wire for wire in self.wires if self.door.catalog.offers(wire.door, action))

    def doors_of(self, action: Action) -> list[str]:
        """Return the names of the doors that offer an action."""
        names = list(dict.fromkeys(wire.title for wire in self.wires_of(action)))
        has_bridge = self.door.catalog.door("bridge") is not None and action.is_exposed_at("bridge")
        return [*names, "Actions Bridge"] if has_bridge else names

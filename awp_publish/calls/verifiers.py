"""A site's own check of credentials, and the people whom an authenticator knows."""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import ClassVar, Final, TypeAlias, TypeVar

from awp_publish.calls.call import Credentials, Principal
from awp_publish.calls.callers import Scheme
from awp_publish.calls.threads import run_in_thread
from awp_publish.problems import DeclarationError
from awp_publish.schema.handlers import accepts

Evidence = TypeVar("Evidence")

Verdict: TypeAlias = Principal | str | bool | None
"""What a check may return: the caller, the caller's id, or None or False for nobody."""

Verify: TypeAlias = Callable[[Evidence], Verdict | Awaitable[Verdict]]
Ask: TypeAlias = Callable[[Evidence], Awaitable[Principal | None]]

OWN: Final = "own"
"""The people whom a check of the site's own knows, unless it names them."""

# A principal is a name together with who vouches for it. An authenticator vouches for the people whom it knows: under
# the name that its site gives them (`people=`), or under one of its kind. Two authenticators of one kind could hold
# different people of the same name, so they need names: different ones, or the same one for the same people.

_PEOPLE: Final = re.compile(r"[!-~]{1,200}")
_PEOPLE_HELP: Final = 'Write people="staff": a name without spaces that never changes.'


def check_people(name: str, people: object) -> None:
    """Refuse a name for the people of an authenticator that could not stand in a key. Raises DeclarationError."""
    if people is not None and not (isinstance(people, str) and _PEOPLE.fullmatch(people)):
        raise DeclarationError("site", f"{name}: people is not a name.", _PEOPLE_HELP)


def people_of(authenticator: object) -> str:
    """Return who vouches for the callers of an authenticator: the issuer of those that name none themselves."""
    people = getattr(authenticator, "people", None)
    return people if isinstance(people, str) and people else str(getattr(authenticator, "kind", OWN))


def vouched(principal: Principal | None, issuer: str) -> Principal | None:
    """Return a caller with the issuer that vouches for it, unless it has one."""
    return principal if principal is None or principal.issuer else replace(principal, issuer=issuer)


def read_verifier(verify: Verify[Evidence], remedy: str, issuer: str) -> Ask[Evidence]:
    """Make a check awaitable. One that is not async runs in a thread, because it may query a database.

    `issuer` vouches for callers without one. Raises DeclarationError with `remedy` if it is not callable.
    """
    if not callable(verify) or isinstance(verify, type) or not accepts(verify, 1):
        raise DeclarationError("site", f"{_described(verify)} cannot check credentials.", remedy)
    waits = any(inspect.iscoroutinefunction(each) for each in (verify, getattr(verify, "__call__", None)))  # noqa: B004

    def call(evidence: Evidence) -> Verdict | Awaitable[Verdict]:
        try:
            return verify(evidence)
        except StopIteration as error:  # a future cannot hold it, so that the caller would wait forever
            raise RuntimeError("A check of credentials raised StopIteration.") from error

    async def ask(evidence: Evidence) -> Principal | None:
        answer = verify(evidence) if waits else await run_in_thread(partial(call, evidence), asyncio.to_thread)
        return vouched(read_verdict(await answer if inspect.isawaitable(answer) else answer), issuer)

    return ask


def read_verdict(verdict: object) -> Principal | None:
    """Return the caller that a check returned; an empty id is nobody. Raises TypeError for any other value."""
    if verdict is None or verdict is False:
        return None
    principal = Principal(verdict) if isinstance(verdict, str) else verdict
    if not isinstance(principal, Principal):
        raise TypeError(f"A check of credentials returned {_described(verdict)}, not a Principal, an id or None.")
    return principal if principal.id else None


def _described(value: object) -> str:
    """Describe a value only by its type: what is given in the wrong place may be a secret."""
    return f"The class {value.__name__}" if isinstance(value, type) else f"A value of type {type(value).__name__}"


@dataclass(frozen=True, slots=True)
class Custom:
    """Callers identified by the site's own function: `verify` takes the Credentials, plain or async.

    It returns a Principal, the caller's id, or None for nobody, and raises InvalidCredentials for wrong credentials. A
    site with several such functions says with `people` whom each of them knows.
    """

    scheme: ClassVar[Scheme | None] = None
    method: ClassVar[str] = "custom"
    challenge: ClassVar[str] = ""
    kind: ClassVar[str] = OWN

    verify: InitVar[Verify[Credentials]]
    people: str | None = None
    _ask: Ask[Credentials] = field(init=False, repr=False)

    def __post_init__(self, verify: Verify[Credentials]) -> None:
        remedy = "Give a function (Credentials) -> Principal | str | None."
        check_people("Custom", self.people)
        object.__setattr__(self, "_ask", read_verifier(verify, remedy, people_of(self)))

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller that the site's function finds."""
        return await self._ask(credentials)

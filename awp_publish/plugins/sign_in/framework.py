"""What the framework of a site knows of its users by itself: who they are, where they sign in, what they may do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

from awp_publish.calls.call import Credentials
from awp_publish.http.exchange import Scope


@dataclass(frozen=True, slots=True)
class Language:
    """The language of a page: its tag (BCP 47), and the function that translates a text of ours into it."""

    tag: str = "en"
    translate: Callable[[str], str] = str


ENGLISH: Final = Language()


class Framework:
    """The knowledge that a site's framework has of its users; this one has none."""

    signs_out: ClassVar[bool] = False

    def login(self) -> str | None:
        """Return the login page, a path below the site or an address. Raises DeclarationError if it is wrong."""
        return None

    def user(self) -> Any:
        """Return what tells who is signed in, as the option `user`."""
        return None

    async def begin_session(self, scope: Scope, seconds: int) -> list[str] | None:
        """Begin a session of its own for the user of a request, and return its Set-Cookie lines; None for no session.

        It ends after so many seconds.
        """
        return None

    async def end_session(self, cookies: Mapping[str, str]) -> None:
        """End a session that was begun here. One that was not stays."""

    async def sign_out(self, scope: Scope) -> bool:
        """Sign the user of a request out of their own browser, if the framework `signs_out`."""
        return False

    def is_permission(self, scope: str) -> bool:
        """Return True if a scope is a permission, which the site gives and takes whatever a token says."""
        return False

    async def permitted(
        self, scopes: frozenset[str], person: str, credentials: Credentials, cookies: Mapping[str, str] | None
    ) -> frozenset[str] | None:
        """Return those of the scopes that the site lets a person have at present; None for somebody signed out.

        `person` is their id, `credentials` are those of the request, `cookies` those with which calls are made, None if
        `as_user` returns headers for them.
        """
        return scopes

    async def render(self, scope: Scope, template: str, facts: Mapping[str, object]) -> str | None:
        """Render a page for a request by the project's own template of this name, None if it has none."""
        return None

    def language_of(self, scope: Scope) -> Language:
        """Return the language in which a page answers a request."""
        return ENGLISH

    async def name_of(self, scope: Scope) -> str:
        """Return the name of the user of a request, for people to read; "" for none."""
        return ""


FRAMEWORKS: Final[WeakKeyDictionary[object, Framework]] = WeakKeyDictionary()
"""The frameworks of sites whose adapters have said so."""

_NONE: Final = Framework()


def framework_of(site: object) -> Framework:
    """Return what the framework of a site knows."""
    return FRAMEWORKS.get(site, _NONE)

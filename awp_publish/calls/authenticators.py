"""A site's authenticators: read from what its owner gives, and published in its documents."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

from awp_publish.calls.call import Credentials, Principal
from awp_publish.calls.callers import AgentAuthenticator, Authenticator, Scheme, TokenAuthenticator
from awp_publish.calls.verifiers import Custom, people_of, vouched
from awp_publish.problems import DeclarationError

_AUTHENTICATE_HELP: Final = (
    'Give BearerToken(...), ApiKey(...), JwtBearer(...), SessionUser("user_id"), ApplicationUser(), '
    "SharedSecret(...), a function (Credentials) -> Principal | str | None, or a list of these."
)

ADAPTERS: Final[list[Callable[[object], Authenticator | None]]] = []
"""Functions that adapt another framework's authentication to an authenticator; None for anything else."""


def read_authenticators(value: object) -> tuple[Authenticator, ...]:
    """Return the authenticators of a site. Raises DeclarationError."""
    if value is None:
        return ()
    authenticators: list[Authenticator] = []
    for each in value if isinstance(value, (list, tuple)) else (value,):
        adapted = next((result for adapt in ADAPTERS if (result := adapt(each)) is not None), None)
        if adapted is not None:
            authenticators.append(adapted)
            continue
        if isinstance(each, type):
            raise DeclarationError(
                "site", f"authenticate: {each.__name__} is a class, not an instance.", _AUTHENTICATE_HELP
            )
        if not callable(each):
            detail = f"authenticate: a value of type {type(each).__name__} cannot identify callers."
            raise DeclarationError("site", detail, _AUTHENTICATE_HELP)
        is_complete = all(hasattr(each, name) for name in ("scheme", "method", "challenge"))
        authenticators.append(each if is_complete else Custom(each))
    named_otherwise = (AgentAuthenticator, TokenAuthenticator)  # by their signatures, and by their issuers
    vouching = [each for each in authenticators if not isinstance(each, named_otherwise)]
    nameless = sorted((each for each in vouching if getattr(each, "people", None) is None), key=people_of)
    for kind, group in groupby(nameless, key=people_of):
        if len(list(group)) > 1:
            raise DeclarationError(
                "site",
                f'authenticate: several authenticators identify callers as "{kind}", and the same id may mean somebody '
                "else at each of them.",
                'Give each of them people="...": different names, or the same name if they identify the same people. '
                'Write a function as Custom(function, people="...").',
            )
    return tuple(each if hasattr(each, "kind") else Vouching(each) for each in authenticators)


class Vouching:
    """An authenticator of the site's own, which vouches for the callers that it finds."""

    def __init__(self, authenticator: Any) -> None:
        self._authenticator = authenticator
        self.kind = people_of(authenticator)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._authenticator, name)

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the caller, with its issuer."""
        return vouched(await self._authenticator(credentials), self.kind)


def published_facts(authenticators: Sequence[Authenticator]) -> tuple[Scheme | None, tuple[str, ...]]:
    """Return agent.json's auth.type (the first one) and AWAS's methods, in order."""
    scheme = next((each.scheme for each in authenticators if each.scheme is not None), None)
    return scheme, tuple(dict.fromkeys(each.method for each in authenticators))

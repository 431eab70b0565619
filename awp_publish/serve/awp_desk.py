"""What the methods of the AWP door work with: what all clients of one address share, and what one client has."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from awp_publish.browsing.errors import AwpError
from awp_publish.model import Browsing, Catalog, JsonObject
from awp_publish.policy.idempotency import read_key
from awp_publish.policy.tokens import Tokens
from awp_publish.serve.awp_callers import Callers, Identity
from awp_publish.serve.awp_fetch import Surface
from awp_publish.serve.awp_messages import Request
from awp_publish.serve.awp_repeats import Repeats, fingerprint_of
from awp_publish.serve.awp_sessions import Held, Sessions, not_found, read_session_id
from awp_publish.serve.awp_skills import Skills


@dataclass(frozen=True, slots=True)
class Desk:
    """What all clients share. `longest` are the seconds that anything may take."""

    catalog: Catalog
    browsing: Browsing
    sessions: Sessions
    callers: Callers
    skills: Skills
    exports: Tokens
    longest: float


class Client:
    """One client: where its requests to the site come in, who it is since its handshake, and what it has been told.

    `wanted` are the events that it asked for, `events` those that it is to be told after the present answer.
    """

    def __init__(self, desk: Desk, surface: Surface) -> None:
        self.desk = desk
        self.surface = surface
        self.identity: Identity | None = None
        self.repeats = Repeats()
        self.wanted: frozenset[str] = frozenset()
        self.events: list[dict[str, object]] = []

    @property
    def caller(self) -> Identity:
        """Who it is. Raises AwpError before the handshake."""
        if self.identity is None:
            raise AwpError("INVALID_REQUEST", "Must send awp.hello before any other method")
        return self.identity

    def find(self, request: Request) -> Held:
        """The session that a request is about. Raises AwpError."""
        return self.desk.sessions.find(self, self.caller.id, read_session_id(request.params))

    def check_open(self, held: Held) -> None:
        """A session may have been closed, or resumed elsewhere, while a request waited for its turn."""
        if not held.is_open or held.holder is not self:
            raise not_found(held.id)


async def once(repeats: Repeats, request: Request, run: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
    """The answer under a request's idempotency key, if there is one; else what `run` comes to, which is remembered.

    Raises InvalidIdempotencyKey for a key that is none.
    """
    if request.key is None:
        return await run()
    key, fingerprint = read_key(request.key), fingerprint_of(request.method, request.params)
    async with repeats.turn:
        found = repeats.find(key, fingerprint)
        if found is not None:
            return found
        result = await run()
        repeats.keep(key, fingerprint, result)
        return result

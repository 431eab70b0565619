"""What people have allowed: one record in the store for each grant, with its code and its tokens.

A grant begins with an authorization code. The code is exchanged for an access token and a refresh token, of which the
store has only digests. Everything that happens to a grant replaces its record if nothing else has meanwhile, so that of
two who come at once one wins, and a process that is killed leaves the grant as it was or as it is to be.

A code or token carries the id of its grant, and an authentication code: what this site has not issued is recognized
without the store, and a refresh token that is not the present one was used before.
"""

import hashlib
import hmac
import math
import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from typing import Final, Literal, NamedTuple, TypeAlias

import orjson

from awp_publish.browsing.addresses import WebAddress
from awp_publish.browsing.cookies import Cookie, cookie_header
from awp_publish.calls.tokens import Tokens
from awp_publish.plugins.sign_in.clients import KnownClient
from awp_publish.plugins.sign_in.errors import OAuthError
from awp_publish.plugins.sign_in.redirects import shown_host
from awp_publish.stores.store import SESSION, Add, Look, Store, Swap, unavailable
from awp_publish.stores.values import change_value

GRANT: Final = f"{SESSION}grant:"
"""The prefix of the keys of grants, which hold cookies as sessions do."""

OF_PERSON: Final = f"{SESSION}grants-of:"
"""The prefix of the keys of the lists of grants, one for each person."""

RECENT: Final = "sign-in:recent"
"""The key of the list of the newest grants, whoever has allowed them."""

CODE_SECONDS: Final = 60.0
"""Seconds within which a code has to be exchanged."""

GRACE_SECONDS: Final = 30.0
"""Seconds in which a refresh token may be sent again, because the answer with its successor was lost."""

MAX_OF_PERSON: Final = 50
"""Grants of one person. With one more, the oldest ends."""

MAX_RECENT: Final = 500
"""Grants that the owner of a site is shown, the newest."""

MAX_TOKENS: Final = 8
"""Access tokens of one grant that are valid at once, and refresh tokens that were issued within a grace."""

MAX_TRIES: Final = 50
"""How often a change is tried again while others change the same record."""

Kind: TypeAlias = Literal["code", "access", "refresh"]
ACCESS: Final = "awp_at_"
_PREFIXES: Final[Mapping[Kind, str]] = {"code": "awp_code_", "access": ACCESS, "refresh": "awp_rt_"}
_REST: Final = re.compile(r"([A-Za-z0-9_-]{22})([A-Za-z0-9_-]{32})([0-9a-f]{32})")


class Issued(NamedTuple):
    """Tokens for a client. `refresh` is None for one that acts for itself; `seconds` is how long `access` is valid."""

    access: str
    refresh: str | None
    seconds: int
    scopes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grant:
    """The permission that a person has given a client, or an owner a client of its own (`person` is None).

    `person` is the key of a principal. `access` are digests of access tokens, each with its end and its scopes;
    `refresh` are digests of the refresh tokens that may be used, `previous` that of the last one used, with the end of
    its grace. `code` is that of the authorization code, which stays when it `is_used`. All of them are bound to the
    `key` with this thumbprint, if there is one, and to a client that authenticates if it `is_confidential`. Times are
    Unix seconds.
    """

    id: str
    client: str
    client_name: str
    person: str | None
    person_name: str
    scopes: tuple[str, ...]
    began: float
    until: float
    cookies: tuple[Cookie, ...] = ()
    code: str = ""
    code_until: float = 0.0
    redirect: str = ""
    challenge: str = ""
    key: str = ""
    is_used: bool = False
    access: Mapping[str, tuple[float, tuple[str, ...]]] = field(default_factory=dict)
    refresh: tuple[str, ...] = ()
    previous: tuple[str, float] = ("", 0.0)
    refreshed: float = 0.0
    is_confidential: bool = False
    raw: bytes = field(default=b"", repr=False, compare=False)
    _sent: dict[WebAddress, tuple[bytes, float]] = field(init=False, default_factory=dict, repr=False, compare=False)

    @property
    def host(self) -> str:
        """The host of the client's id, or else that to which its answer went: it tells clients of one name apart."""
        return shown_host(self.client if self.client.startswith("https://") else self.redirect)

    def cookie_header(self, address: WebAddress) -> bytes:
        """Return the header Cookie of requests to an address. It is made once, for as long as no cookie ends."""
        now = time.time()
        header, until = self._sent.get(address, (b"", 0.0))
        if until <= now:
            ends = [cookie.expires for cookie in self.cookies if cookie.expires is not None and cookie.expires > now]
            header = cookie_header(self.cookies, address, now).encode("latin-1", "replace")
            self._sent[address] = header, min(ends, default=math.inf)
        return header


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """An access token of a grant. The same one is found as long as the grant does not change."""

    grant: Grant
    scopes: frozenset[str]
    until: float


MAX_FOUND: Final = 1000
"""Access tokens of which a worker remembers what the store had last."""


def digest_of(token: str) -> str:
    """Return the digest of a code or token, which has enough random bits to need no salt."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a verifier (RFC 7636 section 4.2)."""
    return urlsafe_b64encode(hashlib.sha256(verifier.encode("ascii", "replace")).digest()).rstrip(b"=").decode()


def _check_client(grant: Grant, client: KnownClient, kind: str) -> None:
    """Raise OAuthError unless a grant is this client's, which has authenticated if it has to (RFC 6749 section 3.2.1).

    What a metadata document says is not asked again: whoever leaves the assertion out must not be better off.
    """
    if grant.client != client.id:
        raise OAuthError("invalid_grant", f"The {kind} was issued to another client.")
    if grant.is_confidential and not client.is_confidential:
        raise OAuthError("invalid_client", "The client has to authenticate, as it did when people allowed it.")


def _check_key(grant: Grant, key: str) -> None:
    """Raise OAuthError unless the client has proven the key of a grant (RFC 9449 sections 5 and 10)."""
    if grant.key and key != grant.key:
        raise OAuthError("invalid_grant", "The grant is bound to a key, and the request has no DPoP proof of it.")


_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class Grants:
    """The grants of one site. Every method that uses the store raises StoreUnavailable."""

    def __init__(
        self,
        store: Store,
        tokens: Tokens,
        seconds: int,
        clock: Callable[[], float] = time.time,
        end_session: Callable[[Mapping[str, str]], Awaitable[None]] | None = None,
    ) -> None:
        """Create the grants. `tokens` authenticate codes and tokens; access tokens are valid for so many `seconds`.

        `end_session` ends the session that a grant with these cookies has of its own, if any.
        """
        self._store = store
        self._end_session = end_session
        self._tokens = tokens
        self._seconds = seconds
        self._clock = clock
        self._found: dict[str, Access] = {}

    # Codes and tokens

    def issue(self, kind: Kind, grant_id: str) -> str:
        """Return a new code or token of a grant."""
        body = grant_id + secrets.token_urlsafe(24)
        return _PREFIXES[kind] + body + self._tokens.digests(kind + body)[0][:32]

    def grant_of(self, kind: Kind, token: str) -> str | None:
        """Return the id of the grant of a code or token, None for one that this site has not issued."""
        prefix = _PREFIXES[kind]
        matched = _REST.fullmatch(token.removeprefix(prefix)) if token.startswith(prefix) else None
        if matched is None:
            return None
        digests = self._tokens.digests(kind + matched[1] + matched[2])
        is_ours = any(hmac.compare_digest(digest[:32], matched[3]) for digest in digests)
        return matched[1] if is_ours else None

    # From consent to tokens

    async def begin(self, grant: Grant, redirect: str = "", challenge: str = "") -> str:
        """Keep a new grant, and return its authorization code."""
        grant_id = secrets.token_urlsafe(16)
        code = self.issue("code", grant_id)
        begun = replace(
            grant,
            id=grant_id,
            code=digest_of(code),
            code_until=self._clock() + CODE_SECONDS,
            redirect=redirect,
            challenge=challenge,
        )
        # As long as a late client can be told that its code is over.
        await self._store.run((Add(GRANT + grant_id, _write(begun), 10 * CODE_SECONDS),), durable=True)
        return code

    async def exchange(
        self, code: str, client: KnownClient, redirect: str | None, verifier: str, key: str = ""
    ) -> Issued:
        """Exchange a code for tokens, bound to a `key` if the client has proven one. Raises OAuthError.

        Its errors are those of RFC 6749 section 5.2 and RFC 7636 section 4.6. The `redirect` is compared if it is
        there: RFC 6749 section 4.1.3 demands it, and OAuth 2.1 section 10.2 drops it, as the verifier does what it did.

        A code that comes a second time ends what it gave the first time (RFC 9700 section 2.1.1).
        """
        grant_id = self.grant_of("code", code)
        for _ in range(MAX_TRIES):
            grant = await self._load(grant_id) if grant_id is not None else None
            if grant is None or grant.code != digest_of(code):
                raise OAuthError("invalid_grant", "The code is unknown or has expired.")
            _check_client(grant, client, "code")
            if grant.is_used:
                await self.end(grant.id)
                raise OAuthError("invalid_grant", "The code has already been used, and its tokens were revoked.")
            if grant.code_until <= self._clock():
                raise OAuthError("invalid_grant", f"The code has expired: it is valid for {CODE_SECONDS:g} seconds.")
            if redirect is not None and redirect != grant.redirect:
                raise OAuthError("invalid_grant", "redirect_uri differs from that of the authorization request.")
            if not _VERIFIER.fullmatch(verifier) or not hmac.compare_digest(challenge_of(verifier), grant.challenge):
                raise OAuthError("invalid_grant", "code_verifier does not match the code_challenge.")
            _check_key(grant, key)
            changed, issued = self._with_tokens(replace(grant, is_used=True, key=key), grant.scopes)
            if await self._swap(grant, changed):
                await self._list(changed)
                return issued
        raise unavailable("Too many requests use the grant at the same time.")

    async def refresh(self, token: str, client: KnownClient, scopes: Sequence[str] | None, key: str = "") -> Issued:
        """Exchange a refresh token for new tokens, bound to a `key` if the client has proven one. Raises OAuthError.

        `scopes` may be fewer than those of the grant; None means all. A token that was used before ends the grant
        (RFC 9700 section 4.14.2), unless its answer may have been lost.
        """
        grant_id, digest = self.grant_of("refresh", token), digest_of(token)
        for _ in range(MAX_TRIES):
            now = self._clock()
            grant = await self._load(grant_id) if grant_id is not None else None
            if grant is None or not grant.is_used or grant.until <= now:
                raise OAuthError("invalid_grant", "The refresh token is not known, or its grant has ended.")
            _check_client(grant, client, "refresh token")
            if not (client.is_confidential and key):  # its tokens are bound to its authentication (RFC 9449 section 5)
                _check_key(grant, key)
            requested = grant.scopes if scopes is None else tuple(dict.fromkeys(scopes))
            if not set(requested) <= set(grant.scopes):
                raise OAuthError("invalid_scope", f"The person has allowed {' '.join(grant.scopes) or 'no scopes'}.")
            if digest in grant.refresh:
                changed = replace(grant, refresh=(), previous=(digest, now + GRACE_SECONDS))
            elif grant.previous[0] == digest and now < grant.previous[1] and len(grant.refresh) < MAX_TOKENS:
                changed = grant
            else:
                await self.end(grant.id)
                raise OAuthError("invalid_grant", "The refresh token has already been used, and its grant was revoked.")
            changed, issued = self._with_tokens(replace(changed, refreshed=now, key=key), requested)
            if await self._swap(grant, changed):
                return issued
        raise unavailable("Too many requests use the grant at the same time.")

    async def of_refresh_token(self, token: str) -> Grant | None:
        """Return the grant of a refresh token, whether this may still be used or not; None for any other token."""
        grant_id = self.grant_of("refresh", token)
        return await self._load(grant_id) if grant_id is not None else None

    async def issue_to_client(self, grant: Grant) -> Issued:
        """Return an access token for a client that acts for itself."""
        begun, issued = self._with_tokens(replace(grant, id=secrets.token_urlsafe(16), is_used=True), grant.scopes)
        begun = replace(begun, refresh=())
        await self._store.run((Add(GRANT + begun.id, _write(begun), float(self._seconds)),), durable=True)
        return issued._replace(refresh=None)

    def _with_tokens(self, grant: Grant, scopes: tuple[str, ...]) -> tuple[Grant, Issued]:
        now = self._clock()
        seconds = max(1, round(min(self._seconds, grant.until - now)))
        access, refresh = self.issue("access", grant.id), self.issue("refresh", grant.id)
        valid = sorted((item for item in grant.access.items() if item[1][0] > now), key=lambda item: item[1][0])
        tokens = dict(valid[-(MAX_TOKENS - 1) :]) | {digest_of(access): (now + seconds, scopes)}
        changed = replace(grant, access=tokens, refresh=(*grant.refresh, digest_of(refresh)))
        return changed, Issued(access, refresh, seconds, scopes)

    # A grant's life

    async def find(self, access_token: str) -> Access | None:
        """Return what a valid access token stands for, None for any other."""
        digest = digest_of(access_token)
        access = self._found.get(digest)
        grant_id = access.grant.id if access is not None else self.grant_of("access", access_token)
        if grant_id is None:
            return None
        raw = (await self._store.run((Look(GRANT + grant_id),))).seen[0]
        if access is None or access.grant.raw != raw:
            self._found.pop(digest, None)
            grant = _read(raw) if isinstance(raw, bytes) else None
            if grant is None or digest not in grant.access:
                return None
            until, scopes = grant.access[digest]
            access = self._found[digest] = Access(grant, frozenset(scopes), min(until, grant.until))
            if len(self._found) > MAX_FOUND:
                del self._found[next(iter(self._found))]
        return access if access.until > self._clock() else None

    async def keep_cookies(self, grant: Grant, change: Callable[[tuple[Cookie, ...]], tuple[Cookie, ...]]) -> None:
        """Change the cookies of a grant, unless it has ended."""
        for _ in range(MAX_TRIES):
            cookies = change(grant.cookies)
            if cookies == grant.cookies or await self._swap(grant, replace(grant, cookies=cookies)):
                return
            current = await self._load(grant.id)
            if current is None:
                return
            grant = current

    async def end_of_token(self, token: str, client: KnownClient) -> None:
        """End the grant of a refresh token, or one access token alone. Raises OAuthError (RFC 7009 section 2.1)."""
        for kind in ("access", "refresh"):
            grant_id = self.grant_of(kind, token)
            if grant_id is None:
                continue
            for _ in range(MAX_TRIES):
                grant = await self._load(grant_id)
                if grant is None:
                    return
                _check_client(grant, client, "token")
                if kind == "refresh":
                    await self.end(grant.id)
                    return
                remaining = {digest: facts for digest, facts in grant.access.items() if digest != digest_of(token)}
                if await self._swap(grant, replace(grant, access=remaining)):
                    return

    async def end(self, grant_id: str) -> Grant | None:
        """End a grant, with all of its tokens and the session that it has, and return it; None if there was none."""
        for _ in range(MAX_TRIES):
            grant = await self._load(grant_id)
            if grant is None:
                return None
            ran = await self._store.run((Swap(GRANT + grant_id, grant.raw, None),), durable=True)
            if ran.failed is None:
                if self._end_session is not None:
                    await self._end_session({cookie.name: cookie.value for cookie in grant.cookies})
                return grant
        raise unavailable("Too many requests use the grant at the same time.")

    async def of_person(self, person: str) -> list[Grant]:
        """Return the grants of a person that have tokens, the newest first."""
        raw = (await self._store.run((Look(_list_key(person)),))).seen[0]
        return [grant for grant in await self._loaded(_read_list(raw)) if grant.is_used and grant.person == person]

    async def recent(self) -> list[Grant]:
        """Return the newest MAX_RECENT grants that have not ended, the newest first."""
        raw = (await self._store.run((Look(RECENT),))).seen[0]
        return await self._loaded(_read_list(raw))

    async def _list(self, grant: Grant) -> None:
        """Put a grant on the owner's list, and on that of its person. Of a person's too many the oldest ends."""
        if grant.person is None:
            return
        await self._put_first(grant, RECENT, MAX_RECENT)
        for grant_id in await self._put_first(grant, _list_key(grant.person), MAX_OF_PERSON, only_living=True):
            await self.end(grant_id)

    async def _put_first(self, grant: Grant, key: str, most: int, *, only_living: bool = False) -> list[str]:
        """Put a grant first on a list of at most so many, and return the ids that are too many."""
        listed: list[str] = []

        async def put_first(value: bytes | None) -> bytes:
            nonlocal listed
            listed = _read_list(value)
            if only_living:
                listed = [living.id for living in await self._loaded(listed)]
            return orjson.dumps([grant.id, *listed][:most])

        is_put = await change_value(self._store, key, put_first, grant.until - self._clock(), durable=True)
        return listed[most - 1 :] if is_put else []

    async def _loaded(self, grant_ids: Iterable[str]) -> list[Grant]:
        listed = list(grant_ids)
        seen = (await self._store.run([Look(GRANT + grant_id) for grant_id in listed])).seen if listed else ()
        now = self._clock()
        grants = (_read(raw) for raw in seen if isinstance(raw, bytes))
        return [grant for grant in grants if grant.until > now]

    async def _load(self, grant_id: str) -> Grant | None:
        return next(iter(await self._loaded((grant_id,))), None)

    async def _swap(self, grant: Grant, changed: Grant) -> bool:
        seconds = changed.until - self._clock()
        step = Swap(GRANT + grant.id, grant.raw, _write(changed), seconds)
        return (await self._store.run((step,), durable=True)).failed is None


def _list_key(person: str) -> str:
    return OF_PERSON + sha256(person.encode("utf-8", "surrogatepass")).hexdigest()


def _read_list(raw: object) -> list[str]:
    return orjson.loads(raw) if isinstance(raw, bytes) else []


_FIELDS: Final = tuple(field.name for field in fields(Grant) if field.init and field.name != "raw")
_COOKIE: Final = tuple(field.name for field in fields(Cookie))
"""What a record has, in this order and without names: it is read for every call. New ones belong at the end."""


def _write(grant: Grant) -> bytes:
    cookies = [[getattr(cookie, name) for name in _COOKIE] for cookie in grant.cookies]
    return orjson.dumps([cookies if name == "cookies" else getattr(grant, name) for name in _FIELDS])


def _read(raw: bytes) -> Grant:
    facts = dict(zip(_FIELDS, orjson.loads(raw), strict=False))
    facts |= {name: tuple(facts[name]) for name in ("scopes", "refresh", "previous")}
    facts["access"] = {digest: (until, tuple(scopes)) for digest, (until, scopes) in facts["access"].items()}
    facts["cookies"] = tuple(Cookie(**dict(zip(_COOKIE, values, strict=False))) for values in facts["cookies"])
    return Grant(**facts, raw=raw)

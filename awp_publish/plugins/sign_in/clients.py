"""Clients: named by the owner, known by a metadata document, or registered.

Metadata documents (draft-ietf-oauth-client-id-metadata-document) are fetched without redirects, from public addresses
only, and cached as their headers say. Registrations (RFC 7591) end if nobody uses them.
"""

import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from hashlib import sha256
from typing import Any, Final, Literal, cast
from urllib.parse import urlsplit

import orjson

from awp_publish.calls.threads import run_in_thread
from awp_publish.http.client_address import network_around
from awp_publish.http.outgoing import AnswerTooLarge, Deadline, request
from awp_publish.plugins.sign_in.errors import OAuthError, Shown
from awp_publish.plugins.sign_in.identity import AssertionCheck, ClientAssertions
from awp_publish.plugins.sign_in.names import shown_name
from awp_publish.plugins.sign_in.options import Client, SignIn
from awp_publish.plugins.sign_in.redirects import is_loopback, matches, shown_host, why_refused
from awp_publish.problems import AuthExpired, DeclarationError, InvalidCredentials
from awp_publish.schema import media
from awp_publish.stores.store import Add, Count, Counted, Look, Store, Swap

REGISTERED: Final = "sign-in:client:"
"""The prefix of the keys of registered clients."""

UNUSED_SECONDS: Final = 24 * 3600.0
"""Seconds after which a registration ends that nobody has used."""

MAX_REGISTRATIONS: Final = 20
REGISTRATION_WINDOW: Final = 3600.0
"""Clients that may register from one address within so many seconds."""

MAX_METADATA: Final = 5 * 1024
"""Bytes of a metadata document."""

MAX_REDIRECTS: Final = 20
"""Addresses of one client."""

UNNAMED: Final = "A program"
"""The name of a client that has registered without one."""

FETCH_TIMEOUT: Final = 5.0
MAX_FETCHES: Final = 30
FETCH_WINDOW: Final = 60.0
"""Seconds that fetching a document may take, and documents that one address may have fetched within a window."""

MAX_FETCHING: Final = 8
"""Documents that are fetched at once: each takes a thread of those in which the site's own functions run."""

CACHED: Final = 500
MIN_CACHED, USUALLY_CACHED, MAX_CACHED = 60.0, 3600.0, 24 * 3600.0
"""Documents that are kept, and for how many seconds: as their headers say, within these bounds."""

Origin = Literal["named", "document", "registered"]


@dataclass(frozen=True, slots=True)
class KnownClient:
    """A client, wherever it is known from. `host` is that of its id, "" if its id says nothing of where it is from."""

    id: str
    name: str
    redirects: tuple[str, ...]
    origin: Origin
    secret: bytes = field(default=b"", repr=False)
    scopes: tuple[str, ...] = ()
    host: str = ""
    check_assertion: AssertionCheck | None = None

    @property
    def is_confidential(self) -> bool:
        """True if it has to authenticate (RFC 6749 section 2.1)."""
        return bool(self.secret) or self.check_assertion is not None

    def redirect_for(self, address: str | None) -> str | None:
        """Return the address to go back to: the given one if it is registered, or the only one; else None."""
        if address is None:
            return self.redirects[0] if len(self.redirects) == 1 and not is_loopback(self.redirects[0]) else None
        return address if any(matches(registered, address) for registered in self.redirects) else None


class Clients:
    """The clients of one site. Every method that uses the store raises StoreUnavailable."""

    def __init__(
        self,
        options: SignIn,
        store: Store,
        assertions: ClientAssertions | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Read the clients that the owner names. Raises DeclarationError."""
        self._options = options
        self._store = store
        self._assertions = assertions
        self._clock = clock
        declared = (client for client in options.clients if isinstance(client, Client))
        self._named = {client.id: self._of_owner(client) for client in declared}
        self._documents: OrderedDict[str, tuple[float, KnownClient]] = OrderedDict()
        self._fetching = 0

    async def find(self, client_id: str, address: str | None = None) -> KnownClient | None:
        """Return a client, None if it is not known. Raises Shown for a metadata document that cannot be used.

        `address` is that of the request, for which not too many documents are fetched. Without one, none is: codes and
        tokens are bound to the client's id, and those of a client that need not authenticate hold while its server is
        down.
        """
        if (client := self._named.get(client_id)) is not None:
            return client
        if client_id.startswith("https://"):
            return await self._of_document(client_id, address)
        if not re.fullmatch(r"[A-Za-z0-9_-]{20,60}", client_id):
            return None
        raw = (await self._store.run((Look(REGISTERED + client_id),))).seen[0]
        if not isinstance(raw, bytes):
            return None
        facts = orjson.loads(raw)
        return KnownClient(client_id, facts["name"] or UNNAMED, tuple(facts["redirects"]), "registered")

    def named_by(self, assertion: str) -> str | None:
        """Return the id of the client that an assertion names, None if it names none."""
        return self._assertions.client_of(assertion) if self._assertions is not None else None

    async def check(
        self, client: KnownClient, secret: str | None, assertion: str | None, audiences: Sequence[str]
    ) -> None:
        """Raise OAuthError unless a client that has a secret or a key has shown it.

        Raises TemporarilyUnavailable while its keys cannot be fetched.
        """
        if client.check_assertion is not None:
            if assertion is None:
                raise OAuthError("invalid_client", "The client has to authenticate with its key (private_key_jwt).")
            try:
                await client.check_assertion(assertion, audiences)
            except (AuthExpired, InvalidCredentials) as problem:
                raise OAuthError("invalid_client", f"client_assertion: {problem.detail}") from problem
        elif assertion is not None:
            raise OAuthError("invalid_client", "The client has no key here, so it takes no assertion.")
        elif client.secret and (secret is None or not hmac.compare_digest(_hash(secret), client.secret)):
            raise OAuthError("invalid_client", "The client has to authenticate with its secret.")

    async def register(self, metadata: object, address: str) -> dict[str, object]:
        """Register a client and return its metadata (RFC 7591 section 3.2.1). Raises OAuthError.

        It gets no secret: whoever may register may also lose one.
        """
        if not self._options.register:
            raise OAuthError("access_denied", "Clients do not register here; use a client id metadata document.")
        if not isinstance(metadata, Mapping):
            raise OAuthError("invalid_client_metadata", "The body is not a JSON object.")
        redirects = _redirects_of(metadata)
        kind = metadata.get("application_type")
        if kind not in (None, "web", "native"):
            raise OAuthError("invalid_client_metadata", "application_type must be web or native.")
        grants, answers = metadata.get("grant_types"), metadata.get("response_types")
        if grants is not None and not (isinstance(grants, list) and "authorization_code" in grants):
            raise OAuthError("invalid_client_metadata", "grant_types must have authorization_code.")
        if answers is not None and answers != ["code"]:
            raise OAuthError("invalid_client_metadata", "response_types must be [code].")
        client_id = secrets.token_urlsafe(24)
        name = shown_name(metadata.get("client_name"))
        scopes = [scope for scope in str(metadata.get("scope")).split() if scope in self._options.scopes]
        record = orjson.dumps({"name": name, "redirects": redirects})
        steps: list[Any] = [Count(f"sign-in:registrations:{address}", MAX_REGISTRATIONS, REGISTRATION_WINDOW)]
        if network := network_around(address):
            steps.append(Count(f"sign-in:registrations:{network}", 8 * MAX_REGISTRATIONS, REGISTRATION_WINDOW))
        steps.append(Add(REGISTERED + client_id, record, UNUSED_SECONDS))
        ran = await self._store.run(steps, durable=True)
        if ran.failed is not None:
            wrong = "Too many clients register from this address. Use the id of an earlier one."
            raise OAuthError("slow_down", wrong, cast(Counted, ran.seen[-1]).seconds_left)
        return {
            "client_id": client_id,
            "client_id_issued_at": int(self._clock()),
            **({"client_name": name} if name else {}),
            "redirect_uris": list(redirects),
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            **({"application_type": kind} if kind else {}),
            **({"scope": " ".join(scopes)} if scopes else {}),
        }

    async def keep(self, client: KnownClient, seconds: float) -> None:
        """Let a registration last, because it is used."""
        if client.origin == "registered":
            key = REGISTERED + client.id
            raw = (await self._store.run((Look(key),))).seen[0]
            if isinstance(raw, bytes):
                await self._store.run((Swap(key, raw, raw, seconds + UNUSED_SECONDS),), durable=True)

    def _of_owner(self, client: Client) -> KnownClient:
        check = None
        if client.key is not None:
            if self._assertions is None:
                wrong = f'SignIn: the client "{client.id}" has a key, and PyJWT, which checks it, is not installed.'
                raise DeclarationError("site", wrong, 'Run pip install "awp-publish[jwt]".')
            try:
                check = self._assertions.check_with(client.id, client.key)
            except ValueError as error:
                wrong = f'SignIn: the key of the client "{client.id}" cannot be used: {error}.'
                remedy = "Give the public part of the key: a JWK, a JWK set, PEM, or the https address of a JWK set."
                raise DeclarationError("site", wrong, remedy) from error
        secret = _hash(client.secret) if client.secret else b""
        redirects, scopes = tuple(client.redirects), tuple(client.scopes)
        return KnownClient(client.id, client.name, redirects, "named", secret, scopes, check_assertion=check)

    async def _of_document(self, client_id: str, address: str | None) -> KnownClient:
        """Return the client of a metadata document. Raises Shown."""
        host = host_of_document(client_id)
        if host is None:
            raise Shown("This agent is not known", "Its client_id is not the address of a metadata document.")
        if self._options.trusted_hosts and host not in self._options.trusted_hosts:
            raise Shown("This agent is not admitted", f"This site admits no agents of {host}.", 403)
        if address is None:
            return KnownClient(client_id, host, (), "document", host=host)
        until, cached = self._documents.get(client_id, (0.0, None))
        if cached is None or until <= self._clock():
            count = Count(f"sign-in:documents:{address}", MAX_FETCHES, FETCH_WINDOW)
            if address and (await self._store.run((count,))).failed is not None:
                wrong = "Please wait for a minute, and start again from your agent."
                raise Shown("Too many requests", wrong, 429, code="slow_down")
            if self._fetching >= MAX_FETCHING:
                wrong = "Too many agents are new to this site at the moment. Please try again in a minute."
                raise Shown("Not now", wrong, 503, code="temporarily_unavailable")
            self._fetching += 1
            try:
                seconds, fetched = await run_in_thread(lambda: fetch_client(client_id, self._assertions))
            except ValueError as error:  # kept by nobody (section 5.2 of the draft)
                wrong = f"Its description at {host} cannot be used: {error}."
                raise Shown("This agent is not known", wrong, code="temporarily_unavailable") from error
            finally:
                self._fetching -= 1
            self._documents[client_id] = self._clock() + seconds, fetched
            self._documents.move_to_end(client_id)
            while len(self._documents) > CACHED:
                self._documents.popitem(last=False)
            return fetched
        return cached


def host_of_document(client_id: str) -> str | None:
    """Return the host of a client id that is the address of a metadata document (section 3 of the draft), or None."""
    if why_refused(client_id) is not None:
        return None
    parts = urlsplit(client_id)
    if parts.scheme != "https" or parts.path in ("", "/"):
        return None
    if any(segment.replace("%2e", ".").replace("%2E", ".") in (".", "..") for segment in parts.path.split("/")):
        return None
    return shown_host(client_id)


def fetch_client(client_id: str, assertions: ClientAssertions | None) -> tuple[float, KnownClient]:
    """Fetch a metadata document. Returns for how long it may be cached, and the client. Raises ValueError. Blocks."""
    try:
        answer = request(
            "GET",
            client_id,
            headers={"Accept": "application/json"},
            deadline=Deadline(FETCH_TIMEOUT),
            max_bytes=MAX_METADATA,
        )
    except AnswerTooLarge as error:
        raise ValueError(str(error)) from error
    except (OSError, ValueError) as error:  # nobody is told what is at addresses that they cannot reach themselves
        raise ValueError("it cannot be fetched from a public address") from error
    if answer.status != 200:
        raise ValueError(f"the answer has the status {answer.status}")
    if not media.is_json(answer.headers.get_content_type()):
        raise ValueError("it is not served as application/json")
    try:
        client = read_document(client_id, orjson.loads(answer.body), assertions)
    except orjson.JSONDecodeError as error:
        raise ValueError("it is not JSON") from error
    except OAuthError as error:
        raise ValueError(error.detail.rstrip(".")) from error
    return _seconds_cached(answer.headers), client


def read_document(client_id: str, metadata: object, assertions: ClientAssertions | None) -> KnownClient:
    """Return the client that a metadata document describes. Raises OAuthError."""
    if not isinstance(metadata, Mapping):
        raise OAuthError("invalid_client_metadata", "it is not a JSON object")
    if metadata.get("client_id") != client_id:
        raise OAuthError("invalid_client_metadata", "its client_id is not its own address")
    redirects, host, check = _redirects_of(metadata), shown_host(client_id), None
    method = metadata.get("token_endpoint_auth_method", "none")
    if method == "private_key_jwt" and assertions is not None:
        check = _check_of_document(client_id, metadata, assertions)
    elif method != "none" or not metadata.keys().isdisjoint(("client_secret", "client_secret_expires_at")):
        supported = "none" if assertions is None else "none or private_key_jwt"
        raise OAuthError("invalid_client_metadata", f"its token_endpoint_auth_method is not {supported}")
    name = shown_name(metadata.get("client_name")) or host
    return KnownClient(client_id, name, redirects, "document", host=host, check_assertion=check)


def _check_of_document(client_id: str, metadata: Mapping[str, object], assertions: ClientAssertions) -> AssertionCheck:
    """Return the check of a client that publishes its keys (section 8.2 of the draft). Raises OAuthError."""
    keys, address = metadata.get("jwks"), metadata.get("jwks_uri")
    try:
        if isinstance(keys, Mapping) and address is None:
            return assertions.check_with(client_id, keys)
        if keys is None and isinstance(address, str) and address.startswith("https://"):
            return assertions.check_with(client_id, address, is_public=True)
    except ValueError as error:
        raise OAuthError("invalid_client_metadata", f"its keys cannot be used: {error}") from error
    raise OAuthError("invalid_client_metadata", "it must have either jwks or jwks_uri, at an https address")


def _redirects_of(metadata: Mapping[str, object]) -> tuple[str, ...]:
    listed = metadata.get("redirect_uris")
    if not isinstance(listed, list) or not listed or not all(isinstance(address, str) for address in listed):
        raise OAuthError("invalid_redirect_uri", "redirect_uris must be a list of addresses, with at least one.")
    if len(listed) > MAX_REDIRECTS:
        raise OAuthError("invalid_redirect_uri", f"redirect_uris has more than {MAX_REDIRECTS} addresses.")
    for number, address in enumerate(listed):
        if reason := why_refused(address):
            raise OAuthError("invalid_redirect_uri", f"redirect_uris[{number}] {reason}.")
    return tuple(dict.fromkeys(listed))


def _seconds_cached(headers: Message) -> float:
    directives = [part.strip().lower() for part in str(headers.get("Cache-Control", "")).split(",")]
    if "no-store" in directives or "no-cache" in directives:
        return MIN_CACHED
    ages = [part.removeprefix("max-age=") for part in directives if part.startswith("max-age=")]
    seconds = float(ages[0][:9]) if ages and ages[0].isdecimal() else USUALLY_CACHED
    return min(max(seconds, MIN_CACHED), MAX_CACHED)


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()

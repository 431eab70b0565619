"""Agents that sign their requests: Web Bot Auth over HTTP Message Signatures (RFC 9421).

draft-meunier-http-message-signatures-directory and the Web Bot Auth protocol draft: `Signature-Agent` names a
directory of keys, `Signature-Input` with the tag "web-bot-auth" says what is signed with which key, and `Signature` is
the signature. Both forms of `Signature-Agent` are read, the dictionary and the bare string, and its types `directory`,
`jwks_uri` and `cimd` (a client id metadata document, which has the keys or says where they are). A signature that
covers `content-digest` (RFC 9530) holds for the body, whose digests are taken as it is read.

A request without these headers costs nothing here. The signed address (`@authority`, `@target-uri`) is compared with
the site's own addresses: a signature that was made for another site is not valid here.
"""

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, cast

from awp_publish.calls.call import Credentials, Label, Principal
from awp_publish.http.signed import DIGESTS, SIGNED
from awp_publish.plugins.identity.agent_signatures import ACCEPT_SIGNATURE, LEEWAY, TAG, AgentSignature, forged
from awp_publish.plugins.identity.directories import (
    AgentKey,
    KeyDirectories,
    KeyDirectory,
    directory_of,
    read_directory,
)
from awp_publish.plugins.identity.own_address import address_of
from awp_publish.problems import DeclarationError, InvalidCredentials, Problem, RateLimited, TemporarilyUnavailable
from awp_publish.stores.store import Add, Store

if TYPE_CHECKING:
    from http_message_signatures import HTTPMessageVerifier

logger: Final = logging.getLogger("awp_publish.calls")

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]

WAIT: Final = 6.0
"""Seconds that a call waits for a directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebBotAuth:
    """Agents that sign their requests (Web Bot Auth, RFC 9421).

    `signers` are the trusted directories, each with the name of its agent in `User-Agent`:
    `{"https://signer.example": "SignerBot"}`; in a list, the name is that of the host. Without `signers`, whoever
    publishes keys at a public https address is known by that address. `keys` are JWK sets of directories that are not
    fetched. `allow_private` permits directories in the site's own network, also over http.

    The caller is a Principal whose id is the directory's address, `https://signer.example`, and whose label is
    "verified". Needs the extra `botauth`. Raises DeclarationError.
    """

    scheme: ClassVar[None] = None
    method: ClassVar[str] = "custom"
    challenge: ClassVar[str] = ""
    kind: ClassVar[str] = "web-bot-auth"
    demands: ClassVar[tuple[tuple[str, str], ...]] = (ACCEPT_SIGNATURE,)
    is_instant: ClassVar[bool] = True
    """It limits its own waiting, so unsigned requests need no timer."""

    signers: Mapping[str, str | Sequence[str]] | Sequence[str] | None = None
    keys: InitVar[Mapping[str, Mapping[str, object]] | None] = None
    allow_private: bool = False
    clock: Callable[[], float] = field(default=time.time, repr=False, compare=False)
    _directories: KeyDirectories = field(init=False, repr=False, compare=False)
    _claims: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)
    _listed: frozenset[str] | None = field(init=False, repr=False, compare=False)
    _origins: tuple[str, ...] = field(init=False, repr=False, compare=False, default=())
    _store: Store | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self, keys: Mapping[str, Mapping[str, object]] | None) -> None:
        try:
            import http_message_signatures  # noqa: F401
        except ImportError:
            detail = "WebBotAuth needs http-message-signatures, which is not installed."
            raise DeclarationError("site", detail, 'Run pip install "awp-publish[botauth]".') from None
        remedy = 'Write WebBotAuth(signers={"https://signer.example": "SignerBot"}).'
        listed: dict[str, tuple[str, ...]] | None = None
        if self.signers is not None:
            listed = {}
            entries = (
                self.signers.items() if isinstance(self.signers, Mapping) else ((signer, ()) for signer in self.signers)
            )
            if isinstance(self.signers, str):
                raise DeclarationError(
                    "site", "WebBotAuth's signers must be a list or a mapping, not a string.", remedy
                )
            for address, names in entries:
                directory = self._address_of(address)
                agent_names = (names,) if isinstance(names, str) else tuple(names)
                if not all(isinstance(agent_name, str) and agent_name.strip() for agent_name in agent_names):
                    raise DeclarationError("site", f"WebBotAuth: the names of {address} are not strings.", remedy)
                if not agent_names:  # the host, and its label before the last dot
                    host = directory.partition("://")[2].partition(":")[0]
                    own = host.split(".")[-2] if "." in host else ""
                    agent_names = (host, own) if len(own) >= 4 else (host,)
                listed[directory] = agent_names
        fixed: dict[str, KeyDirectory] = {}
        for address, document in (keys or {}).items():
            directory = self._address_of(address)
            try:
                fixed[directory] = read_directory(document)
            except ValueError as error:
                raise DeclarationError("site", f"WebBotAuth: the keys of {address}: {error}.", remedy) from None
        names_of_all = [name for agent_names in (listed or {}).values() for name in agent_names]
        patterns = tuple(re.compile(rf"(?<![a-z0-9]){re.escape(name.lower())}") for name in names_of_all)
        object.__setattr__(self, "_claims", patterns)
        object.__setattr__(self, "_listed", None if listed is None else frozenset({*listed, *fixed}))
        object.__setattr__(self, "_directories", KeyDirectories(fixed, self._listed or frozenset(), self.allow_private))

    def _address_of(self, address: object) -> str:
        directory = directory_of(address, self.allow_private) or directory_of(address, self.allow_private, "jwks_uri")
        if directory is None:
            wrong = f"WebBotAuth: {address!r} is not the address of a directory."
            raise DeclarationError("site", wrong, 'Write WebBotAuth(signers={"https://signer.example": "SignerBot"}).')
        return directory

    def bound_to(self, origins: Sequence[str], store: Store) -> "WebBotAuth":
        """Return a copy for a site at these addresses, whose store remembers used signatures."""
        bound = replace(self, keys=None)
        object.__setattr__(bound, "_origins", tuple(origins))
        object.__setattr__(bound, "_store", store)
        for name in ("_directories", "_claims", "_listed"):
            object.__setattr__(bound, name, getattr(self, name))
        return bound

    async def __call__(self, credentials: Credentials) -> Principal | None:
        """Return the agent that signed a request, None without a signature or if the agent is not trusted.

        Raises InvalidCredentials, RateLimited for a used signature, TemporarilyUnavailable while the keys of a listed
        directory cannot be read.
        """
        request = credentials.request
        if request is None:
            return None
        noted: MutableMapping[str, object] = request.setdefault(SIGNED, {})
        if "result" not in noted:  # several gates may check one request, but its signature may be used once
            try:
                noted["result"] = await self._verify(credentials, request)
            except Problem as problem:
                noted["result"] = problem
        result = noted["result"]
        if isinstance(result, Problem):
            raise result
        return result if isinstance(result, Principal) else None

    def names_of(self, credentials: Credentials) -> frozenset[str]:
        """Return the names by which a limit or an action may refer to the caller. Only after the request was checked.

        These are its label, the signing agent's directory by address and by host, and "" for everybody.
        """
        principal = credentials.request.get(SIGNED, {}).get("result") if credentials.request is not None else None
        signer = {principal.id, principal.id.partition("://")[2]} if isinstance(principal, Principal) else ()
        return frozenset(("", self.label_of(credentials), *signer))

    def label_of(self, credentials: Credentials) -> Label:
        """Return what a request's signature says of its caller. Only after the request was checked."""
        if credentials.request is not None:
            result = credentials.request.get(SIGNED, {}).get("result")
            if isinstance(result, (InvalidCredentials, RateLimited)):
                return "forged"
            if isinstance(result, Principal):
                return "verified"
        agent = credentials.headers.get("user-agent", "")[:1000].lower() if self._claims else ""
        return "unsigned impostor" if agent and any(claim.search(agent) for claim in self._claims) else "unknown"

    async def _verify(self, credentials: Credentials, request: Mapping[str, Any]) -> Principal | None:
        now = self.clock()
        signature = AgentSignature.read(credentials.headers, now, self.allow_private)
        if signature is None:
            return None
        directory = signature.directory
        if self._listed is not None and directory not in self._listed:
            return None  # not trusted: its keys are not fetched
        is_listed = self._listed is not None or directory in self._directories.fixed
        try:
            async with asyncio.timeout(WAIT):
                key = await self._directories.find(directory, signature.kind, signature.address, signature.key_id)
        except (TemporarilyUnavailable, TimeoutError):
            if not is_listed:
                return None  # a Signature-Agent that cannot be resolved is ignored
            detail = f"The keys of {directory} cannot be read at the moment."
            raise TemporarilyUnavailable(detail, headers=[("Retry-After", "10")]) from None
        if key is None or not key.not_before - LEEWAY <= now <= key.expires + LEEWAY:
            raise forged("Its key is not in the directory that Signature-Agent names.")
        self._check(request, key, signature.key_id)
        if signature.of_body:
            _check_body(credentials.headers.get("content-digest") or "", signature.of_body, request)
        await self._spend(signature, key, credentials.headers.get("signature") or "", now)
        facts = {"directory": directory, "keyid": signature.key_id, "name": directory.partition("://")[2]}
        return Principal(directory, claims=facts, label="verified", issuer=self.kind)

    async def _spend(self, signature: AgentSignature, key: AgentKey, header: str, now: float) -> None:
        """Remember a verified signature, which is good for one request. Raises RateLimited for one that is known.

        Others are not remembered, so that nobody else can fill the store.
        """
        if signature.nonce is not None:
            used = f"{signature.directory}\n{signature.key_id}\n{signature.nonce}".encode()
        else:  # the library has parsed the signature, so it exists
            from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
            from http_sf import parse

            signatures = parse(header.encode("latin-1"), tltype="dictionary")
            used = bytes(cast(Any, signatures)[signature.label][0])
            if not isinstance(key.key, RSAPublicKey):  # with (r, s), (r, -s) is a valid ECDSA signature too
                used = used[: len(used) // 2]
        if self._store is not None:
            remaining = max(1.0, signature.expires - now + 2 * LEEWAY)
            step = Add(f"signature:{hashlib.sha256(used).hexdigest()}", b"1", remaining)
            if (await self._store.run((step,))).failed is not None:
                raise RateLimited(
                    "This signature has already been used for a request.",
                    recovery="Wait for a second, then sign the request anew, with a new nonce, and send it once.",
                    headers=[("Retry-After", "1"), ACCEPT_SIGNATURE],
                    members={"retry_after": 1},
                )

    def _check(self, request: Mapping[str, Any], key: AgentKey, key_id: str) -> None:
        """Verify the signature with a key, for the site's own address. Raises InvalidCredentials."""
        from http_message_signatures import MappingKeyResolver

        message = _Message(request, self._origins)
        resolver = MappingKeyResolver(public_keys={key_id: key.key}, private_keys={})  # type: ignore[dict-item]
        try:
            if not message.url:
                raise ValueError("another site's")
            _verifier_class()(signature_algorithm=key.algorithm, key_resolver=resolver).verify(
                message, expect_tag=TAG, max_age=None
            )
        except Exception as error:  # a hostile signature may make its verifier raise anything
            logger.info("a signature of %s was not valid: %s", key_id[:100], type(error).__name__)
            raise forged("It does not match this request, its key and this site's address.") from None


@cache
def _verifier_class() -> "type[HTTPMessageVerifier]":
    from http_message_signatures import HTTPMessageVerifier

    class Verifier(HTTPMessageVerifier):
        def validate_created_and_expires(self, sig_input: object, max_age: object = None) -> None:
            """Do nothing: they were checked already, by the site's own clock."""

    return Verifier


def _check_body(header: str, covered: frozenset[str], request: Mapping[str, Any]) -> None:
    """Compare the body of a request with its signed Content-Digest. Raises InvalidCredentials."""
    from http_sf import parse

    body_digests = request.get(SIGNED, {}).get("digests")
    if body_digests is None and not any(
        name in (b"content-length", b"transfer-encoding") for name, _ in request["headers"]
    ):
        body_digests = {name: make().digest() for name, make in DIGESTS.items()}  # the request has no body
    try:
        digests = parse(header.encode("latin-1"), tltype="dictionary")
        listed = DIGESTS.keys() if "" in covered else DIGESTS.keys() & covered
        signed_digests = {name: item[0] for name, item in digests.items() if name in listed}  # type: ignore[union-attr, index]
    except Exception:
        signed_digests = {}
    if not signed_digests:
        raise forged("Its Content-Digest has no sha-256 and no sha-512 (RFC 9530).")
    if body_digests is None or any(
        bytes(cast(Any, digest)) != body_digests[name] for name, digest in signed_digests.items()
    ):
        raise forged("The body does not match its Content-Digest.")


class _Message:
    """A request as the library expects it, with its address at the site; "" for a host that is not the site's."""

    def __init__(self, request: Mapping[str, Any], origins: Sequence[str]) -> None:
        self.method = str(request.get("method", "GET"))
        self._headers = request["headers"]
        self.headers = self
        self.url = address_of(request, origins)

    def items(self) -> Iterator[tuple[str, str]]:
        return ((name.decode("latin-1"), value.decode("latin-1")) for name, value in self._headers)

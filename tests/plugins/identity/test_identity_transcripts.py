"""What becomes of tokens, proofs, assertions, keys and signatures: `transcripts`, see `tests/function_transcripts.py`.

A key is an object with its name as "$"; a time that begins with "+" or "-" is in seconds from now.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from awp_publish.calls.call import Credentials
from awp_publish.plugins.identity.agent_signatures import AgentSignature
from awp_publish.plugins.identity.assertions import Assertions
from awp_publish.plugins.identity.directories import directory_of, read_directory
from awp_publish.plugins.identity.jwt import JwtBearer
from awp_publish.plugins.identity.key_sets import check_keys_url, read_key_set
from awp_publish.plugins.identity.own_address import address_of
from awp_publish.plugins.identity.proofs import Proofs, digest_of
from awp_publish.problems import Problem
from awp_publish.stores.memory import MemoryStore
from tests.function_transcripts import compare
from tests.rsa_keys import rsa_key

TRANSCRIPTS = Path(__file__).parent / "transcripts"
ISSUER, SHOP = "https://login.example", "https://shop.example"
CURVES = {"ec": ec.SECP256R1(), "other": ec.SECP256R1(), "ec384": ec.SECP384R1(), "ec521": ec.SECP521R1()}
KEYS: Final[dict[str, Any]] = {
    **{name: ec.derive_private_key(1234567 + len(name), curve) for name, curve in CURVES.items()},
    "ed": ed25519.Ed25519PrivateKey.from_private_bytes(b"k" * 32),
    "rsa": rsa_key("first"),
    "stranger": rsa_key("stranger"),
    "small": rsa_key("small", 1024),
}
SIGNS = {"ec": "ES256", "other": "ES256", "ec384": "ES384", "ec521": "ES512", "ed": "EdDSA"}
PUBLISHED = {"keys": [{"$": name, "kid": name} for name in ("rsa", "ec", "ec384", "ec521", "ed")]}


def _public(name: str) -> dict[str, Any]:
    made = {"e": ECAlgorithm, "o": ECAlgorithm}.get(name[0], RSAAlgorithm) if name != "ed" else OKPAlgorithm
    return {**made.to_jwk(KEYS[name].public_key(), as_dict=True)}


def _filled(value: Any) -> Any:
    """Return JSON with keys and times in place of what stands for them."""
    if isinstance(value, list):
        return [_filled(item) for item in value]
    if isinstance(value, dict):
        members = {name: _filled(item) for name, item in value.items() if name != "$"}
        return {**_public(value["$"]), **members} if "$" in value else members
    if isinstance(value, str) and value[:1] in ("+", "-") and value[1:].isdigit():
        return int(time.time()) + int(value)
    return value


def _signed(key: str, told: dict[str, Any], header: dict[str, Any]) -> str:
    header = {name: value for name, value in header.items() if value is not None}
    algorithm = header.pop("alg", SIGNS.get(key, "RS256"))
    claims = {name: value for name, value in _filled(told).items() if value is not None}
    return jwt.encode(claims, KEYS[key], algorithm, _filled(header))


def _awaited(answer: Awaitable[Any]) -> Any:
    async def wait() -> Any:
        return await answer

    try:
        return asyncio.run(wait())
    except Problem as problem:
        return _refusal(problem)


def _refusal(problem: Problem) -> Any:
    return [problem.status, problem.code, problem.detail, problem.recovery]


def _token(changes: dict[str, Any], header: dict[str, Any] | None = None, options: Any = None, key: str = "rsa") -> Any:
    values = {"iss": ISSUER, "aud": SHOP, "sub": "ann", "exp": "+600", "scope": "read write", **changes}
    token = _signed(key, values, {"kid": key, **(header or {})})
    return _shown(f"Bearer {token}", options or {})


def _shown(authorization: str | None, options: dict[str, Any]) -> Any:
    bearer = JwtBearer(**{"issuer": ISSUER, "audience": SHOP, "jwks": _filled(PUBLISHED), **_filled(options)})
    caller = _awaited(bearer(Credentials({"authorization": authorization} if authorization is not None else {})))
    if caller is None or isinstance(caller, list):
        return caller
    shown = [name for name in ("aud", "cnf") if name in caller.claims]
    return [caller.id, sorted(caller.scopes), caller.issuer, caller.scheme, shown]


def _declared(options: dict[str, Any]) -> Any:
    bearer = JwtBearer(**_filled(options))
    return [bearer.kind, bearer.challenge, *(getattr(bearer, name) for name in ("audience", "algorithms", "leeway"))]


def _proof(
    changes: dict[str, Any],
    header: dict[str, Any] | None = None,
    key: str = "ec",
    request: dict[str, Any] | None = None,
    bound_to: str | None = None,
) -> Any:
    values = {"htm": "POST", "htu": f"{SHOP}/mcp", "iat": "+0", "jti": "1", "ath": digest_of("token"), **changes}
    proof = _signed(key, values, {"typ": "dpop+jwt", "jwk": {"$": key}, **(header or {})})
    return _proven(proof, request, bound_to)


def _proven(proof: str | None, request: dict[str, Any] | None = None, bound_to: str | None = None) -> Any:
    proofs = Proofs([SHOP, f"{SHOP}:8443/shop"], MemoryStore())
    headers = [(b"host", (request or {}).get("host", "shop.example").encode())]
    scope = {"method": "POST", "path": "/mcp", "scheme": "https", **(request or {}), "headers": headers}
    answers = [_awaited(proofs.check(dict(sent), proof, "token", bound_to)) for sent in (scope, scope)]
    answers = ["its thumbprint" if answer == digest_of(_identity("rsa")) else answer for answer in answers]
    return answers[0] if answers[0] == answers[1] else [answers[0], answers[1][2]]


def _assertion(
    changes: dict[str, Any], header: dict[str, Any] | None = None, key: str = "ec", known: Any = None
) -> Any:
    values = {"iss": "c", "sub": "c", "aud": SHOP, "exp": "+60", "jti": "1", **changes}
    assertions, sent = Assertions(MemoryStore()), _signed(key, values, {"kid": key, **(header or {})})
    check = assertions.check_with("c", _filled(known or {"$": "ec"}))
    answers = [_awaited(check(sent, [SHOP, f"{SHOP}/token"])) for _ in range(2)]
    return [assertions.client_of(sent), *(answer if answer is None else answer[1:3] for answer in answers)]


def _pem(name: str) -> str:
    return str(KEYS[name].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


def _key_of_client(key: Any) -> Any:
    Assertions(MemoryStore()).check_with("c", _filled(key))
    return "taken"


def _key_set(document: Any, *finds: list[Any]) -> Any:
    keys = read_key_set(_filled(document))
    names = [[kid if kid is None or "\0" not in kid else "none", algorithm] for kid, algorithm in keys.keys]
    return [names, *(keys.find(*find) is not None for find in finds)]


def _directory(document: Any) -> Any:
    keys = read_directory(_filled(document))
    thumbprints = [(name, digest_of(_identity(name))) for name in ("ec", "other", "ec384", "ed", "rsa", "small")]
    found = [(name, keys.find(thumbprint, "")) for name, thumbprint in thumbprints]
    return [[name, key.algorithm.__name__, key.not_before, key.expires] for name, key in found if key is not None]


def _identity(name: str) -> str:
    members = {member: value for member, value in _public(name).items() if member in ("crv", "e", "kty", "n", "x", "y")}
    return json.dumps(members, sort_keys=True, separators=(",", ":"))


def _signature(parameters: str, agent: str | None = 'sig1="https://bot.example"', now: float = 1000.0) -> Any:
    headers = {"signature-input": parameters, "signature": "sig1=:YQ==:"}
    if agent is not None:
        headers["signature-agent"] = agent
    try:
        read = AgentSignature.read(headers, now, False)
    except Problem as problem:
        return [problem.status, problem.code, problem.detail]
    if read is None:
        return None
    names = ("label", "directory", "kind", "address", "key_id", "expires", "nonce")
    return [*(getattr(read, name) for name in names), sorted(read.of_body)]


def _address(request: dict[str, Any], *origins: str) -> str:
    scope = {**request, "headers": [(b"host", request["host"].encode())]} if "host" in request else {"headers": []}
    texts: dict[str, Any] = {name: scope[name].encode() for name in ("raw_path", "query_string") if name in scope}
    return address_of({**request, **scope, **texts}, origins)


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "token": _token,
    "shown": lambda text, **options: _shown(text, options),
    "declared": _declared,
    "proof": _proof,
    "proven": _proven,
    "assertion": _assertion,
    "client": _key_of_client,
    "pem": lambda name: _key_of_client(_pem(name)),
    "client_of": Assertions(MemoryStore()).client_of,
    "keys": _key_set,
    "url": check_keys_url,
    "directory": _directory,
    "agent": directory_of,
    "signature": _signature,
    "address": _address,
}


@pytest.mark.parametrize("name", sorted(path.stem for path in TRANSCRIPTS.glob("*.txt")))
def test_each_function_answers_as_reviewed(name, request):
    compare(TRANSCRIPTS / f"{name}.txt", FUNCTIONS, request)

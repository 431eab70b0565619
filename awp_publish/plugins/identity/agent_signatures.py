"""Reading the signature of an agent: what is signed, with which key of whose directory. Nothing is verified here.

`Signature-Agent` has two forms, the dictionary and the bare string; its types are `directory`, `jwks_uri` and `cimd`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

from awp_publish.plugins.identity.directories import KINDS, WELL_KNOWN, directory_of
from awp_publish.problems import InvalidCredentials

TAG: Final = "web-bot-auth"
ACCEPT_SIGNATURE: Final = (
    "Accept-Signature",
    f'sig1=("@authority" "signature-agent";key="sig1");created;expires;keyid;tag="{TAG}"',
)
"""The header that asks for a signature (RFC 9421 section 5.1)."""

LEEWAY: Final = 30.0
"""Seconds by which clocks may differ."""

MAX_LIFETIME: Final = 86_400
"""Seconds from `created` to `expires`: the draft recommends no more than a day."""

MAX_HEADER: Final = 8_192
"""Characters of each header at most."""

MAX_COMPONENTS: Final = 32
MAX_SIGNATURES: Final = 4
_REFUSED: Final = "The request's signature is not valid."
_ADVICE: Final = (
    "Sign the request as Accept-Signature says, each request anew: with a key of the directory that "
    "Signature-Agent names, for this site's address, at the present time."
)

_METADATA: Final = frozenset({"created", "expires", "keyid", "tag", "nonce", "alg"})

_Parameters: TypeAlias = Mapping[str, object]


def forged(detail: str) -> InvalidCredentials:
    """Return the refusal of a signature."""
    return InvalidCredentials(f"{_REFUSED} {detail}", status=403, recovery=_ADVICE, headers=[ACCEPT_SIGNATURE])


@dataclass(frozen=True, slots=True)
class AgentSignature:
    """A signature that is well formed and in its time.

    `directory` identifies the signer, whose keys are of the `kind` at `address`. `of_body` are the algorithms of the
    body's digests that it covers, "" for all of them.
    """

    label: str
    directory: str
    kind: str
    address: str
    key_id: str
    expires: int
    nonce: str | None
    of_body: frozenset[str]

    @classmethod
    def read(cls, headers: Mapping[str, str], now: float, allow_private: bool) -> Self | None:
        """Read the signature of a request, None without one. Raises InvalidCredentials."""
        inputs, signature, agent = (
            headers.get(name) or "" for name in ("signature-input", "signature", "signature-agent")
        )
        if TAG not in inputs:
            return None
        if max(len(inputs), len(signature), len(agent)) > MAX_HEADER:
            raise forged(f"One of its headers has more than {MAX_HEADER} characters.")
        tagged = _tagged(inputs)
        if tagged is None:
            return None
        label, components, parameters = tagged
        _check_parameters(parameters, now)
        if not agent:
            raise forged("There is no Signature-Agent.")
        is_bare = agent.lstrip().startswith('"')
        agent_address, kind = _signer(agent, label, is_bare)
        directory = directory_of(agent_address, allow_private, kind)
        if directory is None or kind not in KINDS:
            raise forged("Signature-Agent does not name an https address of a directory of a supported type.")
        nonce, expires = parameters.get("nonce"), parameters["expires"]
        return cls(
            label,
            directory,
            kind,
            directory + WELL_KNOWN if kind == "directory" else agent_address,
            str(parameters["keyid"]),
            expires if isinstance(expires, int) else 0,
            nonce if isinstance(nonce, str) else None,
            _covered_digests(components, label, is_bare),
        )


def _tagged(inputs: str) -> tuple[str, list[Any], _Parameters] | None:
    """Return the one signature with our tag: its label, components and parameters."""
    from http_sf import parse

    try:
        parsed = parse(inputs.encode("latin-1"), tltype="dictionary")
    except Exception:
        raise forged("Signature-Input is not a dictionary (RFC 9651).") from None
    if not isinstance(parsed, dict) or len(parsed) > MAX_SIGNATURES:
        raise forged("There are too many signatures.")
    tagged = [
        (name, member) for name, member in parsed.items() if isinstance(member, tuple) and member[1].get("tag") == TAG
    ]
    if not tagged:
        return None
    if len(tagged) > 1:
        raise forged(f'There is more than one with the tag "{TAG}".')
    label, (components, parameters) = tagged[0]
    if not isinstance(components, list):
        raise forged("Signature-Input is not a list of components.")
    return label, components, parameters


def _check_parameters(parameters: _Parameters, now: float) -> None:
    created, expires, key_id = (parameters.get(name) for name in ("created", "expires", "keyid"))
    if type(created) is not int or type(expires) is not int:
        raise forged("It has no integer parameters created and expires.")
    if not isinstance(key_id, str) or not 0 < len(key_id) <= 200:
        raise forged("It names no key (keyid).")
    if not _METADATA.issuperset(parameters):
        raise forged("It has unknown parameters.")
    if created > now + LEEWAY:
        raise forged("It is not valid yet (created).")
    if expires < now - LEEWAY:
        raise forged("It has expired (expires).")
    if not 0 < expires - created <= MAX_LIFETIME:
        raise forged("It is valid for more than a day, or expires before it was created.")


def _signer(agent: str, label: str, is_bare: bool) -> tuple[str, str]:
    """Return the address that Signature-Agent names for a signature, and its type."""
    from http_sf import parse

    try:
        parsed = parse(agent.encode("latin-1"), tltype="item" if is_bare else "dictionary")
    except Exception:
        raise forged("Signature-Agent is neither a string nor a dictionary (RFC 9651).") from None
    member, kind = parsed if is_bare else parsed.get(label) if isinstance(parsed, dict) else None, "directory"
    if isinstance(member, tuple):
        kind = str(member[1].get("type", kind))
        member = member[0]
    if type(member) is not str:
        raise forged(f'Signature-Agent has no member "{label}" that is a string.')
    return member, kind


def _covered_digests(components: list[Any], label: str, is_bare: bool) -> frozenset[str]:
    """Check that our address and Signature-Agent are signed, and return the algorithms of the signed Content-Digest."""
    if len(components) > MAX_COMPONENTS:
        raise forged("It covers too many components.")
    covered = [
        (component[0], dict(component[1])) if isinstance(component, tuple) else (component, {})
        for component in components
    ]
    names = [name for name, parameters in covered if not parameters]
    if "@authority" not in names and "@target-uri" not in names:
        raise forged("It covers neither @authority nor @target-uri.")
    own = [("signature-agent", {})] if is_bare else [("signature-agent", {"key": label}), ("signature-agent", {})]
    if not any(component in covered for component in own):
        raise forged("It does not cover its Signature-Agent.")
    # In whatever form the digest is signed.
    return frozenset(str(parameters.get("key", "")) for name, parameters in covered if name == "content-digest")

"""The authorization endpoint: what a client asks for is checked (RFC 6749 section 4.1, RFC 9207, RFC 8707).

Errors about the client or the address to go back to are shown to the person. All others go back to the client: at once
where the owner knows it or no other site is reached, else if the person follows the link. A request that may be
answered is kept, signed, in the address of the page that asks the person.
"""

import re
import secrets
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

from awp_publish.http.exchange import Reply
from awp_publish.http.request import DoorRequest
from awp_publish.plugins.sign_in.at import SignInAt
from awp_publish.plugins.sign_in.clients import KnownClient
from awp_publish.plugins.sign_in.endpoints import PageEndpoint, Parameters, read_form
from awp_publish.plugins.sign_in.errors import OAuthError, Shown
from awp_publish.plugins.sign_in.pages import redirect_to
from awp_publish.plugins.sign_in.redirects import is_loopback, with_parameters

MAX_STATE: Final = 2000
"""Characters of a client's `state`."""

_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""A digest of 32 bytes in base64url: a challenge by S256, or the thumbprint of a key."""

_UNSUPPORTED: Final = {"request": "request_not_supported", "request_uri": "request_uri_not_supported"}


class AuthorizationRequest(NamedTuple):
    """A request of a client for authorization, which may be answered."""

    client: str
    redirect: str
    state: str | None
    challenge: str
    scopes: Sequence[str]
    prompt: Sequence[str]
    key: str


def refusal(at: SignInAt, client: KnownClient, error: OAuthError, redirect: str, state: str | None) -> Reply:
    """Return an error to a client at the address that it has registered (RFC 6749 section 4.1.2.1, RFC 9207).

    Raises Shown if anybody may have registered it: the site would send people wherever a link says (RFC 9700 section
    4.11.2).
    """
    parameters = {"error": error.code, "error_description": error.detail, "state": state, "iss": at.issuer}
    address = with_parameters(redirect, **parameters)
    if not (at.vouches_for(client) or is_loopback(redirect)):
        raise Shown("This request cannot be answered", error.detail, back=address)
    return redirect_to(address)


class AuthorizeEndpoint(PageEndpoint):
    """Checks a client's request, and sends the person on to the question."""

    async def answer_person(self, request: DoorRequest) -> None:
        """Answer a request. Raises Shown for what is not safe to send back."""
        if request.scope["method"] == "POST":
            parameters = await read_form(request)
        else:
            parameters = Parameters(request.scope["query_string"].decode("latin-1"))
        client = await self._client(parameters, self.at.address_of(request))
        redirect = client.redirect_for(parameters.get("redirect_uri"))
        if redirect is None:
            raise Shown(
                "This request is not safe",
                f"{client.name} asks to send you to an address that it has not registered. You stay here.",
            )
        state: str | None = None
        try:
            state = parameters.get("state")
            authorization = self._read(parameters, client.id, redirect, state)
        except OAuthError as error:
            await request.reply(refusal(self.at, client, error, redirect, state))
            return
        signed, _ = self.at.pending.write({"asked": authorization, "nonce": secrets.token_urlsafe(9)})
        query = urlencode({"request": signed})
        await request.reply(redirect_to(f"{self.at.here(self.at.paths.consent)}?{query}"))

    async def _client(self, parameters: Parameters, address: str) -> KnownClient:
        client_id = parameters.get("client_id")
        if client_id is None:
            raise Shown("This request is incomplete", "It does not say which agent asks (client_id).")
        client = await self.at.clients.find(client_id, address)
        if client is None:
            raise Shown("This agent is not known", "It has not registered here, or its registration has ended.")
        return client

    def _read(self, parameters: Parameters, client: str, redirect: str, state: str | None) -> AuthorizationRequest:
        """Return what a request asks for. Raises OAuthError, which is sent back."""
        for name, code in _UNSUPPORTED.items():
            if parameters.get(name) is not None:
                raise OAuthError(code, f"The parameter {name} is not supported.")
        if parameters.need("response_type") != "code":
            raise OAuthError("unsupported_response_type", "response_type must be code.")
        if parameters.get("response_mode") not in (None, "query"):
            raise OAuthError("invalid_request", "response_mode must be query.")
        if len(state or "") > MAX_STATE or "\ufffd" in (state or ""):  # it would not come back as it was
            raise OAuthError("invalid_request", f"state must be UTF-8, of at most {MAX_STATE} characters.")
        challenge = parameters.need("code_challenge")
        if parameters.get("code_challenge_method") != "S256":
            raise OAuthError("invalid_request", "code_challenge_method must be S256.")
        if not _CHALLENGE.fullmatch(challenge):
            raise OAuthError("invalid_request", "code_challenge must be 43 characters of base64url.")
        self.at.check_resources(parameters.all("resource"))
        scopes = self.at.scopes_of(parameters.get("scope") or "")
        if scopes is None:
            raise OAuthError("invalid_scope", f"The scopes here are: {' '.join(self.at.options.scopes) or 'none'}.")
        key = parameters.get("dpop_jkt") if self.at.state.proofs is not None else None
        if key is not None and not _CHALLENGE.fullmatch(key):
            raise OAuthError("invalid_request", "dpop_jkt must be 43 characters of base64url.")
        prompt = (parameters.get("prompt") or "").split()
        return AuthorizationRequest(client, redirect, state, challenge, scopes, prompt, key or "")

"""The endpoints for programs: tokens, registration, revocation (RFC 6749 section 3.2, RFC 7591, RFC 7009)."""

from collections.abc import Awaitable, Callable, Mapping
from time import time
from typing import Any, Final

from awp_publish.http.request import DoorRequest
from awp_publish.plugins.sign_in.clients import KnownClient
from awp_publish.plugins.sign_in.endpoints import Parameters, ProgramEndpoint, ProgramRequest, read_form, read_json
from awp_publish.plugins.sign_in.errors import OAuthError, json_reply
from awp_publish.plugins.sign_in.grants import Grant, Issued
from awp_publish.problems import InvalidProof


class TokenEndpoint(ProgramEndpoint):
    """Exchanges codes and refresh tokens for tokens."""

    async def answer_program(self, request: ProgramRequest) -> None:
        """Answer a request. Raises OAuthError."""
        form = await read_form(request)
        exchange = _EXCHANGES.get(form.need("grant_type"))
        if exchange is None:
            raise OAuthError("unsupported_grant_type", f"grant_type must be one of {', '.join(_EXCHANGES)}.")
        client = await self.authenticate(request, form)
        self.at.check_resources(form.all("resource"))
        key = await self._proven_key(request)
        issued = await exchange(self, request, form, client, key)
        answer: dict[str, object] = {
            "access_token": issued.access,
            "token_type": "DPoP" if key else "Bearer",
            "expires_in": issued.seconds,
        }
        if issued.scopes:
            answer["scope"] = " ".join(issued.scopes)
        if issued.refresh is not None:
            answer["refresh_token"] = issued.refresh
        await request.answer_with(json_reply(answer))

    async def _proven_key(self, request: DoorRequest) -> str:
        """Return the thumbprint of the key that a request proves (RFC 9449 section 5), or "". Raises OAuthError."""
        proof, proofs = request.fields.get(b"dpop"), self.at.state.proofs
        if proof is None or proofs is None:
            return ""
        try:
            return await proofs.check(request.scope, proof.decode("latin-1"))
        except InvalidProof as problem:
            raise OAuthError("invalid_dpop_proof", problem.detail) from problem

    async def exchange_code(self, request: DoorRequest, form: Parameters, client: KnownClient, key: str) -> Issued:
        """Exchange an authorization code. Raises OAuthError."""
        code, verifier = form.need("code"), form.need("code_verifier")
        return await self.at.grants.exchange(code, client, form.get("redirect_uri"), verifier, key)

    async def refresh(self, request: DoorRequest, form: Parameters, client: KnownClient, key: str) -> Issued:
        """Exchange a refresh token, if its person is still known to the site. Raises OAuthError."""
        scope_text, token = form.get("scope"), form.need("refresh_token")
        grant = await self.at.grants.of_refresh_token(token)
        if grant is not None and grant.client == client.id:  # asked before the token is spent: the site may not answer
            scope = await self.at.recognize(request.scope, grant, self.at.home)
            seen = await self.at.reentry.see({**scope, "method": "GET"}) if scope is not None else None
            if seen is None or not await self.at.is_signed_in(seen, grant):
                await self.at.grants.end(grant.id)
                raise OAuthError("invalid_grant", "The person has signed out and has to sign in again.")
        return await self.at.grants.refresh(token, client, scope_text.split() if scope_text is not None else None, key)

    async def issue_to_client(self, request: DoorRequest, form: Parameters, client: KnownClient, key: str) -> Issued:
        """Issue a token to a client of the owner's that acts for itself. Raises OAuthError."""
        if client.origin != "named" or not client.is_confidential or not client.scopes:
            raise OAuthError(
                "unauthorized_client", "Only a client with a secret or key, and scopes of its own, may do this."
            )
        requested = tuple(dict.fromkeys((form.get("scope") or "").split())) or client.scopes
        if not set(requested) <= set(client.scopes):
            raise OAuthError("invalid_scope", f"This client has the scopes {' '.join(client.scopes)}.")
        now = time()
        seconds = 60 * self.at.options.minutes
        return await self.at.grants.issue_to_client(
            Grant("", client.id, client.name, None, "", requested, now, now + seconds, key=key)
        )


_Exchange = Callable[[TokenEndpoint, DoorRequest, Parameters, KnownClient, str], Awaitable[Issued]]
_EXCHANGES: Final[Mapping[str, _Exchange]] = {
    "authorization_code": TokenEndpoint.exchange_code,
    "refresh_token": TokenEndpoint.refresh,
    "client_credentials": TokenEndpoint.issue_to_client,
}


class RegisterEndpoint(ProgramEndpoint):
    """Registers clients."""

    async def answer_program(self, request: ProgramRequest) -> None:
        """Register a client. Raises OAuthError."""
        metadata: Any = await read_json(request)
        answer = await self.at.clients.register(metadata, self.at.address_of(request))
        await request.answer_with(json_reply(answer, 201))


class RevokeEndpoint(ProgramEndpoint):
    """Ends tokens. One that is not known has ended already (RFC 7009 section 2.2)."""

    async def answer_program(self, request: ProgramRequest) -> None:
        """End a token. Raises OAuthError."""
        form = await read_form(request)
        client = await self.authenticate(request, form)
        await self.at.grants.end_of_token(form.need("token"), client)
        await request.answer_with(json_reply({}))

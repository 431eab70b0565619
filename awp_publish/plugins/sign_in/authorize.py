"""The authorization endpoint, and the page on which a person answers (RFC 6749 section 4.1, RFC 9207, RFC 8707).

A request is checked first. Errors about the client or the address to go back to are shown to the person; all others are
sent back. Then the person signs in on the site's own page and answers here; meanwhile the request is kept in the
address, signed.
"""

import re
import secrets
import time
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from awp_publish.browsing.cookies import Cookie
from awp_publish.http.request import DoorRequest
from awp_publish.plugins.sign_in.at import COOKIE, PENDING_SECONDS, consent_key, digest, read_signed
from awp_publish.plugins.sign_in.clients import KnownClient
from awp_publish.plugins.sign_in.endpoints import PageEndpoint, Parameters, read_form
from awp_publish.plugins.sign_in.errors import OAuthError, Shown
from awp_publish.plugins.sign_in.grants import Grant
from awp_publish.plugins.sign_in.pages import day_of, redirect_to
from awp_publish.plugins.sign_in.people import Visitor
from awp_publish.plugins.sign_in.redirects import is_local, shown_host, with_parameters
from awp_publish.stores.store import Add, Look
from awp_publish.stores.values import read_value, replacement

MAX_STATE: Final = 2000
"""Characters of a client's `state`."""

_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
"""A digest of 32 bytes in base64url: a challenge by S256, or the thumbprint of a key."""

_UNSUPPORTED: Final = {"request": "request_not_supported", "request_uri": "request_uri_not_supported"}


class AuthorizeEndpoint(PageEndpoint):
    """Checks a client's request, and sends the person on to the question."""

    async def answer_person(self, request: DoorRequest) -> None:
        """Answer a request. Raises Shown for what is not safe to send back."""
        if request.scope["method"] == "POST":
            given = await read_form(request)
        else:
            given = Parameters(request.scope["query_string"].decode("latin-1"))
        client = await self._client(given, self.at.address_of(request))
        redirect = client.redirect_for(given.get("redirect_uri"))
        if redirect is None:
            raise Shown(
                "This request is not safe",
                f"{client.name} asks to send you to an address that it has not registered. You stay here.",
            )
        state: str | None = None
        try:
            state = given.get("state")
            pending = self._read(given)
        except OAuthError as error:
            parameters = {"error": error.code, "error_description": error.detail, "state": state}
            await request.reply(redirect_to(with_parameters(redirect, **parameters, iss=self.at.issuer)))
            return
        facts = {**pending, "c": client.id, "r": redirect, "s": state, "n": secrets.token_urlsafe(9)}
        query = urlencode({"request": self.at.pending.write(facts)[0]})
        await request.reply(redirect_to(f"{self.at.here(self.at.paths.consent)}?{query}"))

    async def _client(self, given: Parameters, address: str) -> KnownClient:
        client_id = given.get("client_id")
        if client_id is None:
            raise Shown("This request is incomplete", "It does not say which agent asks (client_id).")
        client = await self.at.clients.find(client_id, address)
        if client is None:
            raise Shown("This agent is not known", "It has not registered here, or its registration has ended.")
        return client

    def _read(self, given: Parameters) -> dict[str, Any]:
        """Return what a request asks for. Raises OAuthError, which is sent back."""
        for name, code in _UNSUPPORTED.items():
            if given.get(name) is not None:
                raise OAuthError(code, f"The parameter {name} is not supported.")
        if given.need("response_type") != "code":
            raise OAuthError("unsupported_response_type", "response_type must be code.")
        if given.get("response_mode") not in (None, "query"):
            raise OAuthError("invalid_request", "response_mode must be query.")
        if len(given.get("state") or "") > MAX_STATE:
            raise OAuthError("invalid_request", f"state has more than {MAX_STATE} characters.")
        challenge = given.need("code_challenge")
        if given.get("code_challenge_method") != "S256":
            raise OAuthError("invalid_request", "code_challenge_method must be S256.")
        if not _CHALLENGE.fullmatch(challenge):
            raise OAuthError("invalid_request", "code_challenge must be 43 characters of base64url.")
        resources = given.all("resource")
        if any(resource.rstrip("/") not in self.at.resources for resource in resources):
            raise OAuthError("invalid_target", "resource must be the address of this site, or of one of its doors.")
        scopes = self.at.scopes_of(given.get("scope") or "")
        if scopes is None:
            raise OAuthError("invalid_scope", f"The scopes here are: {' '.join(self.at.options.scopes) or 'none'}.")
        key = given.get("dpop_jkt") if self.at.state.proofs is not None else None
        if key is not None and not _CHALLENGE.fullmatch(key):
            raise OAuthError("invalid_request", "dpop_jkt must be 43 characters of base64url.")
        prompt = (given.get("prompt") or "").split()
        return {"ch": challenge, "re": resources[0] if resources else "", "sc": scopes, "p": prompt, "j": key or ""}


class ConsentEndpoint(PageEndpoint):
    """Asks the person, and sends the answer back."""

    async def answer_person(self, request: DoorRequest) -> None:
        """Show the question, or take the answer. Raises Shown."""
        form = await read_form(request) if request.scope["method"] == "POST" else None
        given = form or Parameters(request.scope["query_string"].decode("latin-1"))
        token = given.get("request") or ""
        pending = read_signed(self.at.pending, token)
        if pending is None:
            minutes = f"{PENDING_SECONDS / 60:g}"
            raise Shown(
                "This request has expired",
                f"It is more than {minutes} minutes old, or was not made by this site.",
            )
        client = await self.at.clients.find(pending["c"], self.at.address_of(request))
        if client is None or client.redirect_for(pending["r"]) is None:
            raise Shown("This agent is not known", "Its registration has ended.")
        signed = await self.at.people.find(request.scope)
        if signed is None:
            await self._to_login(request, token, pending)
        elif form is not None:
            await self._take(request, form, token, pending, client, signed)
        elif await self._is_remembered(pending, client, signed):
            await self._allow(request, token, pending, client, signed, tuple(pending["sc"]))
        elif "none" in pending["p"]:
            await self._refuse(request, pending, "consent_required", "The person has to decide.")
        else:
            await self._ask(request, token, pending, client, signed)

    async def _to_login(self, request: DoorRequest, token: str, pending: Any) -> None:
        if "none" in pending["p"]:
            await self._refuse(request, pending, "login_required", "The person has to sign in.")
            return
        login = self.at.people.login
        if login is None:
            raise Shown("You are not signed in", "Sign in to the site, then connect your agent again.", 403)
        await request.reply(redirect_to(self._by_way_of(login, token)))

    @property
    def _signs_out(self) -> bool:
        """True if somebody who is not the person shown is signed out here, and not on a page of the site."""
        return self.at.options.logout is None and self.at.people.framework.signs_out

    def _by_way_of(self, page: str, token: str) -> str:
        """Return the address of a page of the site that leads back here."""
        return self.at.by_way_of(page, f"{self.at.paths.consent}?{urlencode({'request': token})}")

    async def _ask(self, request: DoorRequest, token: str, pending: Any, client: KnownClient, signed: Visitor) -> None:
        nonce = self.cookie_of(request, COOKIE) or secrets.token_urlsafe(24)
        redirect = pending["r"]
        translate = self.at.people.framework.language_of(request.scope).translate
        facts = {
            "title": translate("Let %(client)s act for you?") % {"client": client.name},
            "client": {
                "name": client.name,
                "host": client.host,
                "back": shown_host(redirect),
                "is_local": is_local(redirect),
                "is_unchecked": client.origin == "registered" and not is_local(redirect),
            },
            "person": {"name": signed.name},
            "scopes": self.at.described(pending["sc"]),
            "actions": self.at.guarded(),
            "until": translate("On %s") % day_of(time.time() + 86_400 * self.at.options.days, translate),
            "action": self.at.here(self.at.paths.consent),
            "pending": token,
            "token": self.at.form_token(token, signed, nonce),
            "connections": self.at.here(self.at.paths.connections),
            "other": self._by_way_of(self.at.options.logout or self.at.people.login or "/", token),
            "signs_out": self._signs_out,
        }
        headers = (self.at.cookie(nonce),)
        page = await self.at.pages.reply(request.scope, "consent.html", facts, leads_away=True, headers=headers)
        await request.reply(page)

    async def _take(
        self, request: DoorRequest, form: Parameters, token: str, pending: Any, client: KnownClient, signed: Visitor
    ) -> None:
        """Take a person's answer. Raises Shown for one that this page was not made for."""
        if not self.at.is_form_of(form.get("token") or "", token, signed, self.cookie_of(request, COOKIE)):
            raise Shown(
                "This page is out of date", "It was opened by somebody else, in another browser, or long ago.", 403
            )
        if form.get("answer") == "other" and self._signs_out and await self.at.people.framework.sign_out(request.scope):
            await self._to_login(request, token, pending)
            return
        chosen = tuple(name for name in pending["sc"] if name in form.all("scope"))
        if form.get("answer") != "allow" or (pending["sc"] and not chosen):
            await self._refuse(request, pending, "access_denied", "The person did not allow it.")
            return
        await self._allow(request, token, pending, client, signed, chosen)

    async def _allow(
        self,
        request: DoorRequest,
        token: str,
        pending: Any,
        client: KnownClient,
        signed: Visitor,
        scopes: tuple[str, ...],
    ) -> None:
        """Issue a code, once for each request. Raises Shown."""
        answered = Add(f"sign-in:answered:{digest(token)}", b"1", PENDING_SECONDS)
        if (await self.at.store.run((answered,), durable=True)).failed is not None:
            raise Shown("This was already answered", "Each request is answered once.", 409)
        now = time.time()
        seconds = 86_400 * self.at.options.days
        cookies: tuple[Cookie, ...] = ()
        if self.at.options.as_user is None:
            cookies = await self.at.people.cookies_for(request.scope, self.at.home, seconds, COOKIE)
        grant = Grant(
            "",
            client.id,
            client.name,
            signed.principal.key,
            signed.name,
            scopes,
            now,
            now + seconds,
            cookies,
            key=pending["j"],
        )
        _, code = await self.at.grants.begin(grant, pending["r"], pending["ch"], pending["re"])
        await self._remember(client, signed, scopes, seconds)
        await self.at.clients.keep(client, float(seconds))
        address = with_parameters(pending["r"], code=code, state=pending["s"], iss=self.at.issuer)
        await request.reply(redirect_to(address))

    async def _refuse(self, request: DoorRequest, pending: Any, code: str, detail: str) -> None:
        parameters = {"error": code, "error_description": detail, "state": pending["s"], "iss": self.at.issuer}
        await request.reply(redirect_to(with_parameters(pending["r"], **parameters)))

    async def _is_remembered(self, pending: Any, client: KnownClient, signed: Visitor) -> bool:
        """Return True if the same person has allowed the same client as much before, and nobody else can be it."""
        if not self.at.options.remember or is_local(pending["r"]) or "consent" in pending["p"]:
            return False
        raw = (await self.at.store.run((Look(consent_key(signed.principal.key, client.id)),))).seen[0]
        known = orjson.loads(raw) if isinstance(raw, bytes) else None
        return known is not None and pending["r"] in known["r"] and set(pending["sc"]) <= set(known["s"])

    async def _remember(self, client: KnownClient, signed: Visitor, scopes: tuple[str, ...], seconds: float) -> None:
        key = consent_key(signed.principal.key, client.id)
        written = orjson.dumps({"s": scopes, "r": client.redirects})
        await self.at.store.run((replacement(key, await read_value(self.at.store, key), written, seconds),))

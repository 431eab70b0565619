"""The page that asks a person, and what becomes of the answer (RFC 6749 section 4.1.2, RFC 9207)."""

import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import orjson

from awp_publish.browsing.cookies import Cookie
from awp_publish.http.exchange import Reply
from awp_publish.http.request import DoorRequest
from awp_publish.plugins.sign_in.at import PENDING_SECONDS, SignInAt
from awp_publish.plugins.sign_in.authorize import AuthorizationRequest, refusal
from awp_publish.plugins.sign_in.clients import KnownClient
from awp_publish.plugins.sign_in.endpoints import PageEndpoint, Parameters, read_form
from awp_publish.plugins.sign_in.errors import OAuthError, Shown
from awp_publish.plugins.sign_in.forms import COOKIE, read_signed
from awp_publish.plugins.sign_in.grants import Grant, digest_of
from awp_publish.plugins.sign_in.pages import day_of, redirect_to
from awp_publish.plugins.sign_in.people import Visitor
from awp_publish.plugins.sign_in.redirects import is_local, shown_host, with_parameters
from awp_publish.plugins.sign_in.site import consent_key
from awp_publish.stores.store import Add, Look
from awp_publish.stores.values import read_value, replacement

DAY: Final = 86_400


class ConsentEndpoint(PageEndpoint):
    """Asks the person, and sends the answer back."""

    async def answer_person(self, request: DoorRequest) -> None:
        """Show the question, or take the answer. Raises Shown."""
        form = await read_form(request) if request.scope["method"] == "POST" else None
        token = (form or Parameters(request.scope["query_string"].decode("latin-1"))).get("request") or ""
        pending = read_signed(self.at.pending, token)
        if pending is None:
            minutes = f"{PENDING_SECONDS / 60:g}"
            raise Shown(
                "This request has expired",
                f"It is more than {minutes} minutes old, or was not made by this site.",
            )
        authorization = AuthorizationRequest(*pending["asked"])
        client = await self.at.clients.find(authorization.client, self.at.address_of(request))
        if client is None or client.redirect_for(authorization.redirect) is None:
            raise Shown("This agent is not known", "Its registration has ended.")
        await request.reply(await _Question(self.at, request, token, authorization, client).answer(form))


@dataclass(frozen=True, slots=True)
class _Question:
    """The question of one client to whoever opens the page. `token` is its request as the address has it, signed."""

    at: SignInAt
    request: DoorRequest
    token: str
    authorization: AuthorizationRequest
    client: KnownClient

    async def answer(self, form: Parameters | None) -> Reply:
        """Return the page, or where the browser goes next. Raises Shown."""
        signed = await self.at.people.find(self.request.scope)
        if signed is None:
            return self._to_login()
        if form is not None:
            return await self._take(form, signed)
        if self.request.scope["method"] == "GET" and await self._is_remembered(signed):  # HEAD changes nothing
            return await self._allow(signed, tuple(self.authorization.scopes))
        if "none" in self.authorization.prompt:
            return self._refuse("consent_required", "The person has to decide.")
        return await self._ask(signed)

    def _to_login(self) -> Reply:
        login = self.at.people.login
        if "none" in self.authorization.prompt:
            return self._refuse("login_required", "The person has to sign in.")
        return redirect_to(self._by_way_of(login))

    def _by_way_of(self, page: str) -> str:
        """Return the address of a page of the site that leads back here."""
        return self.at.by_way_of(page, f"{self.at.paths.consent}?{urlencode({'request': self.token})}")

    @property
    def _signs_out(self) -> bool:
        """True if somebody who is not the person shown is signed out here, and not on a page of the site."""
        return self.at.options.logout is None and self.at.people.framework.signs_out

    async def _ask(self, signed: Visitor) -> Reply:
        at, client, redirect = self.at, self.client, self.authorization.redirect
        form_token, cookie = at.forms.token_for(self.token, signed, self.request.fields)
        translate = at.people.framework.language_of(self.request.scope).translate
        facts = {
            "title": translate("Let %(client)s act for you?") % {"client": client.name},
            "client": {
                "name": client.name,
                "host": client.host,
                "back": shown_host(redirect),
                "is_local": is_local(redirect),
                "is_unchecked": not (at.vouches_for(client) or is_local(redirect)) and client.name != client.host,
                "is_encoded": "xn--" in f"{client.host} {shown_host(redirect)}",
            },
            "person": {"name": signed.name},
            "scopes": at.described(self.authorization.scopes),
            "actions": at.guarded(),
            "until": translate("On %s") % day_of(time.time() + DAY * at.options.days, translate),
            "action": at.here(at.paths.consent),
            "pending": self.token,
            "token": form_token,
            "connections": at.here(at.paths.connections),
            "other": self._by_way_of(at.options.logout or at.people.login),
            "signs_out": self._signs_out,
        }
        return await at.pages.reply(self.request.scope, "consent.html", facts, leads_away=True, headers=(cookie,))

    async def _take(self, form: Parameters, signed: Visitor) -> Reply:
        """Take a person's answer. Raises Shown for one that this page was not made for."""
        if not self.at.forms.is_valid(form.get("token"), self.token, signed, self.request.fields):
            raise Shown(
                "This page is out of date", "It was opened by somebody else, in another browser, or long ago.", 403
            )
        answer, framework = form.get("answer"), self.at.people.framework
        if answer == "other" and self._signs_out and await framework.sign_out(self.request.scope):
            return self._to_login()
        chosen = tuple(name for name in self.authorization.scopes if name in form.all("scope"))
        if answer != "allow" or (self.authorization.scopes and not chosen):
            denied = {"error": "access_denied", "error_description": "The person did not allow it."}
            return self._send_back(**denied)
        return await self._allow(signed, chosen)

    async def _allow(self, signed: Visitor, scopes: tuple[str, ...]) -> Reply:
        """Issue a code, once for each request. Raises Shown."""
        at, authorization, client = self.at, self.authorization, self.client
        answered = Add(f"sign-in:answered:{digest_of(self.token)}", b"1", PENDING_SECONDS)
        if (await at.store.run((answered,), durable=True)).failed is not None:
            raise Shown("This was already answered", "Each request is answered once.", 409)
        now, seconds = time.time(), DAY * at.options.days
        cookies: tuple[Cookie, ...] = ()
        if at.options.as_user is None:
            cookies = await at.people.cookies_for(self.request.scope, at.home, seconds, COOKIE)
        grant = Grant(
            id="",
            client=client.id,
            client_name=client.name,
            person=signed.principal.key,
            person_name=signed.name,
            scopes=scopes,
            began=now,
            until=now + seconds,
            cookies=cookies,
            key=authorization.key,
            is_confidential=client.is_confidential,
        )
        code = await at.grants.begin(grant, authorization.redirect, authorization.challenge)
        remembered = consent_key(signed.principal.key, client.id)
        written = orjson.dumps({"scopes": scopes, "redirects": client.redirects})
        await at.store.run((replacement(remembered, await read_value(at.store, remembered), written, float(seconds)),))
        await at.clients.keep(client, float(seconds))
        return self._send_back(code=code)

    def _send_back(self, **answer: str) -> Reply:
        authorization = self.authorization
        return redirect_to(
            with_parameters(authorization.redirect, **answer, state=authorization.state, iss=self.at.issuer)
        )

    def _refuse(self, code: str, detail: str) -> Reply:
        return refusal(
            self.at, self.client, OAuthError(code, detail), self.authorization.redirect, self.authorization.state
        )

    async def _is_remembered(self, signed: Visitor) -> bool:
        """Return True if the same person has allowed the same client as much before, and nobody else can be it."""
        authorization = self.authorization
        if not self.at.options.remember or is_local(authorization.redirect) or "consent" in authorization.prompt:
            return False
        raw = (await self.at.store.run((Look(consent_key(signed.principal.key, self.client.id)),))).seen[0]
        remembered = orjson.loads(raw) if isinstance(raw, bytes) else None
        return (
            remembered is not None
            and authorization.redirect in remembered["redirects"]
            and set(authorization.scopes) <= set(remembered["scopes"])
        )

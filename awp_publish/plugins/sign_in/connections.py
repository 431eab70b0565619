"""The page where a person sees which agents may act for them, and ends that."""

import time
from collections.abc import Callable

from awp_publish.http.exchange import Reply
from awp_publish.http.request import DoorRequest
from awp_publish.plugins.sign_in.endpoints import PageEndpoint, read_form
from awp_publish.plugins.sign_in.errors import Shown
from awp_publish.plugins.sign_in.grants import Grant
from awp_publish.plugins.sign_in.pages import day_of, redirect_to
from awp_publish.plugins.sign_in.people import Visitor

PURPOSE = "connections"


class ConnectionsEndpoint(PageEndpoint):
    """Lists what a person has allowed, and ends one of it."""

    async def answer_person(self, request: DoorRequest) -> None:
        """Show the page. Raises Shown."""
        at = self.at
        signed = await at.people.find(request.scope)
        if signed is None:
            await request.reply(redirect_to(at.by_way_of(at.people.login, at.paths.connections)))
            return
        ended = ""
        if request.scope["method"] == "POST":
            form = await read_form(request)
            if not at.forms.is_valid(form.get("token"), PURPOSE, signed, request.fields):
                raise Shown("This page is out of date", "Open it again, and answer within ten minutes.", 403)
            for grant in await at.grants.of_person(signed.principal.key):  # nobody ends what is somebody else's
                if grant.id == form.get("end"):
                    await at.state.disconnect(grant.id)
                    ended = grant.client_name
        await request.reply(await self._page(request, signed, ended))

    async def _page(self, request: DoorRequest, signed: Visitor, ended: str) -> Reply:
        at = self.at
        token, cookie = at.forms.token_for(PURPOSE, signed, request.fields)
        grants = await at.grants.of_person(signed.principal.key)
        translate = at.people.framework.language_of(request.scope).translate
        facts = {
            "title": "Connected agents",
            "wide": True,
            "person": {"name": signed.name},
            "ended": ended,
            "grants": [self._described(grant, translate) for grant in grants],
            "action": at.here(at.paths.connections),
            "token": token,
        }
        return await at.pages.reply(request.scope, "connections.html", facts, headers=(cookie,))

    def _described(self, grant: Grant, translate: Callable[[str], str]) -> dict[str, str]:
        words = (scope["words"].rstrip(".") for scope in self.at.described(grant.scopes))
        used = day_of(max(grant.refreshed, grant.began), translate)
        return {
            "id": grant.id,
            "name": grant.client_name,
            "host": grant.host,
            "words": " ".join(f"{word}." for word in words),
            "since": day_of(grant.began, translate),
            "used": translate("today") if used == day_of(time.time(), translate) else used,
            "until": day_of(grant.until, translate),
        }

"""The pages that people see: consent, connected agents, and what went wrong.

They run no scripts, stand in no frame, and load nothing from elsewhere. A folder of the site's own, or Django's
templates `awp_publish/sign_in/...`, may have other ones of the same names. Their words are in the language that the
framework knows for a request, as far as its catalogues have them.
"""

import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from awp_publish.http.exchange import NO_SNIFFING, RawHeaders, Reply, Scope, content_length
from awp_publish.model import Catalog
from awp_publish.plugins.sign_in.framework import Framework
from awp_publish.plugins.sign_in.options import SignIn
from awp_publish.plugins.sign_in.redirects import shown_host

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES: Final = Path(__file__).parent / "templates"


class SignInPages:
    """Renders the pages of one site."""

    def __init__(self, options: SignIn, catalog: Catalog, framework: Framework) -> None:
        self._options = options
        self._framework = framework
        self._site = {"name": catalog.site.name, "host": urlsplit(catalog.url).netloc}

    @cached_property
    def _environment(self) -> "Environment":
        from jinja2 import ChoiceLoader, Environment, FileSystemLoader

        own = [FileSystemLoader(self._options.templates)] if self._options.templates is not None else []
        loader = ChoiceLoader([*own, FileSystemLoader(TEMPLATES)])
        return Environment(loader=loader, autoescape=True, extensions=["jinja2.ext.i18n"])

    async def reply(
        self,
        scope: Scope,
        template: str,
        facts: Mapping[str, object],
        *,
        status: int = 200,
        leads_away: bool = False,
        headers: RawHeaders = (),
    ) -> Reply:
        """Return a page for a request. Its form may lead to other sites if it `leads_away`.

        Browsers compare every redirect that follows with `form-action`, and those of a client are its own affair.
        """
        nonce = secrets.token_urlsafe(16)
        context = {"site": self._site, "nonce": nonce, "wide": False, **facts}
        rendered = await self._framework.render(scope, f"awp_publish/sign_in/{template}", context)
        if rendered is None:
            language = self._framework.language_of(scope)
            spoken = {"language": language.tag, "gettext": language.translate}
            rendered = self._environment.get_template(template).render(context | spoken)
        body = rendered.encode("utf-8", "replace")
        policy = (
            f"default-src 'none'; style-src 'self' 'nonce-{nonce}'; img-src 'self'; base-uri 'none'; "
            "frame-ancestors 'none'" + ("" if leads_away else "; form-action 'self'")
        )
        fixed: RawHeaders = (
            (b"content-type", b"text/html; charset=utf-8"),
            content_length(len(body)),
            (b"content-security-policy", policy.encode("ascii", "ignore")),
            (b"x-frame-options", b"DENY"),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
            NO_SNIFFING,
        )
        return Reply(status, (*fixed, *headers), body)

    async def message(
        self, scope: Scope, title: str, detail: str, status: int = 400, advice: str = "", back: str = ""
    ) -> Reply:
        """Return a page that says what went wrong with a request. Its link leads `back` to whoever has sent it."""
        facts = {"title": title, "detail": detail, "advice": advice, "back": back, "host": shown_host(back)}
        return await self.reply(scope, "message.html", facts, status=status)


def redirect_to(address: str) -> Reply:
    """Return a redirect that is followed with GET (RFC 9110 section 15.4.4), and that nobody caches."""
    fixed: RawHeaders = (
        (b"location", address.encode("latin-1", "replace")),
        content_length(0),
        (b"cache-control", b"no-store"),
        (b"referrer-policy", b"no-referrer"),
    )
    return Reply(303, fixed)


def day_of(seconds: float, translate: Callable[[str], str] = str) -> str:
    """Return a time in Unix seconds as a day, such as "3 March 2027"."""
    day = datetime.fromtimestamp(seconds, UTC)
    return f"{day.day} {translate(f'{day:%B}')} {day.year}"

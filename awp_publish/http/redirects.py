"""The answer to a call whose route redirects, as pages for people do. One rule for all frameworks.

* A redirect to a sign-in page says that the call needs somebody who is signed in.
* A redirect after a write (301, 302, 303) is its success (Post/Redirect/Get): the answer is `{"location": ...}`, with
  what is there as `page` if the address is one of this site and has JSON or a page's Markdown, and the members of the
  JSON object that the redirect may have as its body.
* A redirect of a read is followed within the site. Of another site, only the address is told.
"""

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final, cast
from urllib.parse import SplitResult, parse_qsl, quote, urljoin, urlsplit

from awp_publish.browsing.addresses import REDIRECTS
from awp_publish.calls.call import Call
from awp_publish.declare.discover.routes import has_sign_in_name
from awp_publish.http.exchange import Fields, Headers, Scope, mount_of
from awp_publish.http.page_request import PageAnswer, PageExchange, PageRequest
from awp_publish.http.position import CalledApplication
from awp_publish.model import SAFE_IN_PATH, Action
from awp_publish.schema.origins import DEFAULT_PORTS, Origin
from awp_publish.schema.paths import pattern_of

AFTER_WRITE: Final = frozenset({301, 302, 303})
"""Statuses after a write that has been done: 307 and 308 ask for it at another address (RFC 9110 section 15.4.8)."""

MAX_REDIRECTS: Final = 5
MAX_PAGE_BYTES: Final = 16 * 1024 * 1024
PAGE_SECONDS: Final = 5.0
"""Seconds after which a write is answered without what is at its redirect's address."""

_BEFORE_SIGN_IN: Final = re.compile(
    r"log-?(out|off)|sign-?(out|up)|regist|password|reset|activat|verif|confirm|delet|clos", re.IGNORECASE
)
"""In the path of actions that are done when they send their caller to the sign-in page."""

_NOT_SENT: Final = frozenset({b"accept", b"cookie", b"origin", b"idempotency-key"})

logger: Final = logging.getLogger("awp_publish.calls")


def asks_to_sign_in(action: Action, location: str) -> bool:
    """Return True if a redirect sends its caller to a sign-in page, and not on to it after something was done.

    Frameworks say where to come back to, `next`: the address that was asked for.
    """
    try:
        target = urlsplit(location)
    except ValueError:
        return False
    if not has_sign_in_name(target.path):
        return False
    own = action.way.path if action.way is not None else ""
    pattern = re.compile(pattern_of(own), re.DOTALL)
    asked_for = (urlsplit(value).path for _, value in parse_qsl(target.query) if value.startswith(("/", "http")))
    with suppress(ValueError):
        if any(pattern.fullmatch(path) for path in asked_for):
            return True
    return not _BEFORE_SIGN_IN.search(own)


@dataclass(frozen=True, slots=True)
class Follower:
    """Follows redirects within the site at `url`, in process, with the caller's own credentials.

    Its requests go to the outermost application, so that all middleware and gates apply.
    """

    url: str
    app: CalledApplication

    async def follow(
        self, call: Call, sent: Scope, headers: Headers, kept: Headers, accept: bytes
    ) -> PageAnswer | str | None:
        """Return the answer at the address that the answer `headers` of the request `sent` name.

        Of another site only the address, None if there is no answer. The answer's headers have all cookies on the way
        but those that `kept` sets; it is itself a redirect if it leads to a sign-in page.
        """
        outer = cast(Scope, call.context)
        base = self.url + quote(sent["path"].removeprefix(mount_of(outer)), safe=SAFE_IN_PATH)
        cookies, new = cookies_of(outer["headers"]), [pair for pair in headers if pair[0].lower() == b"set-cookie"]
        location = location_of(headers)
        receive_cookies(cookies, kept)
        for _ in range(MAX_REDIRECTS):
            target = self._of_site(base, location, outer)
            if target is None:
                return location or None
            receive_cookies(cookies, headers)
            answer = await self._get(target, sent, outer, cookies, accept)
            if answer is None or not answer.is_whole:
                return None
            headers, base, location = answer.headers, target.geturl(), location_of(answer.headers)
            new += [pair for pair in headers if pair[0].lower() == b"set-cookie"]
            if answer.status not in REDIRECTS or not location or asks_to_sign_in(call.action, location):
                others = [pair for pair in headers if pair[0].lower() != b"set-cookie"]
                return PageAnswer(answer.status, (*others, *new), answer.body)
        return None

    def _of_site(self, base: str, location: str, outer: Scope) -> SplitResult | None:
        """Return the address to which a redirect leads if it is one of this site."""
        if not location or "\\" in location or not location.isprintable():  # parsers disagree about these
            return None
        try:
            target, own = urlsplit(urljoin(base, location)), urlsplit(self.url)
            is_same = Origin.of(target)[1:] == Origin.of(own)[1:]
        except ValueError:
            return None
        # Applications write their own address with the Host of the request. It is not contacted, only compared.
        named = next((value for name, value in outer["headers"] if name == b"host"), b"").decode("latin-1").lower()
        is_own = is_same or (target.netloc.lower() == named and target.scheme in DEFAULT_PORTS)
        below = own.path in ("", "/") or target.path == own.path or target.path.startswith(own.path + "/")
        return target if is_own and below and target.username is None else None

    async def _get(
        self, target: SplitResult, sent: Scope, outer: Scope, cookies: Mapping[str, str], accept: bytes
    ) -> PageAnswer | None:
        own, app = urlsplit(self.url), self.app
        path = target.path.removeprefix(own.path) or "/"
        carried = [pair for pair in sent["headers"] if pair[0] not in _NOT_SENT and not pair[0].startswith(b"content-")]
        cookie = "; ".join(f"{name}={value}" for name, value in cookies.items()).encode("latin-1", "replace")
        headers = (*carried, (b"accept", accept), *(((b"cookie", cookie),) if cookie else ()))
        raw_path = quote(path, safe=SAFE_IN_PATH + "%").encode("ascii")
        query = quote(target.query, safe="%/:?&=+;,@!$'()*~-._[]").encode("ascii")
        request = PageRequest(own, raw_path, query, headers, state=app.state())
        exchange = PageExchange(b"", MAX_PAGE_BYTES)
        scope = {**request.scope(outer), **{name: outer[name] for name in app.carried if name in outer}}
        try:  # in a task, so that context variables that its middleware sets do not leak into the caller's
            outermost = app.inside if app.visit is None else app.visit(outer)
            await asyncio.ensure_future(outermost(scope, exchange.receive, exchange.send))
        except Exception:
            logger.exception("the page at %s, where a route redirects to, failed", path)
        return exchange.answered.result() if exchange.answered.done() else None


def location_of(headers: Iterable[tuple[bytes, bytes]] | Fields) -> str:
    """Return the Location of an answer, "" if it has none."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return next((value.decode("latin-1") for name, value in pairs if name.lower() == b"location"), "")


def cookies_of(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the cookies of a request."""
    cookies: dict[str, str] = {}
    for name, value in headers:
        if name == b"cookie":
            pairs = (part.strip().partition("=") for part in value.decode("latin-1").split(";"))
            cookies |= {key: text for key, _, text in pairs if key}
    return cookies


def receive_cookies(cookies: dict[str, str], headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Add the cookies that an answer sets, and remove those that it deletes."""
    for name, value in headers:
        if name.lower() != b"set-cookie":
            continue
        parsed: SimpleCookie = SimpleCookie()
        with suppress(CookieError):
            parsed.load(value.decode("latin-1"))
        for key, morsel in parsed.items():
            cookies[key] = morsel.coded_value
            if morsel["max-age"] == "0" or not morsel.value:
                del cookies[key]

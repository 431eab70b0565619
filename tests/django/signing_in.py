"""People of a Django project, their browsers and their agents, under WSGI and ASGI, for tests of sign-in."""

import html
import re
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
from awp_publish_django.asgi import get_asgi_application
from django.core.handlers.wsgi import WSGIHandler

from benchmarks.person import hidden_fields
from tests.client import TestClient
from tests.django.servers import PASSWORD as PASSWORD
from tests.plugins.sign_in.shop import BACK, Agent

URL = "https://shop.example"
HOST = "shop.example"
FAST = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def open_wsgi(url: str = URL) -> AbstractContextManager[Any]:
    """Return an HTTP client of the project under WSGI, mounted where its address says."""
    mount, app = urlsplit(url).path, WSGIHandler()

    def mounted(environ: dict[str, Any], start_response: Any) -> Any:
        environ |= {"SCRIPT_NAME": mount, "PATH_INFO": environ["PATH_INFO"].removeprefix(mount)}
        return app(environ, start_response)

    return httpx2.Client(transport=httpx2.WSGITransport(mounted), base_url=url)


def open_asgi(url: str = URL) -> AbstractContextManager[Any]:
    """Return the same under ASGI."""
    return TestClient(get_asgi_application(), base_url=url, root_path=urlsplit(url).path)


class DjangoAgent(Agent):
    """A client of the site's authorization server, whose person signs in with Django's own form."""

    def __init__(self, client: Any, browser: Any, redirect: str = BACK, **metadata: Any) -> None:
        self.logins = 0
        super().__init__(client, browser, redirect, **metadata)

    def follow(self, answer: Any, name: str = "ann") -> Any:
        """Go where the browser is sent, and sign in on the way."""
        while True:
            if answer.status_code in (302, 303, 307):
                address = urljoin(str(answer.url), answer.headers["location"])
                if urlsplit(address).netloc != urlsplit(URL).netloc:
                    return answer
                answer = self.browser.get(address, follow_redirects=False)
            elif 'type="password"' in answer.text and self.logins < 5:
                self.logins += 1
                answer = self.sign_in_at(answer, name)
            else:
                return answer

    def answer(self, page: Any, answer: str = "allow", scopes: list[str] | None = None) -> Any:
        """Press a button of the consent page, wherever the site is."""
        action = html.unescape(re.findall(r'action="([^"]+)"', page.text)[0])
        chosen = re.findall(r'name="scope" value="([^"]+)"', page.text) if scopes is None else scopes
        form = {**hidden_fields(page.text), "answer": answer, "scope": chosen}
        return self.browser.post(urljoin(str(page.url), action), data=form, follow_redirects=False)

    def sign_in_at(self, page: Any, name: str) -> Any:
        """Send the form of a sign-in page."""
        form = {**hidden_fields(page.text), "username": name, "login": name, "password": PASSWORD}
        return self.browser.post(str(page.url), data=form, headers={"referer": URL}, follow_redirects=False)


def came_back(answer: Any) -> dict[str, str]:
    """Return what a redirect to the client carries."""
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].startswith(BACK)
    return dict(parse_qsl(urlsplit(answer.headers["location"]).query))

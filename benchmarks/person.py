"""A person with a browser who lets an agent act for them in the demo shop, and what the agent does for that by OAuth.

The steps yield requests and are sent answers, so that clients of any kind, synchronous or not, carry them out.
"""

import base64
import hashlib
import html
import re
import secrets
from collections.abc import Generator, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

ACCOUNT: Final = {"name": "reader", "password": "lamplight"}
BACK: Final = "http://127.0.0.1:53682/callback"
"""Where the agent waits for its answer, on the person's own machine."""

_HEADERS: Final = {"accept": "text/html, application/json;q=0.9"}

Request: TypeAlias = tuple[str, str, Mapping[str, Any]]
"""Method, address and further arguments of a client's `request`."""

Steps: TypeAlias = Generator[Request, Any, str]
"""Requests out, answers in, and in the end what came of them."""


def allow_in_browser(address: str, back: str = BACK, account: Mapping[str, str] = ACCOUNT) -> Steps:
    """Sign in where a browser is led to by this address, allow what is asked, and return the address it is sent to."""
    answer = yield "GET", address, {}
    while True:
        here = str(answer.url)
        if answer.is_redirect:
            address = urljoin(here, answer.headers["location"])
            if address.startswith(back):
                return address
            answer = yield "GET", address, {}
            continue
        assert answer.status_code == 200, answer.text
        page = answer.text
        if 'class="sign-in-form' in page and urlsplit(here).path == "/sign-in":
            answer = yield "POST", urljoin(here, "/sign-in"), {"data": dict(account)}
        else:
            fields = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page)
            form = {name: html.unescape(value) for name, value in fields}
            [action] = re.findall(r'<form\b[^>]* action="([^"]+)"', page)
            answer = yield "POST", urljoin(here, action), {"data": {**form, "answer": "allow"}}


def token_steps(origin: str, account: Mapping[str, str] = ACCOUNT) -> Steps:
    """Register an agent, let the person of this account sign in and allow, and return an access token."""
    server = (yield "GET", f"{origin}/.well-known/oauth-authorization-server", {}).json()
    metadata = {"client_name": "A reading agent", "redirect_uris": [BACK]}
    registered = (yield "POST", server["registration_endpoint"], {"json": metadata}).json()
    verifier, state = secrets.token_urlsafe(40), secrets.token_urlsafe(9)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "response_type": "code",
        "client_id": registered["client_id"],
        "redirect_uri": BACK,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "state": state,
    }
    came_back = yield from allow_in_browser(f"{server['authorization_endpoint']}?{urlencode(asked)}", BACK, account)
    told = dict(parse_qsl(urlsplit(came_back).query))
    assert (told["state"], told["iss"]) == (state, server["issuer"])
    form = {
        "grant_type": "authorization_code",
        "code": told["code"],
        "client_id": registered["client_id"],
        "redirect_uri": BACK,
        "code_verifier": verifier,
    }
    answered = yield "POST", server["token_endpoint"], {"data": form}
    return str(answered.json()["access_token"])


def carry_out(steps: Steps, browser: Any) -> str:
    """Carry out steps by a synchronous client of httpx's kind, which keeps cookies."""
    answer = None
    try:
        while True:
            method, address, rest = steps.send(answer)
            answer = browser.request(method, address, follow_redirects=False, headers=_HEADERS, **rest)
    except StopIteration as end:
        return str(end.value)


async def carry_out_async(steps: Steps, browser: Any) -> str:
    """Carry out steps by an asynchronous client of httpx's kind, which keeps cookies."""
    answer = None
    try:
        while True:
            method, address, rest = steps.send(answer)
            answer = await browser.request(method, address, follow_redirects=False, headers=_HEADERS, **rest)
    except StopIteration as end:
        return str(end.value)

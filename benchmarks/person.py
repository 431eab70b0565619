"""A person with a browser who lets an agent act for them in the demo shop, and what the agent does for that by OAuth.

The steps yield requests and are sent answers, so that clients of any kind, synchronous or not, carry them out.
"""

import base64
import hashlib
import html
import re
import secrets
from collections.abc import Callable, Generator, Mapping
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


LogIn: TypeAlias = Callable[[str, str], tuple[str, Mapping[str, Any]] | None]
"""Returns where to send which form if a page, at this address, asks who it is; None for any other page."""


def log_in_at_shop(account: Mapping[str, str]) -> LogIn:
    """Return how an account signs in at the demo shop."""

    def log_in(page: str, here: str) -> tuple[str, Mapping[str, Any]] | None:
        asks = 'class="sign-in-form' in page and urlsplit(here).path == "/sign-in"
        return (urljoin(here, "/sign-in"), account) if asks else None

    return log_in


def allow(page: str) -> Mapping[str, Any]:
    """Return the answer that allows all that a consent page asks for."""
    return {"answer": "allow", "scope": re.findall(r'name="scope" value="([^"]+)"', page)}


def answer_in_browser(
    address: str, back: str, log_in: LogIn, answer_to: Callable[[str], Mapping[str, Any]] = allow
) -> Steps:
    """Sign in where a browser is led to by this address, answer what is asked, and return the address it is sent to."""
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
        if (asked := log_in(page, here)) is not None:
            to, form = asked
        else:
            [action] = re.findall(r'<form\b[^>]* action="([^"]+)"', page)
            to, form = urljoin(here, html.unescape(action)), {**hidden_fields(page), **answer_to(page)}
        answer = yield "POST", to, {"data": dict(form)}


def hidden_fields(page: str) -> dict[str, str]:
    """Return the hidden fields of a page's forms."""
    inputs = (dict(re.findall(r'(\w+)="([^"]*)"', tag)) for tag in re.findall(r"<input[^>]*hidden[^>]*>", page))
    return {facts["name"]: html.unescape(facts.get("value", "")) for facts in inputs}


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
    came_back = yield from answer_in_browser(
        f"{server['authorization_endpoint']}?{urlencode(asked)}", BACK, log_in_at_shop(account)
    )
    answer = dict(parse_qsl(urlsplit(came_back).query))
    assert (answer["state"], answer["iss"]) == (state, server["issuer"])
    form = {
        "grant_type": "authorization_code",
        "code": answer["code"],
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

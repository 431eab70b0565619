"""A session follows redirects as httpx does: to the same addresses, with the same methods, bodies and cookies."""

from contextlib import nullcontext
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from awp_publish.browsing.errors import AwpError
from awp_publish.browsing.page import Fetch, Fetched
from tests.browsing.driving import HOME, Agent, redirect
from tests.examples import examples

PATHS = ("/a", "/b", "/c/d", "/end")
TARGETS = [
    "/a",
    "b",
    "../b",
    "/c/d?x=1&y=%C3%A9",
    "d",
    "./end",
    "/end#part",
    f"{HOME}/end",
    "//shop.example/b",
    "?again",
]
HOPS = st.dictionaries(
    st.sampled_from(PATHS[:3]),
    st.tuples(
        st.sampled_from(TARGETS), st.sampled_from([301, 302, 303, 307, 308]), st.sampled_from(["", "a=1", "b=2"])
    ),
)
FORM = '<form action="/a" method={} id=f><input name=q value="x y"><button>Go</button></form>'


@settings(deadline=None, max_examples=examples(150), suppress_health_check=list(HealthCheck))
@given(HOPS, st.sampled_from(["get", "post"]))
def test_redirects_lead_where_httpx_is_led(hops, method):
    def answer(fetch: Fetch) -> Fetched:
        hop = hops.get(fetch.path.partition("?")[0])
        if hop is None:
            return Fetched(200, (("Content-Type", "text/html"),), b"<p>Here")
        cookies = [("Set-Cookie", f"{hop[2]}; Path=/")] if hop[2] else []
        return redirect(hop[0], hop[1], *cookies)

    theirs = list[tuple[str, str, bytes, str]]()

    def handle(request: httpx.Request) -> httpx.Response:
        path = request.url.raw_path.decode()
        theirs.append((request.method, path, request.content, request.headers.get("cookie", "")))
        fetched = answer(Fetch(request.method, path, (), b""))
        return httpx.Response(fetched.status, headers=list(fetched.headers), content=fetched.body)

    agent = Agent({"/": FORM.format(method), **dict.fromkeys(PATHS, answer)})
    agent.web.asked.clear()
    with httpx.Client(transport=httpx.MockTransport(handle), follow_redirects=True, max_redirects=10) as client:
        content: dict[str, Any] = {"content": b"q=x+y"} if method == "post" else {}
        try:
            last = client.request(method, f"{HOME}/a{'' if content else '?q=x+y'}", **content)
        except httpx.TooManyRedirects:
            last = None
    refused: Any = pytest.raises(AwpError, match="More than 10 redirects") if last is None else nullcontext()
    with refused:
        agent.click("button")
    ours = [(fetch.method, fetch.path, fetch.body, dict(fetch.headers).get("cookie", "")) for fetch in agent.web.asked]
    assert ours == theirs
    if last is not None:
        assert agent.url == str(last.url)

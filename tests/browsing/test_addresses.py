"""Addresses are read as browsers read them, and only the site's own are opened."""

import pytest

from awp_publish.browsing.errors import AwpError
from tests.browsing.driving import Agent, details_of


@pytest.mark.parametrize(
    "url",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "http://shop.example/", "https://shop.example:444/",
     "https://shop.example.evil.example/", "javascript:alert(1)", "mailto:a@shop.example", "https://shop.example@evil.example/"],
)  # fmt: skip
def test_foreign_addresses_are_refused_and_never_asked_for(url):
    agent = Agent({"/": "<p>Home"})
    with pytest.raises(AwpError) as refused:
        agent.navigate(url)
    assert refused.value.code == "PERMISSION_DENIED"
    assert details_of(refused)["allowed"] == ["https://shop.example"]
    assert len(agent.web.asked) == 1


@pytest.mark.parametrize(
    ("params", "said"), [({}, "Missing required param: url"), ({"url": 1}, "url must be a string")]
)
def test_an_address_must_be_given_as_text(params, said):
    with pytest.raises(AwpError, match=said) as refused:
        Agent().call("page.navigate", **params)
    assert refused.value.code == "INVALID_REQUEST"


def test_an_endless_address_is_refused():
    with pytest.raises(AwpError, match="longer than") as refused:
        Agent().navigate("/" + "a" * 10_000)
    assert refused.value.code == "INVALID_REQUEST"

"""A site without limits has none in its declarations either."""

import pytest

from awp_publish import DeclarationError, Limits
from tests.guarded import invoke, make_shop, publish


@pytest.mark.parametrize(
    ("of_site", "of_action"), [({"limits": Limits(rate_limit="9/hour")}, {}), ({}, {"rate_limit": "9/hour"})]
)
def test_a_site_is_refused_whose_limits_nobody_would_keep(of_site, of_action):
    site = make_shop(plugins=["no:limits"], **of_site)

    @site.agent("order", **of_action)
    async def order() -> None:
        """Order a book."""

    with pytest.raises(DeclarationError, match="rate_limit: nothing fulfils it, and order would need it"):
        site.freeze()


def test_calls_are_not_counted(open_client):
    site = make_shop(plugins=["no:limits"])

    @site.agent("order", idempotency="24h")
    async def order() -> str:
        """Order a book."""
        return "ordered"

    client = publish(site, open_client)
    assert "ratelimit" not in invoke(client, "order", idempotency_key="1").headers

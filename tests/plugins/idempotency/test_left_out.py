"""A site without idempotency has no action whose calls may have a key."""

import pytest

from awp_publish import DeclarationError
from tests.guarded import invoke, make_shop, publish


def test_an_action_is_refused_that_asks_for_keys():
    site = make_shop(plugins=["no:idempotency"])
    with pytest.raises(DeclarationError, match='idempotency: is an option of the plug-in "idempotency"'):
        site.agent("order", idempotency="24h")


def test_settings_of_a_deployment_cannot_leave_it_out_afterwards():
    site = make_shop()

    @site.agent("order", idempotency="24h")
    async def order() -> None:
        """Order a book."""

    site.override({"plugins": ["no:idempotency"]})
    with pytest.raises(DeclarationError, match="idempotency: nothing fulfils it, and order would need it"):
        site.freeze()


def test_other_actions_are_called_as_ever(open_client):
    site = make_shop(plugins=["no:idempotency"])

    @site.agent("order", rate_limit="1/hour")
    async def order() -> str:
        """Order a book."""
        return "ordered"

    client = publish(site, open_client)
    assert invoke(client, "order").json() == "ordered"
    assert invoke(client, "order").json()["code"] == "RATE_LIMITED"

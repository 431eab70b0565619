"""A site without confirmation has no action for which a person would have to be asked."""

import pytest

from awp_publish import DeclarationError
from tests.guarded import invoke, make_shop, publish


def test_an_action_is_refused_that_says_that_a_person_confirms_it():
    site = make_shop(plugins=["no:confirmation"])
    with pytest.raises(DeclarationError, match='confirm: is an option of the plug-in "confirmation"'):
        site.agent("order", confirm=True)


def test_an_irreversible_action_is_refused_at_start():
    site = make_shop(plugins=["no:confirmation"])

    @site.agent("order", effect="irreversible")
    async def order() -> None:
        """Order a book."""

    with pytest.raises(DeclarationError, match="confirm: nothing fulfils it, and order would need it") as refused:
        site.freeze()
    assert 'take "no:confirmation" away' in str(refused.value)


def test_settings_of_a_deployment_cannot_leave_it_out_afterwards():
    site = make_shop()

    @site.agent("order", confirm=True)
    async def order() -> None:
        """Order a book."""

    site.override({"plugins": ["no:confirmation"]})
    with pytest.raises(DeclarationError, match="confirm: nothing fulfils it, and order would need it"):
        site.freeze()


def test_other_actions_are_called_as_ever(open_client):
    site = make_shop(plugins=["no:confirmation"])

    @site.agent("search", idempotency="24h")
    async def search() -> str:
        """Search books."""
        return "Emma"

    client = publish(site, open_client)
    assert invoke(client, "search", idempotency_key="1").json() == "Emma"
    assert invoke(client, "search", idempotency_key="1").headers["idempotent-replayed"] == "true"

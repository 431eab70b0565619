"""A site without prerequisites has no action that requires others."""

import pytest

from awp_publish import DeclarationError
from tests.guarded import invoke, make_shop, publish


def test_an_action_is_refused_that_requires_others():
    site = make_shop(plugins=["no:prerequisites"])
    with pytest.raises(DeclarationError, match='requires: is an option of the plug-in "prerequisites"'):
        site.agent("order", requires=["search"])


def test_settings_of_a_deployment_cannot_leave_it_out_afterwards():
    site = make_shop()

    @site.agent("search")
    async def search() -> None:
        """Search books."""

    @site.agent("order", requires=["search"])
    async def order() -> None:
        """Order a book."""

    site.override({"plugins": ["no:prerequisites"]})
    with pytest.raises(DeclarationError, match="requires: nothing fulfils it, and order would need it"):
        site.freeze()


def test_usual_predecessors_are_published_without_being_required(open_client):
    site = make_shop(plugins=["no:prerequisites"])

    @site.agent("search")
    async def search() -> str:
        """Search books."""
        return "Emma"

    @site.agent("order", depends_on=["search"])
    async def order() -> str:
        """Order a book."""
        return "ordered"

    client = publish(site, open_client)
    assert invoke(client, "order").json() == "ordered"
    assert "awp-receipt" not in invoke(client, "search").headers
    assert [action.depends_on for action in site.catalog.actions] == [(), ("search",)]

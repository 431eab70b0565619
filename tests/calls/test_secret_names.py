"""Members named like secrets are secret, in summaries and logs as well as in the schema, and the owner is told."""

import json
import logging
from typing import Annotated

import pytest
from fastapi import Body, FastAPI
from pydantic import BaseModel

from awp_publish import AgentPublisher
from awp_publish.schema.secrets import is_secret_name
from tests.guarded import KEYS, invoke, make_shop


class Card(BaseModel):
    number: str
    cvv: str
    pinned: bool = False


def make_app(**options):
    site, app = make_shop(secret_keys=KEYS, **options), FastAPI()

    @app.post("/pay")
    @site.action("pay", confirm="Pay with {card} and {newPassword}?")
    async def pay(card: Annotated[Card, Body(embed=True)], newPassword: str, page_token: str = "") -> str:  # noqa: N803
        """Pay with a card.

        This paragraph is for the readers of the code.
        """
        return "paid"

    app.add_middleware(AgentPublisher, site=site)
    return site, app


GIVEN = {"card": {"number": "4111", "cvv": "cvv-of-ann"}, "newPassword": "hunter2", "page_token": "p-1"}


def test_secrets_are_hidden_in_summaries_and_logs(open_client, caplog):
    _, app = make_app(log_inputs=True)
    client = open_client(app)
    with caplog.at_level(logging.INFO, "awp_publish.access"):
        question = invoke(client, "pay", GIVEN).json()["confirmation"]["summary"]
    assert "4111" in question
    for text in (question, caplog.text):
        assert not any(secret in text for secret in ("cvv-of-ann", "hunter2"))
    assert "p-1" in caplog.text


@pytest.mark.needs("findings")
def test_the_schema_says_so_and_the_owner_is_told(open_client, caplog):
    _, app = make_app()
    client = open_client(app)
    inputs = client.get("/.well-known/woa.json").json()["agents"][0]["inputs"]
    assert inputs["properties"]["newPassword"]["writeOnly"] is True
    assert "writeOnly" not in inputs["properties"]["page_token"]
    assert "cvv-of-ann" not in json.dumps(inputs)
    assert "pay (cvv, newPassword)" in caplog.text


@pytest.mark.parametrize("name", ["password", "user_password", "newPassword", "pin", "cvv", "token", "client-secret"])
def test_names_of_secrets_are_recognised(name):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["page_token", "pinned", "spin", "secretary", "tokens", "passwords_allowed", "key"])
def test_other_names_are_not_those_of_secrets(name):
    assert not is_secret_name(name)


def test_the_first_paragraph_of_a_docstring_describes(open_client):
    _, app = make_app()
    agent = open_client(app).get("/.well-known/woa.json").json()["agents"][0]
    assert agent["description"] == "Pay with a card."

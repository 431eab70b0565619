"""The kinds of objects that a site's actions are about."""

from typing import Any

import pytest
from pydantic import BaseModel
from starlette.applications import Starlette

from awp_publish import AgentJson, AgentPublisher, DeclarationError, Site
from tests.client import TestClient

TABLE = 'must be a model or a table of its fields and their types, such as {"title": "string"}.'


class Book(BaseModel):
    title: str
    pages: int


class Shelf:
    """No model."""


def make_site(entities: Any) -> Site:
    return Site("Shop", "Sells things.", url="https://shop.example", plugins=[AgentJson(entities=entities)])


@pytest.mark.parametrize(
    ("kind", "fields"),
    [({"title": "string"}, {"title": "string"}), (Book, {"title": "string", "pages": "integer"})],
    ids=["table", "model"],
)
def test_entities_are_published(open_client, kind, fields):
    client: TestClient = open_client(AgentPublisher(Starlette(), make_site({"book": kind}), check=False))
    assert client.get("/agent.json").json()["entities"] == {"book": {"fields": fields}}


@pytest.mark.parametrize(
    ("entities", "refusal"),
    [
        ([Book], ": must be a dictionary."),
        ({"Book": Book}, ".Book: 'Book' must be lower-case letters, digits and _, beginning with"),
        ({"book": {"title": 3}}, f".book: {TABLE}"),
        ({"book": Book(title="Emma", pages=3)}, f".book: {TABLE}"),
        ({"shelf": Shelf}, ".shelf: "),
        ({"number": int}, ".number: int has no fields. Give a model."),
    ],
)
def test_an_unknown_entity_is_refused_by_its_name(entities, refusal):
    with pytest.raises(DeclarationError) as refused:
        make_site(entities)
    assert str(refused.value).startswith(f"site: plugins.agent_json.entities{refusal}")

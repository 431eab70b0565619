"""The A2A agent card: what 1.0 requires, what a caller needs beyond it, and that nothing of 0.3 is in it."""

from typing import Any

import orjson

from awp_publish.model import Catalog, DoorFacts
from awp_publish.plugins.a2a import agent_card
from awp_publish.plugins.agent_json import document as agent_json
from awp_publish.plugins.awas import bridge_manifests
from tests.documents.catalogs import BOOKSHOP, make_action, make_catalog, make_function_action

A2A_DOOR = DoorFacts("a2a", "1.0", "/a2a")
TITLE = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}


def card_of(catalog: Catalog) -> dict[str, Any]:
    card: dict[str, Any] = agent_card.render(catalog)
    return card


def make_site(*actions: Any, **facts: Any) -> Catalog:
    return make_catalog(*actions, doors=(A2A_DOOR,), site=facts)


def test_the_card_has_all_that_the_specification_requires() -> None:
    card = card_of(make_site(make_action()))
    required = {"name", "description", "supportedInterfaces", "version", "capabilities", "defaultInputModes"}
    assert card.keys() >= required | {"defaultOutputModes", "skills"}
    assert all({"id", "name", "description", "tags"} <= skill.keys() for skill in card["skills"])


def test_the_card_has_nothing_that_belongs_to_another_version() -> None:
    assert not card_of(BOOKSHOP).keys() & {"url", "preferredTransport", "protocolVersion", "security", "x-region"}


def test_both_bindings_are_at_the_public_address_of_the_door() -> None:
    assert card_of(make_site())["supportedInterfaces"] == [
        {"url": "https://books.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": "https://books.example/a2a", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
    ]


def test_skills_are_the_actions_with_examples_that_can_be_sent_as_they_are() -> None:
    action = make_function_action("order", TITLE, tags=("shop",), examples=({"title": "Emma"},))
    [skill, plain] = card_of(make_site(action, make_action()))["skills"]
    assert (skill["id"], skill["tags"], plain["tags"]) == ("order", ["shop"], ["action"])
    assert [orjson.loads(example) for example in skill["examples"]] == [{"skill": "order", "input": {"title": "Emma"}}]
    assert "examples" not in plain


def test_other_documents_point_at_the_card_while_the_door_is_open() -> None:
    spoken: Any = agent_json.render(make_site())["protocols"]
    assert spoken["a2a"]["agent_card"] == "https://books.example/.well-known/agent-card.json"
    endpoints: Any = bridge_manifests.render_a2a_manifest(make_site())["endpoints"]
    assert endpoints["agent_card"] == "/.well-known/agent-card.json"
    shut = make_catalog()
    assert b"agent-card" not in orjson.dumps([agent_json.render(shut), bridge_manifests.render_a2a_manifest(shut)])

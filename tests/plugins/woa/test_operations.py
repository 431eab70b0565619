"""Operations of an agent, as the document lists them."""

from typing import Any

from awp_publish import AgentPublisher, Site
from tests.declare.test_declare_agents import library


def test_metadata_words_an_agents_operations_in_the_woa_document_alone(open_client: Any) -> None:
    site = Site("Shop", "Sells things.", url="https://shop.example")
    app = library(site, metadata={"operations": {"default": "Default operation."}})
    client = open_client(AgentPublisher(app, site, check=False))
    [agent] = client.get("/.well-known/woa.json").json()["agents"]
    worded = {operation["name"]: operation["description"] for operation in agent["operations"]}
    assert worded == {"find": "Find books.", "give-Back": "Take a book back.", "default": "Default operation."}
    assert site.catalog.agents[0].description == "Finds and lends books."

"""Purchases by agents that read documents and speak plain HTTP."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin

import httpx

from benchmarks.journeys_by_protocols import named
from benchmarks.purchase import COPIES, PARCEL, TITLE, Purchase


async def by_woa(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy through the invoke door."""
    document = (await http.get(f"{origin}/.well-known/woa.json")).json()
    rest = document["transports"]["rest"]
    known = {agent["id"]: agent for agent in document["agents"]}

    async def call(agent_id: str, given: Mapping[str, Any], **members: str) -> httpx.Response:
        assert given.keys() <= known[agent_id]["inputs"]["properties"].keys()
        address = rest["base"] + rest["invoke_path"].replace("{agent_id}", agent_id)
        return await http.post(address, json={"input": given, **members})

    found = (await call("search_books", {"q": TITLE})).json()
    await call("add_to_basket", {"slug": named(found), "quantity": COPIES})
    asked = (await call("check_out", PARCEL)).json()["confirmation"]
    placed = await call("check_out", PARCEL, confirmation=asked["token"])
    return Purchase(asked["summary"], placed.json())


async def by_llms_txt(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy by what llms.txt says of the calls, and nothing else."""
    text = (await http.get(f"{origin}/llms.txt")).text
    [address] = re.findall(r"POST (\S+) with JSON", text)
    known = dict(re.findall(r"^- (\w+) \{([^}]*)\}", text, re.MULTILINE))

    async def call(name: str, given: Mapping[str, Any], **members: str) -> httpx.Response:
        assert all(re.search(rf"\b{member}\b", known[name]) for member in given)
        return await http.post(address.replace("NAME", name), json={"input": given, **members})

    found = (await call("search_books", {"q": TITLE})).json()
    await call("add_to_basket", {"slug": named(found), "quantity": COPIES})
    asked = (await call("check_out", PARCEL)).json()["confirmation"]
    placed = await call("check_out", PARCEL, confirmation=asked["token"])
    return Purchase(asked["summary"], placed.json())


async def by_agent_json(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy at the addresses that agent.json names."""
    document = (await http.get(f"{origin}/agent.json")).json()
    return await _at_endpoints(origin, http, {action["id"]: action for action in document["actions"]})


async def by_awas(origin: str, http: httpx.AsyncClient) -> Purchase:
    """Buy at the addresses that the AWAS manifest names."""
    document = (await http.get(f"{origin}/.well-known/ai-actions.json")).json()
    return await _at_endpoints(origin, http, {action["id"]: action for action in document["actions"]})


async def _at_endpoints(origin: str, http: httpx.AsyncClient, known: Mapping[str, Any]) -> Purchase:
    headers: dict[str, str] = {}

    async def call(action_id: str, given: Mapping[str, Any]) -> httpx.Response:
        action = known[action_id]
        address, method = urljoin(origin, action["endpoint"]), action["method"]
        if method == "GET":
            return await http.get(address, params=dict(given), headers=headers)
        return await http.request(method, address, data=dict(given), headers=headers)

    found = (await call("search_books", {"q": TITLE})).json()
    await call("add_to_basket", {"slug": named(found), "quantity": COPIES})
    asked = (await call("check_out", PARCEL)).json()["confirmation"]
    headers["awp-confirmation"] = asked["token"]
    placed = await call("check_out", PARCEL)
    return Purchase(asked["summary"], placed.json())

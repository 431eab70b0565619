"""`completion/complete`: values of what a person fills in, from annotations and from `complete=`."""

import asyncio
from enum import Enum
from typing import Literal

import pytest
from fastapi import FastAPI

from awp_publish import AgentPublisher, Limits
from awp_publish.problems import DeclarationError
from tests.guarded import make_shop
from tests.plugins.mcp.mcp_messages import MODERN, message, post

TITLES = ["Emma", "Dracula", "Moby Dick", "Demian"]


class Tone(Enum):
    WARM = "warm"
    DRY = "dry"


def about_a_title(title: str) -> str:
    """Ask about a title."""
    return title


def ask(client, ref, name, value, version=MODERN, **others):
    params = {"ref": ref, "argument": {"name": name, "value": value}}
    if others:
        params["context"] = {"arguments": others}
    answer = post(client, message("completion/complete", params, version=version), version).json()
    return answer["result"]["completion"] if "result" in answer else answer["error"]


def of_prompt(name):
    return {"type": "ref/prompt", "name": name}


def of_template(uri):
    return {"type": "ref/resource", "uri": uri}


@pytest.fixture
def site():
    return make_shop(plugins=["mcp", "pages"])


@pytest.fixture
def app():
    return FastAPI()


@pytest.fixture
def client(site, app, open_client):
    @site.prompt("review")
    def review(title: str, tone: Tone = Tone.WARM, length: Literal[100, 200] = 100, signed: bool | None = None) -> str:
        """Review a book."""
        return title

    return lambda: open_client(AgentPublisher(app, site=site))


def test_a_function_suggests_what_it_says(site, client):
    def by_title(value):
        return [title for title in TITLES if title.startswith(value)]

    async def by_name(argument, value):
        return [f"{argument}:{value}"]

    def by_others(argument, value, others):
        return [others.get("author", "nobody")]

    for number, complete in enumerate((by_title, {"title": by_title}, by_name, by_others)):

        @site.prompt(f"p{number}", complete=complete)
        def prompt(title: str, author: str = "") -> str:
            """Ask."""
            return title

    opened = client()
    assert ask(opened, of_prompt("p0"), "title", "D")["values"] == ["Dracula", "Demian"]
    assert ask(opened, of_prompt("p1"), "title", "D")["values"] == ["Dracula", "Demian"]
    assert ask(opened, of_prompt("p1"), "author", "D")["values"] == []
    assert ask(opened, of_prompt("p2"), "author", "x")["values"] == ["author:x"]
    assert ask(opened, of_prompt("p3"), "title", "x", author="Austen")["values"] == ["Austen"]


def test_at_most_a_hundred_values_are_told_and_how_many_there_are(site, client):
    @site.prompt("many", complete=lambda value: [f"{value}{number}" for number in range(250)])
    def many(title: str) -> str:
        """Ask."""
        return title

    found = ask(client(), of_prompt("many"), "title", "x")
    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 250, True)


def test_an_unknown_name_is_invalid_params_and_a_failure_tells_nothing(site, client, caplog):
    def broken(value):
        raise RuntimeError("secret")

    site.prompt("broken", complete=broken)(about_a_title)
    site.prompt("wrong", complete=lambda value: "Emma")(about_a_title)
    opened = client()
    assert ask(opened, of_prompt("nothing"), "title", "")["code"] == -32602
    assert ask(opened, of_prompt("review"), "nothing", "")["code"] == -32602
    assert ask(opened, of_template("https://elsewhere.example/{x}"), "x", "")["code"] == -32602
    for name in ("broken", "wrong"):
        failed = ask(opened, of_prompt(name), "title", "")
        assert failed["code"] == -32603
        assert "secret" not in str(failed)


def test_the_capability_is_there_where_something_can_be_completed(site, client, open_client):
    capabilities = post(client(), message("server/discover")).json()["result"]["capabilities"]
    assert "completions" in capabilities
    bare = open_client(AgentPublisher(FastAPI(), site=make_shop(plugins=["mcp", "no:pages"])))
    assert "completions" not in post(bare, message("server/discover")).json()["result"]["capabilities"]


@pytest.mark.parametrize("complete", [5, {"titel": str}, {"title": 5}, (lambda *, value: ""), lambda a, b, c, d: []])
def test_a_complete_that_cannot_be_called_is_refused_at_start_up(site, open_client, complete):
    @site.prompt("review", complete=complete)
    def review(title: str) -> str:
        """Review."""
        return title

    with pytest.raises(DeclarationError, match="complete"):
        open_client(AgentPublisher(FastAPI(), site=site))


async def test_a_function_that_never_ends_is_cut_off(open_client):
    site = make_shop(plugins=["mcp"], limits=Limits(timeout=0.05))

    async def forever(value):
        await asyncio.sleep(60)

    site.prompt("slow", complete=forever)(about_a_title)
    assert ask(open_client(AgentPublisher(FastAPI(), site=site)), of_prompt("slow"), "title", "")["code"] == -32603

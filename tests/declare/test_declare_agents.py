"""Agents: one function, several operations, routes among them, and what they share."""

from typing import Any

import pytest
from fastapi import FastAPI

from awp_publish import DeclarationError
from awp_publish.model import RateLimit


def library(site, **options: Any) -> FastAPI:
    """An agent with an operation that has a route, one that has none, and a default one."""
    app = FastAPI()
    agent = site.agent("library", description="Finds and lends books.", **options)

    @app.get("/find")
    @agent.operation("find", effect="read")
    async def find(q: str) -> list[str]:
        """Find books."""
        return [q]

    @agent.operation("give-Back")
    async def give_back(book: str) -> bool:
        """Take a book back."""
        return True

    @agent
    async def greet() -> str:
        """Greet."""
        return "hello"

    return app


def test_an_agent_has_operations_with_and_without_routes(site, start):
    front = start(library(site, version="2.1", capabilities=["urn:lend"], metadata={"authz": {"policy": "/policy"}}))
    agent = front.agents()["library"]
    assert (agent.name, agent.description) == ("Library", "Finds and lends books.")
    assert (agent.version, agent.capabilities) == ("2.1", ("urn:lend",))
    assert agent.extensions == {"authz": {"policy": "/policy"}}
    assert agent.operations == {"find": "library_find", "give-Back": "library_give_back", "default": "library"}
    assert front.call("library_find", {"q": "Emma"}) == ["Emma"]
    assert front.call("library_give_back", {"book": "Emma"}) is True
    assert front.call("library", {}) == "hello"
    assert front.address("library_find") == "/find"


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ({"lend": "Lend."}, 'metadata: "operations" names "lend", which is none of its operations.'),
        ({"find": 7}, 'metadata: "operations" must map the names of operations to their descriptions.'),
        (["find"], 'metadata: "operations" must map the names of operations to their descriptions.'),
    ],
)
def test_words_for_an_operation_that_there_is_not_are_refused(site, refusal, words, refused):
    library(site, metadata={"operations": words})
    assert refusal().startswith(f'agent "library": {refused}')


def test_options_of_an_agent_hold_for_each_operation_which_may_say_otherwise(site, start):
    agent = site.agent("library", description="Lends books.", auth_required=True, rate_limit="3/minute")

    @agent.operation("lend")
    async def lend(book: str) -> bool:
        """Lend a book."""
        return True

    @agent.operation("look", auth_required=False)
    async def look() -> list[str]:
        """Look at the shelf."""
        return []

    front = start()
    assert front.action("library_lend").auth_required is True
    assert front.action("library_look").auth_required is False
    assert {front.action(f"library_{name}").rate_limit for name in ("lend", "look")} == {RateLimit(3)}


def test_an_agent_of_one_function_gives_it_its_name_and_description(site, start):
    @site.agent("summarizer", name="Document Summarizer", description="Summarizes texts.")
    async def summarize(text: str) -> str:
        """Not for agents."""
        return text[:3]

    front = start()
    for described in (front.agents()["summarizer"], front.action("summarizer")):
        assert (described.name, described.description) == ("Document Summarizer", "Summarizes texts.")


def test_an_agent_without_description_takes_it_from_its_only_function(site, start):
    @site.agent("summarizer")
    async def summarize(text: str) -> str:
        """Summarize texts."""
        return text[:3]

    assert start().agents()["summarizer"].description == "Summarize texts."


def test_operations_of_an_agent_may_have_routes(site, start):
    app = FastAPI()
    library = site.agent("library", description="Finds and lends books.")

    @app.get("/find")
    @library.operation("find_books")
    async def find(q: str) -> list[str]:
        """Find books."""
        return [q]

    @app.post("/lend")
    @library.operation("lend_book")
    async def lend(q: str) -> str:
        """Lend a book."""
        return q

    front = start(app)
    assert list(front.agents()) == ["library"]
    assert front.call("library_find_books", {"q": "Emma"}) == ["Emma"]
    assert front.call("library_lend_book", {"q": "Emma"}) == "Emma"


def test_an_action_by_itself_is_an_agent_by_itself(site, start):
    app = FastAPI()

    @app.get("/find")
    @site.action("find_books")
    async def find(q: str) -> list[str]:
        """Find books."""
        return [q]

    front = start(app)
    assert front.agents()["find_books"].operations == {"default": "find_books"}
    assert front.call("find_books", {"q": "Emma"}) == ["Emma"]


def without_operations(site) -> None:
    site.agent("library", description="Finds books.")


def several_without_a_description(site) -> None:
    agent = site.agent("library")

    for name in ("find", "lend"):

        @agent.operation(name)
        async def operation() -> None:
            """Do it."""


def an_action_with_the_id_of_an_agent(site) -> None:
    site.declare("library", method="GET", path="/", description="Find.")
    site.agent("library", description="Finds books.")


def an_operation_without_a_word(site) -> None:
    @site.agent("library").operation("find")
    async def find() -> None: ...


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (without_operations, 'agent "library": has no operation. Decorate a function with it.'),
        (several_without_a_description, 'agent "library": description: is missing. It has several operations.'),
        (
            an_action_with_the_id_of_an_agent,
            'action "library": has the id of agent "library". '
            "Make it an operation, @agent.operation(...), or rename it.",
        ),
        (
            an_operation_without_a_word,
            'operation "find" of agent "library": description: is missing. Write a docstring or give description=...',
        ),
    ],
)
def test_an_invalid_agent_is_refused_at_the_start(site, refusal, declare, words):
    declare(site)
    assert refusal() == words


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"version": ""}, "version: must not be empty."),
        ({"capabilities": "urn:lend"}, "capabilities: must be a list, not one string."),
        ({"metadata": {"authz": {1, 2}}}, "metadata: {1, 2} is not JSON."),
        ({"agent": "other"}, "agent: there is no such option"),
        ({"descripton": "x"}, 'descripton: there is no such option; did you mean "description"?'),
        ({"rate_limit": "often"}, "rate_limit: 'often' is not a rate limit; write it as \"30/minute\"."),
    ],
)
def test_a_wrong_option_of_an_agent_is_refused(site, options, words):
    with pytest.raises(DeclarationError) as refused:
        site.agent("library", **options)
    assert str(refused.value).startswith(f'agent "library": {words}')


@pytest.mark.parametrize("again", ["find-it", "find_it"])
def test_an_operation_is_declared_once(site, again):
    agent = site.agent("library", description="Finds books.")
    agent.operation("find-it")(find_nothing)
    with pytest.raises(DeclarationError, match='"library": the id "library_find_it" is declared twice'):
        agent.operation(again)(find_nothing)


def find_nothing() -> None:
    """Find nothing."""


def test_an_agent_is_declared_once(site):
    site.agent("library")
    with pytest.raises(DeclarationError, match='agent "library": is declared twice'):
        site.agent("library")


@pytest.mark.parametrize("wrong", ["find it", "", "find/it"])
def test_an_operation_is_named_with_a_token(site, wrong):
    agent = site.agent("library")
    with pytest.raises(DeclarationError, match=r"must be letters, digits, - and _|lower-case letters"):
        agent.operation(wrong)


def test_an_operation_without_parentheses_is_noticed(site):
    agent = site.agent("library")
    with pytest.raises(DeclarationError, match=r'agent "library": an operation has a name: @agent.operation\("find"\)'):
        agent.operation(library)


def test_an_agent_decorates_one_function_by_itself(site):
    agent = site.agent("library")
    agent(library)
    with pytest.raises(DeclarationError, match='the id "library" is declared twice'):
        agent(library)

"""llms.txt, ARD and auth.md, member by member."""

from typing import Any

import pytest

from awp_publish.model import Authentication, Page
from awp_publish.plugins.discovery import ard, auth_md, llms_txt
from tests.documents.catalogs import make_action, make_catalog


def rendered(render: Any, *actions: Any, **facts: Any) -> str:
    return bytes(render(make_catalog(*actions, **facts))).decode()


def test_the_full_text_has_the_schemas_of_each_action_as_paragraphs():
    text = rendered(llms_txt.render_full, make_action("ping", outputs={"type": "string"}, examples=({"a": 1},)))
    reference = text.partition("## Reference\n")[2]
    assert reference == (
        '\n### ping\n\nSay hello.\n\nInput: {"type":"object","properties":{}}\n\nOutput: {"type":"string"}\n'
        'Example: {"a":1}\n'
    )


def test_a_site_without_actions_has_no_skill_to_tell_of():
    assert "- [Skill](" in rendered(llms_txt.render, make_action())
    assert "- [Skill](" not in rendered(llms_txt.render)


def test_the_values_of_a_page_are_spelt_as_addresses():
    page = Page("/shelves/{shelf}", "Shelf", choices={"shelf": ("a/b", "c d")})
    assert [listed.path for listed in llms_txt.listed_pages(make_catalog(pages=(page,)))] == [
        "/shelves/a%2Fb",
        "/shelves/c%20d",
    ]


def test_an_action_has_its_name_among_the_resources():
    action = make_action("ping", name="Ping the shop", tags=("a",))
    entries = [entry for entry in ard._entries(make_catalog(action)) if ":action:" in str(entry["identifier"])]
    assert [entry["displayName"] for entry in entries] == ["Ping the shop"]


@pytest.mark.parametrize("method", ["session", "bearer"])
def test_how_a_session_begins_is_told_where_there_are_sessions(method):
    facts = Authentication(methods=(method,), session_cookie="sid", endpoints={"login": "/login"})
    text = rendered(auth_md.render_auth, site={"authentication": facts})
    assert (" Begin one with " in text) is (method == "session")

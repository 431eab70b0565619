"""Which skill an A2A message means, and what the card says of each."""

from typing import Any

import pytest

from awp_publish.plugins.a2a.agent_card import PROTOCOL
from awp_publish.plugins.a2a.selecting import SkillSelector
from tests.documents.catalogs import make_action, make_catalog, read

STRING = {"type": "string"}
ORDER = make_action("order", inputs={"type": "object", "properties": {"title": STRING}, "required": ["title"]})
ODD = make_action("odd", inputs={"type": "object", "required": ["title"]})


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ([{"data": {"skill": "order", "input": {"title": "a"}}}], ("order", {"title": "a"})),
        ([{"data": {"data": {"skill": "order", "input": {"title": "a"}}}}], ("order", {"title": "a"})),
        ([{"text": "hello"}, {"data": {"skill": "order"}}], ("order", {})),
        ([{"data": {"skill": "order", "input": [1]}}], ("order", {})),
        (["text", None, 5, {"data": {"skill": "order"}}], ("order", {})),
        ([{"text": '{"skill": "order", "input": {"title": "a"}}'}], ("order", {"title": "a"})),
        ([{"data": {"skill": 5}}], ("", {})),
        ([], ("", {})),
        ("parts", ("", {})),
    ],
)
@pytest.mark.parametrize("member", ["parts", "content"])
def test_a_message_names_its_skill_in_a_part(parts, named, member):
    selector = SkillSelector(make_catalog(ORDER), None)
    assert selector.named_skill({"message": {member: parts}}) == named
    assert selector.named_skill({"request": {member: parts}}) == named


@pytest.mark.parametrize("params", [None, [], {}, {"message": None}, {"message": []}])
def test_an_invalid_message_names_no_skill(params):
    assert SkillSelector(make_catalog(ORDER, ODD), None).named_skill(params) == ("", {})


def test_the_card_says_which_skills_a_person_confirms():
    catalog = make_catalog(ORDER, make_action("pay", needs_confirmation=True, depends_on=("order",)))
    card: Any = read(PROTOCOL.documents[0], catalog)
    text = str(card)
    assert "'confirmation': True" in text
    assert text.count("'confirmation'") == 1
    assert "'dependsOn': ['order']" in text

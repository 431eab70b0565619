"""What `check --as-model` finds: each rule, and no more than that."""

import pytest

from awp_publish.checks.descriptions import RULES, judge_descriptions
from awp_publish.checks.judged_actions import JudgedAction, tools_in

DESCRIBED = {"type": "string", "description": "Words of its title."}


def judge(action_id="search_books", description="Search books by their title.", examples=True, **properties):
    schema = {"type": "object", "properties": properties or {"title": DESCRIBED}}
    if "defs" in properties:
        schema["$defs"] = properties.pop("defs")
    return judge_descriptions([JudgedAction(action_id, description, schema, examples)])


def broken(**given) -> set[str]:
    return {one.check.removeprefix("model-") for one in judge(**given).findings}


def test_an_action_that_keeps_all_rules_has_a_hundred_points():
    judged = judge()
    assert (judged.score, judged.findings) == (100, ())


@pytest.mark.parametrize(
    ("given", "rules"),
    [
        ({"description": "Search."}, {"description"}),
        ({"description": "Search books " * 100}, {"description"}),
        ({"description": ""}, {"description"}),
        ({"description": "The search for books and their titles."}, {"verb-first"}),
        ({"description": "Information about all books we have."}, {"verb-first"}),
        ({"description": "Sucht Bücher nach ihrem Titel, Wort für Wort."}, set()),
        ({"description": "本を題名で検索します。一致したものを返します。すべての本です。"}, set()),
        ({"examples": False}, {"examples"}),
        ({"examples": False, "password": {**DESCRIBED, "format": "password"}}, set()),
        ({"action_id": "process"}, {"ambiguous-name"}),
        ({"action_id": "get_thing"}, {"ambiguous-name"}),
        ({"action_id": "handleRequest"}, {"ambiguous-name"}),
        ({"action_id": "do"}, {"ambiguous-name"}),
        ({"action_id": "get_book"}, set()),
        ({"data": DESCRIBED}, {"ambiguous-name"}),
        ({"q": DESCRIBED}, set()),
        ({"q": {"type": "string"}}, {"ambiguous-name", "input-words"}),
        ({"title": {"type": "string"}}, {"input-words"}),
        ({"sort": {"enum": ["year", "price"], "description": "Order."}}, {"enum-words"}),
        ({"sort": {"enum": ["year", "price"], "description": "By year, oldest first, or price."}}, set()),
        ({"level": {"enum": [1, 2], "description": "How much is told."}}, {"enum-words"}),
        ({"level": {"enum": [1, 2], "description": "1 is brief, 2 is all."}}, set()),
        ({"sorts": {"type": "array", "items": {"enum": ["a1", "b2"]}, "description": "Orders."}}, {"enum-words"}),
        (
            {"sort": {"oneOf": [{"const": "a1", "title": "First"}, {"const": "b2"}], "description": "Order."}},
            {"enum-words"},
        ),
        ({"book": {"type": "object", "description": "A book.", "properties": {"title": {}}}}, {"input-words"}),
        (
            {
                "books": {"type": "array", "description": "Books.", "items": {"$ref": "#/$defs/Book"}},
                "defs": {"Book": {"properties": {"kind": {"enum": ["a1", "b2"], "description": "Its kind."}}}},
            },
            {"enum-words"},
        ),
    ],
)
def test_each_rule_finds_what_breaks_it_and_says_what_to_do(given, rules):
    assert broken(**given) == rules
    assert all(one.hint == RULES[one.check][1] for one in judge(**given).findings)


def test_inputs_that_hold_one_another_come_to_an_end():
    node = {"type": "object", "description": "A node.", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    tree = {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "description": "Trees."}
    inputs = {name: {"$ref": f"#/$defs/{name.title()}"} for name in ("node", "tree")}
    schema = {"type": "object", "properties": inputs, "$defs": {"Node": node, "Tree": tree}}
    assert judge_descriptions([JudgedAction("mend_nodes", "Mend nodes of a tree.", schema, True)]).score == 100


def test_lists_whose_items_are_lists_of_each_other_have_no_members():
    definitions = {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"items": {"$ref": "#/$defs/A"}}}
    given = {"$ref": "#/$defs/A", "description": "Lists of lists."}
    schema = {"type": "object", "properties": {"lists": given}, "$defs": definitions}
    assert judge_descriptions([JudgedAction("mend_lists", "Mend lists of lists.", schema, True)]).score == 100


def test_of_inputs_that_multiply_a_thousand_are_judged():
    node = {"properties": {f"child_{number}": {"$ref": "#/$defs/Node"} for number in range(60)}}
    schema = {"type": "object", "properties": {"node": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    judged = judge_descriptions([JudgedAction("mend_nodes", "Mend nodes of a tree.", schema, True)])
    assert sum(one.check == "model-input-words" for one in judged.findings) == 1_000


def test_alternatives_that_are_their_own_alternatives_come_to_an_end():
    union = {"anyOf": [{"$ref": "#/$defs/Union"}] * 1_000, "description": "One of them."}
    schema = {"type": "object", "properties": {"one": {"$ref": "#/$defs/Union"}}, "$defs": {"Union": union}}
    assert judge_descriptions([JudgedAction("mend_unions", "Mend a union of many.", schema, True)]).score == 100


def test_more_than_forty_actions_cost_the_site_ten_points():
    def actions(number):
        return [
            JudgedAction(f"search_{name}", f"Search {name} by their name.", {"type": "object"}, True)
            for name in (f"shelf{one}" for one in range(number))
        ]

    assert judge_descriptions(actions(40)).score == 100
    judged = judge_descriptions(actions(41))
    assert (judged.score, [one.check for one in judged.findings]) == (90, ["model-too-many"])


def test_a_manifest_whose_schemas_stand_elsewhere_is_judged_by_its_parameters():
    action = {
        "id": "search_books",
        "description": "Search books by their title.",
        "inputSchema": {"$ref": "/agents/schemas.json#/$defs/search_books.in"},
        "parameters": [{"name": "sort", "type": "string", "enum": ["year", "price"], "description": "Order."}],
    }
    (tool,) = tools_in({"actions": [action]})
    found = {one.check for one in judge_descriptions([tool]).findings}
    assert found == {"model-enum-words", "model-examples"}

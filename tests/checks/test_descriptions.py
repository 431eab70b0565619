"""What `check --as-model` finds: each rule, and no more than that."""

from awp_publish.checks.descriptions import judge_descriptions
from awp_publish.checks.judged_actions import JudgedAction


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


def test_at_most_a_thousand_combinations_of_inputs_are_judged():
    node = {"properties": {f"child_{number}": {"$ref": "#/$defs/Node"} for number in range(60)}}
    schema = {"type": "object", "properties": {"node": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    judged = judge_descriptions([JudgedAction("mend_nodes", "Mend nodes of a tree.", schema, True)])
    assert sum(finding.check == "model-input-words" for finding in judged.findings) == 1_000


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
    assert (judged.score, [finding.check for finding in judged.findings]) == (90, ["model-too-many"])

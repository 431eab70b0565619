"""A patch of a page's elements gives the new ones, in whatever order they come."""

from hypothesis import given, settings, strategies as st

from awp_publish.browsing.json_patch import make_patch
from tests.browsing.json_patch import apply_patch
from tests.examples import examples

IDS = [f"e{number}" for number in range(8)]


@st.composite
def elements(draw: st.DrawFn) -> list[dict[str, object]]:
    ids = draw(st.permutations(IDS))[: draw(st.integers(0, len(IDS)))]
    return [{"id": item, "text": draw(st.sampled_from("ab"))} for item in ids]


@settings(max_examples=examples(500))
@given(elements(), elements())
def test_reordered_elements_are_patched_to_their_new_order(before, after):
    patch = make_patch(before, after)
    assert apply_patch(before, patch) == after


@given(st.permutations(IDS), st.permutations(IDS))
def test_no_more_elements_are_moved_than_must_be(before, after):
    patch = make_patch([{"id": item} for item in before], [{"id": item} for item in after])
    assert sum(operation["op"] == "remove" for operation in patch) == len(IDS) - longest_run(before, after)


def longest_run(before: list[str], after: list[str]) -> int:
    """Return how many items can stay where they are: the longest order that both lists have in common."""
    best: list[int] = []
    for place, item in enumerate(after):
        earlier = [best[at] for at in range(place) if before.index(after[at]) < before.index(item)]
        best.append(1 + max(earlier, default=0))
    return max(best)

"""What a soak is judged by: a run that is missing or one too many is seen."""

from collections import Counter
from collections.abc import Mapping

import pytest

from tools.soak import PEEKS
from tools.soak.__main__ import Tally, judge

ONE: Mapping[str, int] = {"begun": 1, "done": 1}
TWO: Mapping[str, int] = {"begun": 2, "done": 1}


def ledger_of(**runs: Mapping[str, int]) -> dict[tuple[str, str], Counter[str]]:
    kinds = {kind: Counter(phases) for kind, phases in runs.items()}
    return {(kind, "1"): kinds.get(kind, Counter()) for kind in ("order", "label", "pay", "ship", "charge")}


@pytest.mark.parametrize(
    ("kind", "runs", "is_good"),
    [
        ("order", ONE, True),
        ("order", TWO, False),
        ("order", {"begun": 1}, False),
        ("label", TWO, True),
        ("label", {}, False),
        ("pay", ONE, True),
        ("pay", TWO, False),
        ("ship", TWO, True),
        ("ship", {"begun": 1}, False),
        ("charge", TWO, False),
    ],
)
def test_the_judge_wants_accepted_calls_done_and_once_where_promised(kind, runs, is_good):
    tally = Tally()
    tally.accepted[kind].add("1")
    tally.ended[kind] += 1
    assert judge(tally, ledger_of(**{kind: runs})) == is_good


def test_an_odd_answer_is_no_good_soak():
    assert not judge(Tally(wrong=["LOST ship 1: its job has not ended"]), ledger_of())
    assert judge(Tally(), ledger_of())


@pytest.mark.parametrize(
    ("kind", "count", "is_good"),
    [("peek", 3 * PEEKS, True), ("peek", 3 * PEEKS + 1, False), ("idle", 1_000, True), ("idle", 1_001, False)],
)
def test_a_stranger_who_had_more_than_a_share_is_seen(kind, count, is_good):
    assert judge(Tally(strangers=Counter({kind: count})), ledger_of(), seconds=60.0) == is_good

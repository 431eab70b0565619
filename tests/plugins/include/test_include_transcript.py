"""What inclusions of odd routes take and refuse: `included.txt`."""

from pathlib import Path
from typing import Any

import pytest

from tests.declare.facts import described
from tests.declare.test_declare_transcript import ordering
from tests.function_transcripts import compare
from tests.installed import taken_out
from tests.plugins.include.odd_application import make_odd_application


def included(*inclusions: dict[str, Any]) -> list[str]:
    """Return what `site.include()` takes of odd routes, and why it leaves others out.

    {"declared": PATH} is an action that is declared for a route that is read.
    """
    site = ordering()
    for options in inclusions:
        if "declared" in options:
            site.declare("declared", method="GET", path=options["declared"], description="Declared.")
        else:
            site.include(**options)
    catalog = site.freeze(make_odd_application())
    actions = [(each.target, each) for each in catalog.actions if each.target is not None]
    others = [f"{each.method} {each.path} ({each.name}): {each.why}" for each in site.left_out]
    reasons = [line for line in others if not line.endswith("not selected by tags, paths or operations")]
    return [
        *(f"{to.method} {to.path} is {each.id} ({each.effect}): {each.description}" for to, each in actions),
        *(f"{each.id} gives {described(each.outputs)}" for _, each in actions if len(actions) < 4),
        *(f"{each.path} is a page: {each.title}, {each.description}" for each in catalog.pages),
        *reasons,
        f"{len(others) - len(reasons)} are not selected.",
    ]


def late() -> None:
    site = ordering()
    site.freeze(make_odd_application())
    site.include()


@pytest.mark.skipif(bool(taken_out()), reason="messages name what all plug-ins have")
def test_inclusions_take_and_refuse_what_was_reviewed(request):
    compare(Path(__file__).parent / "included.txt", {"included": included, "late": late}, request)

"""Wrong credentials of every kind, in every way to an action of every kind: nothing runs that should not, and nobody is
told what does not concern them. The rows are in `credential_rows`, ways and actions in `credential_world`.
"""

from collections.abc import Iterator

import pytest

from awp_publish.plugin import Door, Endpoints, Plugin
from tests.doors.credential_rows import RIGHT, ROWS
from tests.doors.credential_world import (
    ACTIONS,
    NO_CALLS,
    WAYS,
    World,
    doors_without_a_way,
    is_cell,
    make_world,
    try_cell,
)
from tests.guarded import make_shop

pytestmark = pytest.mark.needs("sessions", "woa")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = make_world()
    yield made
    made.client.close()


def test_a_way_of_the_matrix_leads_through_every_door(world):
    assert doors_without_a_way(world.site) == []
    assert len({row.name for row in ROWS}) == len(ROWS) >= 37


def test_a_door_that_is_new_and_has_no_way_is_named():
    telegraph = Door(name="telegraph", path="/telegraph", open=lambda context: Endpoints())
    plugin = Plugin(name="telegraph", doors=lambda setup, paths: [telegraph])
    assert doors_without_a_way(make_shop(plugins=[plugin])) == ["telegraph"]
    assert not {way.door for way in WAYS.values()} & set(NO_CALLS)


@pytest.mark.parametrize("name", WAYS)
def test_with_right_credentials_every_way_leads_to_every_action(world, name):
    way, number = WAYS[name], list(WAYS).index(name)
    reached = [action for action in ACTIONS if way.fits(ACTIONS[action])]
    assert reached
    for index, action in enumerate(reached):
        rows = [row for row in RIGHT if ACTIONS[action].is_for(row) and row.name in way.rights and way.takes(row)]
        assert rows or ACTIONS[action].needs_signature
        if rows:
            row = RIGHT[0] if way.reads or way.closed else rows[(index + number) % len(rows)]
            assert try_cell(world, row, way, action) == [], (action, row.name)


@pytest.mark.parametrize("name", WAYS)
def test_wrong_credentials_lead_nowhere(world, name):
    """Each pair of a row, a way and an action is tried; the fuzzer tries the rest."""
    way, number, wrong = WAYS[name], list(WAYS).index(name), []
    for index, row in enumerate(ROWS):
        fitting = [action for action in ACTIONS if is_cell(row, way, ACTIONS[action])]
        if not fitting:
            continue
        action = fitting[(index + number) % len(fitting)]
        wrong += [f"{row.name}, {action}: {words}" for words in try_cell(world, row, way, action)]
    assert wrong == []


def test_a_callers_token_is_unspent_after_attempts_of_others(world):
    ann = RIGHT[0]
    others = [row for row in ROWS if not any(ACTIONS[name].is_for(row) for name in ("wire", "pay", "send"))]
    for name in ("wire", "pay"):
        for row in others:
            try_cell(world, row, WAYS["woa"], name)
        extras = world.extras_of(name, others[0])
        world.wear(ann)
        world.runs.clear()
        assert world.invoke(name, extras).status_code == 200
        assert world.runs == ([] if ACTIONS[name].takes_keys else [(name, "ann")])

"""Cells of the matrix of credentials, drawn at random: rows, ways and actions that the tests do not try together."""

from random import Random

from tests.doors.credential_rows import ROWS
from tests.doors.credential_world import ACTIONS, WAYS, is_cell, make_world, try_cell


def try_cells(count: int, seed: int) -> list[str]:
    """Try this many cells in one application, and return what is wrong."""
    rng, world, wrong = Random(seed), make_world(), []
    try:
        for _ in range(count):
            row, way, name = rng.choice(ROWS), rng.choice(tuple(WAYS)), rng.choice(tuple(ACTIONS))
            if is_cell(row, WAYS[way], ACTIONS[name]):
                wrong += [f"{row.name}, {way}, {name}: {words}" for words in try_cell(world, row, WAYS[way], name)]
    finally:
        world.client.close()
    return wrong

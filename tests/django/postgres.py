"""A database of the PostgreSQL server that the tests of a run share, for the shop's models."""

from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connections

from tests.postgres_server import make_database

ALIAS = "postgres"


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The alias of a database with our tables."""
    folder, name = make_database("django")
    place = {"ENGINE": "django.db.backends.postgresql", "NAME": name, "USER": "awp", "HOST": str(folder)}
    connections.settings[ALIAS] = {**connections.settings["store"], **place, "OPTIONS": {}}
    try:
        call_command("migrate", database=ALIAS, verbosity=0)
        yield ALIAS
    finally:
        connections[ALIAS].close()
        del connections.settings[ALIAS]

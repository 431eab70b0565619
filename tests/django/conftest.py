"""The shop set up once, with its tables empty for each test."""

import os
from collections.abc import Iterator
from contextvars import copy_context
from functools import cache
from pathlib import Path

import django
import pytest
from _pytest import runner

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.shop.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.core.management.color import no_style  # noqa: E402
from django.db import connection, connections  # noqa: E402
from django.db.backends.base.base import BaseDatabaseWrapper  # noqa: E402
from django.db.backends.signals import connection_created  # noqa: E402
from django.test import AsyncClient, Client  # noqa: E402

from awp_publish.plugins.sign_in import clients  # noqa: E402
from tests.django.postgres import postgres as postgres  # noqa: E402
from tests.django.servers import servers as servers  # noqa: E402


def _wait_for_no_disk(connection: BaseDatabaseWrapper, **_: object) -> None:
    """A test's tables need not outlive a power cut."""
    if connection.vendor == "sqlite":
        connection.cursor().execute("PRAGMA synchronous = OFF")


connection_created.connect(_wait_for_no_disk)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> object:
    """Run each test in a context of its own.

    Each resolver of addresses that Django makes adds a variable to the context. After hundreds of tests there would be
    thousands, all of which asgiref copies whenever a request goes from one thread to another.
    """
    return copy_context().run(runner.pytest_runtest_protocol, item, nextitem)


@pytest.fixture(scope="session", autouse=True)
def _tables() -> Iterator[None]:
    for database in connections:
        path = Path(connections.settings[database]["NAME"])  # also of others that were forked from the same process
        connections.settings[database]["NAME"] = path.with_stem(f"{path.stem}-{os.getpid()}")
        call_command("migrate", database=database, run_syncdb=True, verbosity=0)
    yield
    connections.close_all()


@pytest.fixture(autouse=True)
def _many_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests register their agents from one address."""
    monkeypatch.setattr(clients, "MAX_REGISTRATIONS", 10_000)


MADE = ("auth_permission", "django_content_type")
"""Tables whose rows are made of the models. To make them again takes ten times as long as to empty all others."""


@cache
def _statements() -> list[str]:
    tables = set(connection.introspection.django_table_names(only_existing=True, include_views=False))
    return connection.ops.sql_flush(no_style(), sorted(tables.difference(MADE)), reset_sequences=True)


def _count_made() -> list[int]:
    with connection.cursor() as cursor:
        return [cursor.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in MADE]


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    made = _count_made()
    yield
    if _count_made() == made:
        connection.ops.execute_sql_flush(_statements())
    else:
        call_command("flush", interactive=False, verbosity=0)


@pytest.fixture
def client() -> Client:
    return Client(SERVER_NAME="shop.example")


@pytest.fixture
def async_client() -> AsyncClient:
    return AsyncClient(headers={"host": "shop.example"})

"""The shop set up once, with its tables empty for each test."""

import os
from collections.abc import Iterator

import django
import pytest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.shop.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connections  # noqa: E402
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


@pytest.fixture(scope="session", autouse=True)
def _tables() -> Iterator[None]:
    for database in connections:
        call_command("migrate", database=database, run_syncdb=True, verbosity=0)
    yield
    connections.close_all()


@pytest.fixture(autouse=True)
def _many_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests register their agents from one address."""
    monkeypatch.setattr(clients, "MAX_REGISTRATIONS", 10_000)


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    yield
    call_command("flush", interactive=False, verbosity=0)


@pytest.fixture
def client() -> Client:
    return Client(SERVER_NAME="shop.example")


@pytest.fixture
def async_client() -> AsyncClient:
    return AsyncClient(headers={"host": "shop.example"})

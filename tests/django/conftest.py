"""The shop set up once, with its tables empty for each test."""

import os
from collections.abc import Iterator

import django
import pytest

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.shop.settings")
django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connections  # noqa: E402
from django.test import AsyncClient, Client  # noqa: E402

from tests.django.postgres import postgres as postgres  # noqa: E402
from tests.django.servers import servers as servers  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def _tables() -> Iterator[None]:
    for database in connections:
        call_command("migrate", database=database, run_syncdb=True, verbosity=0)
    yield
    connections.close_all()


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

"""A database that stalls and goes on: calls that were told to come again do, with the same key and confirmation."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from awp_publish_django.models import Entry, Lock
from awp_publish_django.store import DjangoStore
from django.db import connections

from tests.stores.test_stalls import pay_through_a_stall

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "statement",
    [f"UPDATE {Lock._meta.db_table} SET turn = turn", f"LOCK TABLE {Entry._meta.db_table} IN SHARE MODE"],
    ids=["somebody else's turn", "tables that cannot be written"],
)
def test_calls_that_a_stalled_database_refused_run_once_when_they_are_sent_again(postgres, open_client, statement):
    place = connections.settings[postgres]

    @contextmanager
    def locked() -> Iterator[None]:
        with psycopg.connect(dbname=place["NAME"], user=place["USER"], host=place["HOST"]) as other:
            other.execute(statement)
            yield

    pay_through_a_stall(DjangoStore(uuid.uuid4().hex, using=postgres, timeout=1.5), locked, open_client)

"""A store of the site's own: whatever goes wrong in it is a store that is unavailable."""

import asyncio

import pytest

from awp_publish import DeclarationError, Site
from awp_publish.problems import StoreUnavailable
from awp_publish.stores import Add, ForeignStore, Look
from awp_publish.stores.memory import MemoryStore


class Silent(MemoryStore):
    async def run(self, steps, *, durable=False):
        await asyncio.Event().wait()

    async def take(self, queue, lease, most):
        await asyncio.Event().wait()


class Broken(MemoryStore):
    async def run(self, steps, *, durable=False):
        raise KeyError("mistake")

    async def take(self, queue, lease, most):
        raise KeyError("mistake")


@pytest.mark.parametrize("kind", [Silent, Broken])
async def test_one_that_hangs_or_breaks_is_unavailable_within_its_time(kind):
    store = ForeignStore(kind(), timeout=0.05)
    for answer in (store.run([Look("key")]), store.take("queue", 1.0, 1)):
        with pytest.raises(StoreUnavailable) as refused:
            await answer
        assert dict(refused.value.headers)["Retry-After"] == "1"
        assert "mistake" not in str(refused.value)


async def test_one_that_works_is_passed_through():
    store = ForeignStore(MemoryStore())
    assert store.is_shared is False
    assert (await store.run([Add("key", b"value", 9)])).failed is None
    assert (await store.run([Look("key")])).seen == (b"value",)
    await store.close()


@pytest.mark.parametrize("given", [7, object(), None])
def test_a_value_that_is_not_a_store_is_refused(given):
    with pytest.raises(DeclarationError, match="is not a store"):
        Site("Shop", "Sells things.", "https://shop.example", store=given)

"""Every store, for the tests of what plug-ins keep in one."""

from tests.stores.conftest import (
    clock as clock,
    kind as kind,
    make_store as make_store,
    pass_time as pass_time,
    second as second,
    store as store,
)

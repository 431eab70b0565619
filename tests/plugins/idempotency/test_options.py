"""The option `idempotency` of an action."""

import pytest

from awp_publish import DeclarationError, Idempotency
from tests.guarded import make_shop


@pytest.mark.parametrize("value", [24, ["24h"], {"seconds": 24}, Idempotency(window=24)])  # type: ignore[arg-type]
def test_a_wrong_value_is_refused_where_it_is_written(value):
    with pytest.raises(DeclarationError) as refused:
        make_shop().action("order", idempotency=value)
    assert str(refused.value).startswith('action "order": idempotency: write idempotency as True, "24h" or ')

"""What callers are told of limits, whole, second by second: `transcripts`, in the words of `tests/transcript.py`."""

from pathlib import Path

import pytest

from awp_publish import Limits, Refused, Site
from tests.timed import compare_timed

TRANSCRIPTS = Path(__file__).parent / "transcripts"


def declare_each(site: Site) -> None:
    """Declare actions with a limit each."""
    rates = {
        "plain": "2/minute",
        "user": "1/2 minutes by user",
        "ip": "1/hour by ip",
        "total": "2/day in total",
        "leased": "5/day in total, 2 at a time",
        "wide": "100/minute",
        "same": "4/minute",
        "free": None,
    }
    for name, rate in rates.items():

        @site.agent(name, rate_limit=rate)
        async def answer(word: str = "x") -> str:
            """Say a word."""
            if word == "refuse":
                raise Refused("No.", code="NO")
            return word


SITES = {
    "each": Limits(),
    "together": Limits(rate_limit="4/minute"),
    "leased": Limits(rate_limit="3/minute in total, 2 at a time"),
}


@pytest.mark.parametrize("name", SITES)
def test_limits_apply_as_in_the_transcripts(name, request):
    compare_timed(TRANSCRIPTS / f"{name}.txt", declare_each, request, limits=SITES[name])

"""Rules of actions.json that validators and runtimes share."""

from awp_publish.maps.rules import url_fits


def test_many_stars_take_no_longer_than_the_address() -> None:
    assert not url_fits({"url_matches": "a*" * 20_000 + "b"}, "a" * 30_000)

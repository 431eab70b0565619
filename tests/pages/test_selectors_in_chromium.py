"""What selectors match, beside what they match in Chromium."""

import json
from typing import Any

from tests.pages.test_pages_transcripts import SELECTED, TRANSCRIPTS

MATCHED = """selectors => selectors.map(selector =>
    [...document.querySelectorAll(selector)].map(one => one.getAttribute('n')).filter(Boolean).join(' '))"""


def test_a_selector_matches_what_it_matches_in_chromium(tab: Any) -> None:
    lines = (TRANSCRIPTS / "selectors.txt").read_text().splitlines()
    wanted = {name: found for line in lines if line.startswith("{") for name, found in json.loads(line).items()}
    tab.set_content(f"<!doctype html><title>Tea</title>{SELECTED}")
    found = dict(zip(wanted, tab.evaluate(MATCHED, list(wanted)), strict=True))
    assert {name: found[name] for name in wanted if found[name] != wanted[name]} == {}

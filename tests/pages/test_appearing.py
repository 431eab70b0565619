"""What fades or slides in when a reader scrolls to it is a part of the page before it does."""

import pytest

from awp_publish.pages.markdown import write_markdown

URL = "https://shop.example/"
APPEARS = [
    "opacity:0;transform:translateY(20px)",
    "opacity:0; translate: 0 1rem",
    "opacity:0;transition:opacity .6s ease-in",
    "opacity:0;transition:transform 1s, opacity 1s",
    "opacity:0;transition:all 300ms",
    "opacity:0;transition:.3s",
    "opacity:0;-webkit-transition:opacity 1s",
    "opacity:0;transition-property:opacity",
    "opacity:0;position:relative;transform:matrix(1, 0, 0, 1, 0, 30)",
]
STAYS = [
    "opacity:0",
    "opacity:0;transform:none",
    "opacity:0;transition:none",
    "opacity:0;transition:width 1s",
    "opacity:0;transition:opacity 1s;pointer-events:none",
    "opacity:0;transition:opacity 1s;position:absolute",
    "opacity:0;transform:translateY(20px);position:fixed",
    "opacity:0;transition:opacity 1s;visibility:hidden",
    "opacity:0;transition:opacity 1s;display:none",
    "opacity:0;transform:scale(0)",
    "opacity:0;transform:translateX(-9999px)",
]


def pages_with(style: str) -> list[str]:
    rule = f"<style>.a{{{style}}}</style><p>Shown</p><div class=a>Tea from Assam</div>"
    return [rule, f'<p>Shown</p><div style="{style}">Tea from Assam</div>']


@pytest.mark.parametrize("style", APPEARS)
def test_elements_that_come_into_view_are_written(style: str) -> None:
    assert all("Tea from Assam" in write_markdown(page, URL) for page in pages_with(style))


@pytest.mark.parametrize("style", STAYS)
def test_text_that_waits_for_something_else_is_not_written(style: str) -> None:
    assert all(write_markdown(page, URL) == "Shown\n" for page in pages_with(style))

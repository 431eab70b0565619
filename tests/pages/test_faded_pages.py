"""A page that its scripts fade in is read; what is hidden of a page, or of one that is faded in, is not."""

import pytest

from awp_publish.pages import Budget, compile_som
from awp_publish.pages.markdown import write_markdown

URL = "https://shop.example/"
SENTENCES = "".join(f"<p>The sentence {number} of this page has some words.</p>" for number in range(60))
MENU = "<nav><a href=/>Home</a> <a href=/books>Books</a></nav>"


def texts(html: str) -> tuple[str, str]:
    """What is read of a page: as Markdown, and as SOM."""
    return write_markdown(html, URL), str(compile_som(html, URL, Budget.FULL).document)


@pytest.mark.parametrize(
    "html",
    [
        f'{MENU}<main style="opacity: 0"><h1>Books</h1>{SENTENCES}</main>',
        f"<style>.wait {{ visibility: hidden }}</style>{MENU}<div class=wait><h1>Books</h1>{SENTENCES}</div>",
        f'<div style="opacity:0"><div style="visibility:hidden"><h1>Books</h1>{SENTENCES}</div></div>',
        f'<div style="opacity:.0">{MENU}<main>{SENTENCES}</main></div><div style="display:none">{SENTENCES * 3}</div>',
    ],
)
def test_a_page_that_is_nearly_all_transparent_or_invisible_is_read(html):
    for text in texts(html):
        assert "The sentence 0 of this page" in text
        assert "The sentence 59 of this page" in text


@pytest.mark.parametrize(
    "html",
    [
        f'{SENTENCES}<p style="opacity: 0">Secret</p>',
        f'<main style="opacity: 0">{SENTENCES}<p style="opacity: 0">Secret</p></main>',
        f'<main style="visibility: hidden">{SENTENCES}<p style="display: none">Secret</p></main>',
        '<p>Seen</p><div style="opacity: 0">' + "<p>Secret</p>" * 200 + "</div>",
        SENTENCES + '<div style="opacity: 0">' + SENTENCES.replace("sentence", "Secret") + "</div>",
        f'<p>Seen</p><div style="display: none">{SENTENCES.replace("sentence", "Secret")}</div>',
        f'<p>Seen</p><div style="opacity: 0; display: none">{SENTENCES.replace("sentence", "Secret")}</div>',
        f'<p>Seen</p><div hidden style="opacity: 0">{SENTENCES.replace("sentence", "Secret")}</div>',
    ],
)
def test_hidden_parts_of_a_page_stay_hidden(html):
    for text in texts(html):
        assert "Secret" not in text

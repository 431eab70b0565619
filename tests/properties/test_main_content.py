"""The main content of a page is what another extractor takes for it, where that is installed."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from awp_publish.pages.markdown import write_content
from awp_publish.pages.selectolax import parse
from tests.examples import examples

trafilatura = pytest.importorskip("trafilatura", reason="a second opinion: pip install trafilatura")

SUBJECTS = ("The lighthouse keeper", "A small harbour town", "The last ferry", "Every winter storm", "An old map")
VERBS = ("was built before anybody kept a record of it", "has been painted white by those who live beside it")
SENTENCES = st.builds("{} {}, and nobody remembers why.".format, st.sampled_from(SUBJECTS), st.sampled_from(VERBS))
PARAGRAPHS = st.lists(st.lists(SENTENCES, min_size=3, max_size=5), min_size=4, max_size=8)
BESIDE = st.sampled_from(
    ["<nav><a href=/a>Shelves</a> <a href=/b>Basket</a></nav>", "<aside><p>Subscribe now</p></aside>", ""]
)
AROUND = st.sampled_from(["<article>{}</article>", "<main>{}</main>", "<div id=content>{}</div>"])


@settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(PARAGRAPHS, AROUND, BESIDE)
def test_an_article_is_what_both_extractors_take(paragraphs, around, beside):
    numbered = [f"{number}: {' '.join(sentences)}" for number, sentences in enumerate(paragraphs)]
    article = around.format("<h1>The harbour</h1>" + "".join(f"<p>{text}</p>" for text in numbered))
    page = f"<html><body>{beside}{article}<footer><p>All rights reserved by nobody.</p></footer></body></html>"
    theirs = trafilatura.extract(page, favor_recall=True, deduplicate=False) or ""
    ours = write_content(parse(page), "https://shop.example/")
    assert [text in ours for text in numbered] == [text in theirs for text in numbered] == [True] * len(numbered)

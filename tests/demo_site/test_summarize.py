"""The summariser: what it promises about length and order for any text, and what it makes of English."""

import pytest
from hypothesis import given, strategies as st

from demo_site.agents import summarize_text
from demo_site.summarize import split_sentences, summarize
from tests.steps import LINEAR, steps_of

HARBOUR = (
    "The harbour froze early that winter. Nobody in the town could remember such ice. Ships waited outside the harbour "
    "for the ice to break, and the harbour master counted the ships every morning. My aunt baked bread. By March the "
    "ice had broken, the ships came in, and the harbour was loud again. Then spring came."
)

prose = st.lists(
    st.sampled_from(["The", "ice", "harbour", "Mr.", "e.g.", "said", "so.", "No!", "(Why?)", "\n\n", "J.", "ships"])
).map(" ".join)


def test_the_example_of_the_woa_draft_is_its_own_summary() -> None:
    text = "The IETF is an open community of designers."
    assert summarize(text, 40) == text
    assert summarize_text(text, 40).summary == text


@given(st.one_of(st.text(), prose), st.integers(1, 60))
def test_a_summary_never_has_more_words_than_allowed(text: str, max_words: int) -> None:
    summary = summarize(text, max_words)
    assert len(summary.split()) <= max_words
    assert bool(summary) == bool(text.split())


@given(prose, st.integers(1, 60))
def test_a_summary_consists_of_the_sentences_in_their_order(text: str, max_words: int) -> None:
    summary = summarize(text, max_words)
    if not summary.endswith("…"):
        left = iter(text.split())
        assert all(word in left for word in summary.split())


@given(prose, st.integers(1, 60))
def test_the_same_text_has_the_same_summary(text: str, max_words: int) -> None:
    assert summarize(text, max_words) == summarize(text, max_words)


@given(st.one_of(st.text(), prose))
def test_no_word_is_lost_between_sentences(text: str) -> None:
    assert [word for sentence in split_sentences(text) for word in sentence] == text.split()


def test_the_most_telling_sentences_are_kept() -> None:
    assert summarize(HARBOUR, 35) == (
        "Ships waited outside the harbour for the ice to break, and the harbour master counted the ships every morning."
        " By March the ice had broken, the ships came in, and the harbour was loud again."
    )


def test_a_sentence_that_is_too_long_is_cut_after_a_word() -> None:
    assert summarize("One two three, four five six.", 3) == "One two three…"
    assert summarize("One two three four five six.", 3) == "One two three…"


@pytest.mark.parametrize(
    "text",
    [
        "Mr. Darcy came in. He bowed.",
        "Many fruits, e.g. Apples, are sweet. Some are not.",
        "It was written by J. S. Mill. He was young.",
        "She asked “Why?” and he left. Nobody knew.",
        "The price rose to 3.50 yesterday. It fell today.",
        "“It is over.” She closed the book.",
        "First paragraph without a stop\n\nSecond paragraph",
        "What? No.",
        "So do I. Then we went.",
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str) -> None:
    assert len(split_sentences(text)) == 2


@pytest.mark.parametrize("text", ["", " \n\n ", "\N{NO-BREAK SPACE}"])
def test_nothing_has_an_empty_summary(text: str) -> None:
    assert summarize(text, 10) == ""


def test_fewer_than_one_word_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="max_words"):
        summarize("A text.", 0)


REPEATED = {
    "sentences": "The ice broke in the harbour. Ships came. ",
    "one sentence": "word ",
    "one word": ".",
    "stops": ". ",
    "lines": "\n",
    "paragraphs": "\n \n",
    "letters": "a.",
    "titles": "Mr. ",
}


@pytest.mark.slow
@pytest.mark.parametrize("unit", REPEATED.values(), ids=REPEATED.keys())
def test_four_times_the_text_takes_about_four_times_as_many_steps(unit: str) -> None:
    def steps(size: int) -> int:
        return steps_of(lambda: summarize(unit * (size // len(unit)), 100))

    assert steps(40_000) < LINEAR * steps(10_000)


@pytest.mark.parametrize("unit", REPEATED.values(), ids=REPEATED.keys())
def test_a_long_text_is_summarised_too(unit: str) -> None:
    assert len(summarize(unit * (200_000 // len(unit)), 100).split()) <= 100

"""Summarising English text by picking its most telling sentences.

The method is Luhn's: words that a text repeats, and that are not mere grammar, are its significant words; a sentence
tells most where such words stand close together. See H. P. Luhn, "The Automatic Creation of Literature Abstracts",
IBM Journal of Research and Development 2 (2), 1958, pages 159-165. The work grows in proportion to the text, but for
sorting the sentences by score.
"""

import re
from collections import Counter
from collections.abc import Iterable, Set

ELLIPSIS = "…"
MOST_SIGNIFICANT_WORDS = 100
# Luhn: significant words belong together as long as no more than four others stand between two of them.
WIDEST_GAP = 4

_GRAMMAR = """
    a about above after again against all also although am an and any are as at be because been before being below
    between both but by can cannot could did do does doing down during each either else ever every few for from further
    had has have having he her here hers herself him himself his how however i if in into is it its itself just may me
    might more most must my myself neither no nor not now of off on once one only or other our ours ourselves out over
    own per quite rather same shall she should since so some such than that the their theirs them themselves then there
    these they this those though through thus to too under until up upon us very was we were what when where whether
    which while who whom whose why will with within without would yet you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_GRAMMAR.split())

# A full stop after one of these does not end a sentence; nor does one after a single letter, as in "J. S. Mill".
_ABBREVIATED = """
    mr mrs ms messrs dr prof st rev hon gen col maj capt cmdr lt sgt sir gov sen rep pres vs cf viz ca approx no nos
    vol vols pp p fig figs ch sec ed eds jan feb mar apr jun jul aug sept sep oct nov dec
"""
ABBREVIATIONS = frozenset(_ABBREVIATED.split())
DOTTED_LETTERS = re.compile(r"(?:[^\W\d_]\.)+")
QUOTATION_MARKS = "\"'\u2018\u2019\u201c\u201d\u00ab\u00bb"
DASHES = "-\u2013\u2014"
OPENING_MARKS = QUOTATION_MARKS + DASHES + "([{*_"
CLOSING_MARKS = QUOTATION_MARKS + ")]}*_"
DANGLING_MARKS = DASHES + ",;:("
ALL_MARKS = QUOTATION_MARKS + DASHES + "()[]{}*_.,;:!?" + ELLIPSIS

Sentence = list[str]


def summarize(text: str, max_words: int) -> str:
    """Return the most telling sentences of a text, in their order, in at most ``max_words`` words.

    Words are what stands between blanks. If no sentence is short enough, the most telling one is cut after a word and
    ends in an ellipsis.
    """
    if max_words < 1:
        raise ValueError("max_words must be at least 1")
    sentences = split_sentences(text)
    if not sentences:
        return ""
    ranking = _ranking(sentences)
    chosen = _choose(sentences, ranking, max_words)
    if not chosen:
        return _cut(sentences[ranking[0]], max_words)
    return " ".join(word for index in chosen for word in sentences[index])


def split_sentences(text: str) -> list[Sentence]:
    """Split English text into sentences, each a list of words; a blank line always ends one."""
    return [sentence for paragraph in re.split(r"\n[^\S\n]*+\n", text) for sentence in _sentences_of(paragraph.split())]


def _sentences_of(words: list[str]) -> list[Sentence]:
    ends = [index for index, word in enumerate(words[:-1], start=1) if _ends_sentence(word, words[index])]
    starts = [0, *ends]
    return [words[start:end] for start, end in zip(starts, [*ends, len(words)], strict=True) if start < end]


def _ends_sentence(word: str, following: str) -> bool:
    bare = word.lstrip(OPENING_MARKS).rstrip(CLOSING_MARKS)
    if not bare.endswith((".", "!", "?", ELLIPSIS)):
        return False
    if following.lstrip(OPENING_MARKS)[:1].islower():
        return False
    return not bare.endswith(".") or not _is_abbreviation(bare)


def _is_abbreviation(word: str) -> bool:
    if word == "I.":
        return False
    return word[:-1].lower() in ABBREVIATIONS or DOTTED_LETTERS.fullmatch(word) is not None


def _ranking(sentences: list[Sentence]) -> list[int]:
    meanings = [[_meaning(word) for word in sentence] for sentence in sentences]
    significant = _significant_words(word for sentence in meanings for word in sentence)
    scores = [_score(sentence, significant) for sentence in meanings]
    return sorted(range(len(sentences)), key=lambda index: -scores[index])


def _meaning(word: str) -> str:
    bare = word.casefold().strip(ALL_MARKS).removesuffix("'s").removesuffix("\u2019s")
    return "" if bare in STOP_WORDS else bare


def _significant_words(words: Iterable[str]) -> Set[str]:
    counts = Counter(words)
    del counts[""]
    common = counts.most_common(MOST_SIGNIFICANT_WORDS)
    return {word for word, count in common if count > 1} or counts.keys()


def _score(words: Sentence, significant: Set[str]) -> float:
    best = 0.0
    start = previous = count = 0
    for position, word in enumerate(words):
        if word not in significant:
            continue
        if count == 0 or position - previous > WIDEST_GAP + 1:
            start, count = position, 0
        previous = position
        count += 1
        best = max(best, count * count / (position - start + 1))
    return best


def _choose(sentences: list[Sentence], ranking: list[int], max_words: int) -> list[int]:
    chosen = []
    room = max_words
    for index in ranking:
        if len(sentences[index]) <= room:
            chosen.append(index)
            room -= len(sentences[index])
    return sorted(chosen)


def _cut(sentence: Sentence, max_words: int) -> str:
    return " ".join(sentence[:max_words]).rstrip(DANGLING_MARKS) + ELLIPSIS

"""What clients call themselves, as people may be shown it: one line of text that does not pass for another name.

After Unicode Technical Standard 39. Each word is written in one of the scripts in modern use, or in those that go
together (section 5.2, "highly restrictive"), and the name not in letters of another alphabet alone that look like Latin
ones (section 4; they are those that browsers refuse in addresses). Any other name is not shown. What no table knows, as
"C1aude", the page says: anybody can choose a name.
"""

import re
import unicodedata
from typing import Final

MAX_NAME: Final = 60
"""Characters of a name that are shown."""

MAX_MARKS: Final = 3
"""Marks on one letter. More would be drawn over what stands around it."""

_WITHOUT_INK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
"""Characters that nobody sees, beside those of the category C."""

_SCRIPTS: Final = re.compile(
    "ARABIC|ARMENIAN|BENGALI|BOPOMOFO|CJK|CYRILLIC|DEVANAGARI|ETHIOPIC|GEORGIAN|GREEK|GUJARATI|GURMUKHI|HANGUL|HEBREW|"
    "HIRAGANA|KANNADA|KATAKANA|KHMER|LAO|LATIN|MALAYALAM|MYANMAR|ORIYA|SINHALA|TAMIL|TELUGU|THAANA|THAI|TIBETAN"
)
"""The scripts of Unicode Standard Annex 31, table 5, as names of characters begin."""

_TOGETHER: Final = (
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA"},
    {"LATIN", "CJK", "BOPOMOFO"},
    {"LATIN", "CJK", "HANGUL"},
)
_LIKE_LATIN: Final = frozenset("аеіјӏорсԁѕԛԝхуһҽпгьъѵАВЕЅІЈКМНОРСТУХԌԚԜѴαηικνορτυωϲΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹագզէլհյոսւօՍՏՕ")


def shown_name(name: object) -> str:
    """Return the name of a client as it may be shown, "" if there is none."""
    if not isinstance(name, str):
        return ""
    composed = _WITHOUT_INK.sub("", unicodedata.normalize("NFKC", name[: 4 * MAX_NAME]))
    visible = (char if unicodedata.category(char)[0] != "C" else " " for char in composed)
    line = " ".join("".join(visible).split())[:MAX_NAME].strip()
    return "" if _passes_for_another(line) else line


def _passes_for_another(line: str) -> bool:
    foreign: set[str] = set()
    for word in re.split(r"[\s-]", line):
        scripts: set[str] = set()
        marks = 0
        for char in word:
            category = unicodedata.category(char)
            marks = marks + 1 if category[0] == "M" else 0
            if marks > MAX_MARKS:
                return True
            if category[0] == "L" and category != "Lm":
                scripts.add(script := _script_of(char))
                foreign |= {char} if script != "LATIN" else set()
        if "" in scripts or (len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER)):
            return True
    return bool(foreign) and foreign <= _LIKE_LATIN


def _script_of(char: str) -> str:
    """Return the script of a letter; "" if it is not in modern use, or is a phonetic sign that looks like another."""
    name = unicodedata.name(char, "").partition(" ")[0]
    is_phonetic = name == "LATIN" and not (char < "\u0250" or "\u1e00" <= char <= "\u1eff")
    return name if _SCRIPTS.fullmatch(name) and not is_phonetic else ""

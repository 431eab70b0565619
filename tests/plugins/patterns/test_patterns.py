"""Regular expressions of Python and Rust in the syntax of ECMA-262 with the `u` flag."""

import json
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
from hypothesis import assume, given, settings, strategies as st

from awp_publish.plugins.patterns.ecma import UntranslatablePattern, to_ecma
from awp_publish.plugins.patterns.portable import portable
from awp_publish.schema import compile_schema
from tests.function_transcripts import compare

TRANSCRIPT = Path(__file__).parent / "patterns.txt"
RE_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "a": re.ASCII, "x": re.VERBOSE, "m": re.MULTILINE}
TRANSLATED = re.findall(r'^> (?:ecma|unicode) .*\n(".*")$', TRANSCRIPT.read_text(), re.MULTILINE)


def translate(text: str, flags: str = "", *, is_unicode: bool = False) -> str:
    return to_ecma(text, flags=sum(RE_FLAGS[letter] for letter in flags), is_unicode=is_unicode)


def test_translations_and_what_is_left_out_of_schemas(request):
    compare(
        TRANSCRIPT, {"ecma": translate, "unicode": partial(translate, is_unicode=True), "portable": portable}, request
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="JavaScript's own engine is asked")
def test_javascript_takes_every_translation():
    listed = [json.loads(translated) for translated in TRANSLATED]
    assert len(listed) > 50
    assert [to_ecma(translated) for translated in listed] == listed, "what is translated stays as it is"
    program = "for (const one of JSON.parse(require('fs').readFileSync(0))) new RegExp(one, 'u')"
    ran = subprocess.run(["node", "-e", program], input=json.dumps(listed), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_letters_of_all_scripts_are_words_where_python_means_them():
    pattern = to_ecma(r"^[\w.-]+\Z", is_unicode=True)
    for text in ("Müller", "größe-1", "名前", "a_b.c"):
        assert re.search(pattern, text)
    for text in ("two words", "a@b", "<a>"):
        assert not re.search(pattern, text)
    assert to_ecma(r"^\w+$", flags=re.ASCII, is_unicode=True) == r"^\w+$"
    for expression in (r"\bcat\b", r"(?!\w)x"):
        with pytest.raises(UntranslatablePattern):
            to_ecma(expression, is_unicode=True)


PIECES = st.sampled_from(
    [
        *(
            "a",
            "B",
            "1",
            "_",
            ".",
            "-",
            " ",
            "é",
            "a?",
            "b*",
            "[ab]+",
            "[^a]",
            "a{2}",
            "a{,2}",
            "b{1,}?",
            "{",
            "}",
            "a|b",
            "]",
        ),
        *(
            r"\w",
            r"\W",
            r"\d",
            r"\D",
            r"\s",
            r"\.",
            r"\-",
            r"\x61",
            r"\u0061",
            r"\x09",
            r"\t",
            r"\101",
            r"\0",
            r"\N{BULLET}",
        ),
        *(
            r"[\w-]",
            r"[^\w]",
            r"[\W1]",
            r"[]a]",
            r"[^]a]",
            r"[\]\\a]",
            r"[a-f\d]",
            r"[\x41-\x5a]",
            r"[^\s.]",
            r"[A-c^]",
        ),
        *(
            "(a)",
            "(a|b1)",
            "(?:ab)+",
            "(?P<x>b)",
            r"(a)\1",
            r"(?P<y>a)(?P=y)1",
            "(?#why)",
            "(?=a)",
            "(?!b)",
            "(?<=a)",
            "(?<!1)",
        ),
        *("(?i:aB)", "(?s:.)", "(?i:[a-f_])", "(?i:a(?-i:b)c)", "(?-i:a)", r"(?i:\x61)", "^", r"\A"),
    ]
)
TEXTS = st.lists(st.text("abcAB1_-. \t^]\\{}\0", max_size=5), min_size=1, max_size=6)


@settings(max_examples=300)
@given(st.lists(PIECES, min_size=1, max_size=4), TEXTS, st.sampled_from([0, re.IGNORECASE, re.DOTALL, re.ASCII]))
def test_a_translation_matches_what_the_expression_matches(pieces, texts, flags):
    try:
        expression = re.compile("".join(pieces), flags)
    except re.error:  # a group twice, or one that is not there
        assume(False)
    for is_unicode in (False, True):
        try:
            translated = to_ecma(expression.pattern, flags=flags, is_unicode=is_unicode)
        except UntranslatablePattern:
            continue
        engine = compile_schema({"pattern": translated})
        for text in texts:
            expected = expression.search(text) is not None
            assert (re.search(translated, text) is not None) == expected, (translated, text)
            assert engine.is_valid(text) == expected, (translated, text)
            if is_unicode and not flags and expression.search(f"{text}é名"):
                assert re.search(translated, f"{text}é名"), translated

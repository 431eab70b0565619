"""Regular expressions of Python and Rust in the syntax of ECMA-262 with the `u` flag."""

import json
import re
import shutil
import subprocess

import pytest
from hypothesis import assume, given, settings, strategies as st

from awp_publish.schema import compile_schema
from awp_publish.schema.patterns import LEFT_OUT, UntranslatablePattern, portable, to_ecma

SAME = (
    (r"^[\w.@+-]+\Z", r"^[\w.@+-]+$"),
    (r"\A[-a-z]+\z", r"^[-a-z]+$"),
    (r"(?i)^ab[c-f]\d+$", r"^[aA][bB][C-Fc-f]\d+$"),
    (r"(?i:a)b", r"(?:[aA])b"),
    (r"(?P<x>a)(?P=x)1", r"(a)\1(?:)1"),
    (r"\@\-[\@\.\-\w]\ ", r"@-[@\.\-\w] "),
    (r"a{,3}b{", r"a{0,3}b\{"),
    (r"]}", r"\]\}"),
    (r"[]a]", r"[\]a]"),
    (r"(?s).+", r"[\s\S]+"),
    (r"\N{BULLET}\U0001F600\07", "•😀\\x07"),
    (r"(?#why)a", "a"),
    (r"\x41[\x41-\x5a]", r"\x41[\x41-\x5a]"),
    (r"\pL\x{41}", r"\p{L}A"),
    (r"^(?<y>a)\k<y>\/[^-z]\u{1F600}?$", "^(?<y>a)\\k<y>\\/[^-z]😀?$"),
)
LOST = (
    *("a++", "(?>a)", "(?x) a b", "(?m)^a$", "(?=a)*", "(?i)ä", "(a)(?(1)b|c)", r"\Qa\E", "(a", "a)", "[a", "a{3,2}"),
    *(r"(?i)(a)\1", r"\2(a)", "*a", "a**", r"\U11111111", r"\N{NOTHING SUCH}"),
)


@pytest.mark.parametrize(("expression", "translated"), SAME)
def test_what_both_have_is_translated_once(expression, translated):
    assert to_ecma(expression) == translated
    assert to_ecma(translated) == translated


@pytest.mark.parametrize("expression", LOST)
def test_what_only_one_has_is_refused_with_its_reason(expression):
    with pytest.raises(UntranslatablePattern, match=r"^it .+"):
        to_ecma(expression)


@pytest.mark.skipif(shutil.which("node") is None, reason="JavaScript's own engine is asked")
def test_javascript_takes_every_translation():
    listed = [to_ecma(one) for one, _ in SAME] + [to_ecma(one, is_unicode=True) for one, _ in SAME]
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


def test_a_schema_loses_only_what_cannot_be_translated_and_says_where():
    schema = {
        "type": "object",
        "properties": {"pattern": {"pattern": r"a\z"}, "b": {"items": {"pattern": "a++"}}, "c": {LEFT_OUT: "x: why"}},
        "patternProperties": {r"^x\z": {"default": {"pattern": "a++"}}, "(?>a)": {}},
    }
    written, lost = portable(schema)
    assert written == {
        "type": "object",
        "properties": {"pattern": {"pattern": "a$"}, "b": {"items": {}}, "c": {}},
        "patternProperties": {"^x$": {"default": {"pattern": "a++"}}},
    }
    assert [one.split(":")[0] for one in lost] == ["/b", "/c", "/"]
    assert portable({"pattern": "("}) == ({"pattern": "("}, ()), "what is no expression is an error, and no finding"


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

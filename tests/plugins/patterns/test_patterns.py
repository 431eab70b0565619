"""Regular expressions of Python and Rust in the syntax of ECMA-262 with the `u` flag."""

import json
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import assume, given, settings, strategies as st
from starlette.applications import Starlette

from awp_publish.plugins.patterns.ecma import UntranslatablePattern, to_ecma
from awp_publish.plugins.patterns.portable import portable
from awp_publish.schema import compile_schema
from tests.declare.facts import a_site
from tests.function_transcripts import Functions, compare

TRANSCRIPT = Path(__file__).parent / "patterns.txt"
RE_FLAGS = {"i": re.IGNORECASE, "s": re.DOTALL, "a": re.ASCII, "x": re.VERBOSE, "m": re.MULTILINE}
TRANSLATED = re.findall(r'^> (?:both|ecma|unicode) .*\n(".*")$', TRANSCRIPT.read_text(), re.MULTILINE)


def translate(text: str, flags: str = "", *, is_unicode: bool = False) -> str:
    return to_ecma(text, flags=sum(RE_FLAGS[letter] for letter in flags), is_unicode=is_unicode)


def in_both_readings(text: str, flags: str = "") -> str:
    """Return the translation that does not depend on what a word is, or raise its refusal."""
    try:
        of_unicode = translate(text, flags, is_unicode=True)
    except UntranslatablePattern as error:
        with pytest.raises(UntranslatablePattern, match=f"^{re.escape(str(error))}$"):
            translate(text, flags)
        raise
    assert translate(text, flags) == of_unicode
    return of_unicode


def published(schemas: Any) -> list[object]:
    """Return the schemas of a site's action as agents read them, and what is found when the site starts."""
    site = a_site()
    site.declare("order", description="Order.", method="POST", path="/orders", **schemas)
    [action] = site.freeze(Starlette()).actions
    return [action.inputs, action.outputs, *map(str, site.findings)]


FUNCTIONS: Final[Functions] = {
    "both": in_both_readings,
    "ecma": translate,
    "unicode": partial(translate, is_unicode=True),
    "portable": portable,
    "published": published,
}


def test_translations_and_what_is_left_out_of_schemas(request):
    compare(TRANSCRIPT, FUNCTIONS, request)


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


PIECES: Final = r"""
    a B 1 _ . - é a? b* [ab]+ [^a] a{2} a{,2} b{1,}? { } a|b ] \w \W \d \D \s \. \- \x61 \u0061 \x09 \t \101
    \0 \N{BULLET} [\w-] [^\w] [\W1] []a] [^]a] [\]\\a] [a-f\d] [\x41-\x5a] [^\s.] [A-c^] [1\055b] (a)
    (a|b1) (?:ab)+ (?P<x>b) (a)\1 (?P<y>a)(?P=y)1 (?#why) (?=a) (?!b) (?<=a) (?<!1) (?i:aB) (?s:.) (?i:[a-f_]) (?i:[\S])
    (?i:[\D]) (?i:[^\W_]) (?i:a(?-i:b)c) (?-i:a) (?a:\w) (?i:\x61) ^ \A
"""
TEXTS = st.lists(st.text("abcAB1_-. \t^]\\{}\0", max_size=5), min_size=1, max_size=6)


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from([" ", *PIECES.split()]), min_size=1, max_size=4),
    TEXTS,
    st.sampled_from([0, re.IGNORECASE, re.DOTALL, re.ASCII]),
)
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

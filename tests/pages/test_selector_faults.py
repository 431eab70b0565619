"""CSS selectors: the ones that browsers take pass, and what is something else is told apart."""

import pytest

from awp_publish.pages.selectors import selector_fault


@pytest.mark.parametrize(
    "selector",
    [
        "input[name='q']",
        "[data-isbn]",
        "a[href]",
        ".book-list > li + li ~ li",
        ":is(a, b)",
        ":where()",
        ":is()",
        ":not(.a, .b)",
        ":not(.a, :is(b, c:not(d, e)))",
        "figure:has(> img)",
        "a:has(+ b, ~ c)",
        '[data-x="a" i]',
        "[data-x='a)(,#1']",
        "[data-x='a||b&c']",
        ":nth-child(2n of .a)",
        ":nth-child( -n + 3 )",
        ":nth-last-child(even of .a, #b)",
        "li:nth-of-type(odd)",
        "p::before",
        "::part(label)",
        "::slotted(span.x)",
        ":host(.dark)",
        ":host",
        r".a\:b",
        r"#\31 23",
        r".w-1\/2",
        "svg|a",
        "*|*",
        "a || b",
        "& a",
        ":scope > a",
        "a:lang(de, fr)",
        ":dir(ltr)",
        ":state(open)",
        ":-webkit-any(a, b)",
        "a /* comment ( */ b",
        "a\n, b",
        "日本",
        "#käse",
        "dialog:open",
    ],
)
def test_a_selector_that_browsers_take_passes(selector: str) -> None:
    assert selector_fault(selector) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "> a",
        ".a..b",
        "a[",
        "a]",
        "a)",
        "#",
        "#1a",
        "a,,b",
        "a b,",
        "a[href]@href",
        "//div[@id='x']",
        "text=Buy",
        "[data-x=1]",
        "[x='a]",
        "$x",
        "{",
        "a {color: red}",
        "<div>",
        ".1a",
        "a >> b",
        ":not()",
        ":has()",
        ":not(.a,)",
        ":not(..a)",
        ":is(a",
        "a:not(:nth-child(q))",
        "a*",
        "a + , b",
        "[data-x='a' =]",
        "\\" * 998 + "[",
        "a" + "\\31" * 400 + "@",
        ":nth-child(foo)",
        ":nth-child(2n of ..a)",
        "a" * 3000,
        ":not(" * 40 + "a" + ")" * 40,
    ],
)
def test_a_certainly_invalid_selector_is_reported(text: str) -> None:
    fault = selector_fault(text)
    assert fault

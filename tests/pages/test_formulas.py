"""Formulas that are made of elements say on one line what they say on several."""

import pytest

from awp_publish.pages import Budget, compile_som
from awp_publish.pages.markdown import write_markdown

URL = "https://paper.example/energy"
X, TWO = "<mi>x</mi>", "<mn>2</mn>"
SUM = "<mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow>"
FORMULAS = {
    f"<msup>{X}{TWO}</msup>": "x^2",
    f"<msub>{X}<mi>i</mi></msub>": "x_i",
    f"<msubsup>{X}<mi>i</mi>{TWO}</msubsup>": "x_i^2",
    f"<msup>{SUM}{TWO}</msup>": "(a+b)^2",
    f"<mfrac>{SUM}{TWO}</mfrac>": "(a+b)/2",
    f"<msqrt>{SUM}</msqrt>": "\u221a(a+b)",
    f"<mroot>{X}<mn>3</mn></mroot>": "(3)\u221a(x)",
    f"<munderover><mo>\u2211</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover>{X}": (
        "\u2211_(i=1)^nx"
    ),
    f"<mover>{X}<mo>\u00af</mo></mover><msup>{X}{TWO}</msup>": "x\u00afx^2",
    f"<mtable><mtr><mtd>{X}</mtd><mtd>{TWO}</mtd></mtr><mtr><mtd>{TWO}</mtd><mtd>{X}</mtd></mtr></mtable>": (
        "[x, 2; 2, x]"
    ),
    f"<semantics><msup>{X}{TWO}</msup><annotation encoding=application/x-tex>tex</annotation></semantics>": "x^2",
    f"<msup>{X}<mphantom>{TWO}</mphantom></msup>{TWO}": "x2",
    f"<msup>{X}{TWO}</msup><mspace></mspace><mtext>if</mtext>": "x^2 if",
    f"<msup>{X}</msup>{TWO}": "x2",
    f"{X}<mo>=</mo>{TWO}": "x=2",
}


@pytest.mark.parametrize("inner", FORMULAS)
def test_a_formula_is_written_on_one_line(inner: str) -> None:
    page = f"<p>Let <math>{inner}</math> be.</p>"
    assert write_markdown(page, URL) == f"Let `{FORMULAS[inner]}` be.\n"
    (region,) = compile_som(page, URL, Budget.FULL).document["regions"]
    assert region["elements"][0]["text"] == f"Let {FORMULAS[inner]} be."


def test_words_for_a_formula_come_before_its_elements() -> None:
    page = f"<p><math alttext='x squared'><msup>{X}{TWO}</msup></math></p>"
    assert write_markdown(page, URL) == "`x squared`\n"


def test_a_formula_that_is_nested_very_deeply_ends_somewhere() -> None:
    assert write_markdown("<math>" + f"<msup>{X}" * 3_000, URL)


def test_ruby_annotations_are_written_after_their_text() -> None:
    ruby = "<ruby>\u6f22<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>"
    assert write_markdown(f"<p>{ruby}</p>", URL) == "\u6f22(kan)\n"

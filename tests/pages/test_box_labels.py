"""Checkboxes and radio buttons whose labels have blocks in them, as tiles of plans and sizes do."""

import pytest

from awp_publish.pages.markdown import write_markdown

URL = "https://shop.example/plans"
LABELS = {
    "<label><input type=radio name=p value=1><div>Pro</div><div>$10</div></label>": "( ) `p`=`1` Pro $10",
    "<label><p>Pro</p><input type=radio name=p></label>": "( ) `p` Pro",
    "<label for=a><div>Pro</div></label><input type=radio id=a name=p>": "( ) `p` Pro",
    "<label for=a><div><input type=radio id=a name=p><label for=a></label></div>Pro</label>": "( ) `p` Pro",
    "<label><svg><g><path/></g></svg><input type=checkbox name=p> Pro</label>": "[ ] `p` Pro",
    "".join(f"<label><input type=checkbox name={name}><div>{name}</div></label>" for name in ("fast", "safe")): (
        "[ ] `fast` fast [ ] `safe` safe"
    ),
    "<label><input type=checkbox name=p><h3>Pro</h3><p>Ten</p></label>": "[ ] `p` Pro Ten\n\n### Pro\n\nTen",
    "<label><input type=checkbox name=p><div>Our <a href=/t>terms</a></div></label>": (
        "[ ] `p` Our terms\n\nOur [terms](https://shop.example/t)"
    ),
    "<label><div>Name</div><input name=n></label>": "Name\n\n[text field `n`]",
}


@pytest.mark.parametrize("html", LABELS)
def test_a_box_stands_with_the_text_of_its_label(html: str) -> None:
    assert write_markdown(html, URL) == f"{LABELS[html]}\n"


@pytest.mark.parametrize("how", ["hidden", "style=display:none", "style='opacity:0;position:absolute'"])
@pytest.mark.parametrize("kind", ["checkbox", "radio", "file"])
def test_a_field_that_a_click_on_its_label_operates_is_written_however_it_is_hidden(how: str, kind: str) -> None:
    written = write_markdown(f"<input type={kind} name=f id=f {how}><label for=f>Gift</label>", URL)
    assert "`f`" in written
    assert "Gift" in written


@pytest.mark.parametrize(
    "html",
    [
        "<input type=checkbox name=f id=f hidden aria-hidden=true><label for=f>Gift</label>",
        "<input type=checkbox name=f id=f hidden>Gift",
        "<input type=checkbox name=f id=f hidden><label for=f hidden>Gift</label>",
        "<input name=f id=f hidden><label for=f>Gift</label>",
        "<div hidden><input type=checkbox name=f id=f></div><label for=f>Gift</label>",
    ],
)
def test_a_field_that_nobody_can_operate_stays_hidden(html: str) -> None:
    assert "`f`" not in write_markdown(html, URL)

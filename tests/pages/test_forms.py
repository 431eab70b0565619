"""Forms: which stay with their item, what tells equal buttons apart, and what a request that sends one needs."""

import pytest

from awp_publish.pages import Budget, compile_som
from awp_publish.pages.markdown import write_markdown
from tests.pages.reading import URL, Element, compiled, elements_in, only, said

TEAS = ("Assam", "Darjeeling")


def add(sku: object) -> str:
    return f"<form action=/add method=post><input type=hidden name=sku value={sku}><button>Add</button></form>"


def buttons_in(html: str) -> list[Element]:
    return [element for element in elements_in(html) if element["role"] == "button"]


LISTINGS = {
    "cards": "".join(f"<div><h3>{tea}</h3><p>$9</p>{add(tea[0])}</div>" for tea in TEAS),
    "cards without anything around": "".join(f"<h3>{tea}</h3><p>$9</p>{add(tea[0])}" for tea in TEAS),
    "buttons before their names": "".join(f"<article>{add(tea[0])}<h3>{tea}</h3></article>" for tea in TEAS),
    "items of a list": "<ul>" + "".join(f"<li><span>{tea}</span> {add(tea[0])}" for tea in TEAS) + "</ul>",
    "rows": "<table><tr><th>Tea<th>" + "".join(f"<tr><td>{tea}<td>{add(tea[0])}" for tea in TEAS) + "</table>",
    "rows with headers": "<table>"
    + "".join(f"<tr><td>9<th scope=row>{tea}<td>{add(tea[0])}" for tea in TEAS)
    + "</table>",
    "rows of ARIA": "".join(f"<div role=row><h4>{tea}</h4><div>{add(tea[0])}</div></div>" for tea in TEAS),
}


@pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS)
def test_a_form_that_is_a_button_stays_with_its_item_and_says_which_it_is(listing):
    document = compiled(f"<main><h1>Teas</h1>{listing}</main>")
    assert [region["id"] for region in document["regions"]] == ["r_main"]
    buttons = [element for element in document["regions"][0]["elements"] if element["role"] == "button"]
    assert [(button["text"], button["label"]) for button in buttons] == [("Add", f"Add {tea}") for tea in TEAS]
    assert [button["attrs"] for button in buttons] == [
        {"formaction": "/add", "formmethod": "POST", "button_type": "submit", "description": f"Sends sku={tea[0]}"}
        for tea in TEAS
    ]


def test_hidden_values_tell_buttons_apart_where_nothing_else_does():
    row = "<tr><th>Tea</th><td>{}</td></tr>"
    rows = buttons_in("<table>" + row.format(add(1)) + row.format(add(2)) + "</table>")
    assert [row["label"] for row in rows] == ["Add Tea (sku=1)", "Add Tea (sku=2)"]
    assert [button["label"] for button in buttons_in(add(1) + add(2))] == ["Add (sku=1)", "Add (sku=2)"]
    secret = "<form method=post><input type=hidden name=csrf_token value=x7><button>Go</button></form>"
    assert "x7" not in str(compiled(secret * 2))


def test_a_button_without_a_double_says_no_more_than_its_text():
    assert said("<h2>Teas</h2><button>Add</button>") == [("heading", "Teas"), ("button", "Add")]


@pytest.mark.parametrize(
    ("html", "label"),
    [
        ("<section><h2>Contact</h2><p>Write</p><form><input name=q></form></section>", "Contact"),
        ("<form><h2>Sign in</h2><input name=q></form>", "Sign in"),
        ("<h1>Shop</h1><div><h2>Old</h2></div><div><h2>Search</h2><form><input name=q></form></div>", "Search"),
        ("<table><tr><th>Tea<th>Count<tr><td>Assam<td><form><input name=q></form></table>", "Assam"),
        ("<form id=order><h2>Sign in</h2><input name=q></form>", "order"),
        ("<h1>Shop</h1><footer><form><input name=q></form></footer>", None),
        ("<section><form><input name=q></form><h2>Later</h2></section>", None),
        ("<h1>Shop</h1><section><form><input name=q></form><h2>Later</h2></section>", "Shop"),
    ],
)
def test_a_form_without_a_name_is_called_after_the_nearest_heading_or_its_row(html, label):
    (form,) = [region for region in compiled(html)["regions"] if region["role"] == "form"]
    assert form.get("label") == label


def test_a_form_says_all_that_sending_it_needs():
    html = """<form action=/buy method=post><input name=n><select name=size><option value=s>Small</select>
    <div style="display:none"><input type=hidden name=utf8 value=yes></div>
    <input type=hidden name=sku value=7><input type=hidden name=csrfmiddlewaretoken value=x7>
    <button>Buy</button></form>"""
    (form,) = compiled(html)["regions"]
    sent = {
        element["attrs"]["name"]: element["attrs"] for element in form["elements"] if "name" in element.get("attrs", {})
    }
    assert (form["action"], form["method"]) == ("/buy", "POST")
    assert sent["size"]["options"] == [{"value": "s", "text": "Small", "selected": True}]
    assert sent["sku"] == {"input_type": "hidden", "name": "sku", "value": "7"}
    assert sent["utf8"]["value"] == "yes", "sent although what is around it is hidden"
    assert sent["csrfmiddlewaretoken"] == {
        "input_type": "hidden",
        "name": "csrfmiddlewaretoken",
        "description": "A secret of the session: take it from the page's own form.",
    }
    assert compiled(html)["meta"]["interactive_count"] == 3, "a hidden field is nothing to operate"


def test_a_form_that_says_nothing_is_sent_to_its_page_with_get():
    (form,) = compiled("<form><input name=q></form>")["regions"]
    assert (form["action"], form["method"]) == ("https://shop.example/page", "GET")


def test_a_button_elsewhere_says_which_form_it_sends():
    html = "<form id=f action=/x method=post></form><p>Ready?</p><button form=f>Send</button><button>Other</button>"
    attrs = {button["text"]: button["attrs"] for button in buttons_in(html)}
    assert attrs["Send"]["formaction"] == "/x"
    assert "formaction" not in attrs["Other"]


def test_addresses_are_those_of_the_base_of_the_page():
    html = "<base href=/b/><a href=x>x</a><a href=#y>y</a><img alt=i src=i.png><form action=go><input name=n></form>"
    document = compiled(html)
    assert [element.get("attrs", {}).get("href") for element in elements_in(html)][1:3] == [
        "https://shop.example/b/x",
        "#y",
    ]
    assert document["regions"][0]["action"] == "https://shop.example/b/go"
    assert "https://shop.example/b/i.png" in str(document)
    assert elements_in("<base href='http://['><a href=x>x</a>")[0]["attrs"]["href"] == "x"


@pytest.mark.parametrize(
    ("html", "role"),
    [
        ("<a href=/x role=heading>x</a>", "link"),
        ("<a href=/x role=img>x</a>", "link"),
        ("<button role=heading>x</button>", "button"),
        ("<input type=checkbox role=group>", "checkbox"),
        ("<select role=group><option>x</select>", "select"),
        ("<a href=/x role=button>x</a>", "button"),
        ("<a href=/x role=tab>x</a>", "button"),
        ("<h2 role=link>x</h2>", "link"),
    ],
)
def test_an_operable_element_keeps_its_role_unless_the_given_one_is_operable_too(html, role):
    assert only(html)["role"] == role
    if "href" in html:
        assert only(html)["attrs"]["href"] == "/x"


def test_a_button_is_of_the_item_that_a_picture_shows():
    html = "".join(f"<div><img src=/x alt='{tea} tin'><p>$9</p>{add(tea[0])}</div>" for tea in TEAS)
    assert [button["label"] for button in buttons_in(html)] == ["Add Assam tin $9", "Add Darjeeling tin $9"]


def test_a_control_outside_of_its_form_says_in_markdown_of_which_it_is():
    html = """<form id=buy action=/buy method=post><input name=n></form>
    <p>Later <input form=buy name=note> <button form=buy name=act value=now>Go</button>
    <button form=buy formaction=/save>Save</button> <button form=none>No</button>"""
    written = write_markdown(html, URL)
    form = "of the form `POST https://shop.example/buy`"
    assert f"[text field `note`, {form}]" in written
    assert f"[button `act`=`now`: Go, {form}]" in written
    assert "[button: Save, `POST https://shop.example/save`]" in written
    assert "[button: No]" in written


def test_many_buttons_of_a_form_with_many_hidden_fields_say_them_once():
    hidden = "".join(f"<input type=hidden name=field{number} value={number}>" for number in range(300))
    html = f"<form action=/go method=post>{hidden}" + "<button>Go</button>" * 300 + "</form>"
    assert len(compile_som(html, URL, Budget.FULL).dump()) < 10 * len(html)
    assert len(write_markdown(html, URL)) < 3 * len(html)
    first, second = [element for element in elements_in(html, Budget.FULL) if element["role"] == "button"][:2]
    assert "field0=0, field1=1" in first["attrs"]["description"]
    assert second["attrs"]["description"] == "Sends the same hidden fields as the first button of its form."


def test_forms_of_a_list_are_called_after_their_items():
    item = "<li><form action=/todo/{0} method=post><input type=checkbox name=done></form><label>{0}</label></li>"
    html = f"<h1>To do</h1><form action=/todo><input name=text></form><ul>{''.join(map(item.format, TEAS))}</ul>"
    labels = {
        region["label"]: region["action"]
        for region in compile_som(html, URL).document["regions"]
        if region["role"] == "form"
    }
    assert labels == {"To do": "/todo", **{tea: f"/todo/{tea}" for tea in TEAS}}


def test_the_heading_of_a_list_is_not_that_of_its_first_item():
    items = "".join(f"<div><p>{tea}</p>{add(tea[0])}</div>" for tea in TEAS)
    assert [button["label"] for button in buttons_in(f"<main><h1>Teas</h1>{items}</main>")] == [
        "Add Assam",
        "Add Darjeeling",
    ]


def test_a_form_in_a_shadow_root_says_what_sending_it_needs():
    card = (
        "<tea-card><template shadowrootmode=open><h3><slot></slot></h3><form action=/add method=post>"
        "<input type=hidden name=sku value={1}><input name=amount type=number min=1><button>Add</button></form>"
        "</template>{0}</tea-card>"
    )
    html = "<main><h1>Teas</h1>" + "".join(card.format(tea, number) for number, tea in enumerate(TEAS)) + "</main>"
    for number, (tea, host) in enumerate(
        zip(TEAS, (element for element in elements_in(html) if "shadow" in element), strict=True)
    ):
        inside = host["shadow"]["elements"]
        (button,) = [item for item in inside if item["role"] == "button"]
        assert button["label"] == f"Add {tea}"
        assert [button["attrs"][name] for name in ("formaction", "formmethod")] == ["/add", "POST"]
        assert button["attrs"]["description"] == f"Sends sku={number}"
        assert [item["attrs"]["min"] for item in inside if item["role"] == "text_input"] == [1]


def test_fields_outside_of_a_form_that_has_only_a_button_belong_to_it():
    html = """<p><label><input type=radio name=size value=s form=buy> Small</label></p>
    <label>How many <input name=n form=buy></label>
    <form id=buy action=/buy method=post><input type=hidden name=sku value=1><button>Buy</button></form>
    <form id=other action=/other><button>Other</button></form>"""
    fields = [element["attrs"]["form"] for element in elements_in(html) if element["role"] in ("radio", "text_input")]
    assert fields == ["buy", "buy"]
    assert [element["attrs"].get("form") for element in elements_in(html) if element["role"] == "button"] == [
        "buy",
        None,
    ]
    written = write_markdown(html, URL)
    assert "( ) `size`=`s` [of the form `POST https://shop.example/buy`] Small" in written


def test_a_button_that_is_a_picture_says_its_field_in_markdown():
    html = "<form action=/pay method=post><input name=tip><input type=image name=pay alt='Pay now' src=/pay.gif></form>"
    assert "[button `pay`: Pay now]" in write_markdown(html, URL)


def test_a_button_is_not_called_after_the_buttons_beside_it():
    forms = "<form action=/done/{0}><button>Done</button></form><form action=/delete/{0}><button>Delete</button></form>"
    html = f"<ul>{''.join(f'<li><span>{tea}</span><div>{forms.format(tea)}</div></li>' for tea in TEAS)}</ul>"
    said = [button["label"] for button in buttons_in(html)]
    assert said == ["Done Assam", "Delete Assam", "Done Darjeeling", "Delete Darjeeling"]

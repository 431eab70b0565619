"""Elements: roles, names, attributes, states, tables, lists, shadow roots."""

import pytest

from tests.pages.reading import compiled, elements_in, only, said

ROLES = {
    "<a href=/x>n</a>": ("link", ["click"]),
    "<a>n</a>": ("paragraph", None),
    "<button>n</button>": ("button", ["click"]),
    "<input type=submit value=n>": ("button", ["click"]),
    "<input type=image alt=n>": ("button", ["click"]),
    "<input aria-label=n>": ("text_input", ["type", "clear"]),
    "<input type=DATE aria-label=n>": ("text_input", ["type", "clear"]),
    "<input type=checkbox aria-label=n>": ("checkbox", ["toggle"]),
    "<input type=radio aria-label=n>": ("radio", ["select"]),
    "<textarea aria-label=n></textarea>": ("textarea", ["type", "clear"]),
    "<select aria-label=n></select>": ("select", ["select"]),
    "<details><summary>n</summary></details>": ("details", ["toggle"]),
    "<h3>n</h3>": ("heading", None),
    "<p>n</p>": ("paragraph", None),
    "<img alt=n aria-label=n src=x>": ("image", None),
    "<svg role=img aria-label=n></svg>": ("image", None),
    "<svg role=img><title>n</title></svg>": ("image", None),
    "<hr aria-label=n>": ("separator", None),
    "<iframe title=n src=x></iframe>": ("iframe", None),
    "<fieldset aria-label=n></fieldset>": ("group", None),
    "<div role='unknown switch' aria-label=n></div>": ("checkbox", ["toggle"]),
    "<div role=menuitemradio aria-label=n></div>": ("radio", ["select"]),
    "<div role=searchbox aria-label=n></div>": ("text_input", ["type", "clear"]),
    "<div role=listbox aria-label=n></div>": ("select", ["select"]),
    "<li role=tab>n</li>": ("button", ["click"]),
    "<div role=heading aria-level=4>n</div>": ("heading", None),
    "<a href=/x role=treeitem>n</a>": ("link", ["click"]),
    "<input role=combobox aria-label=n>": ("text_input", ["type", "clear"]),
    "<span role=link>n</span>": ("link", ["click"]),
    "<map><area href=/x alt=n></map>": ("link", ["click"]),
    "<div contenteditable aria-label=n></div>": ("text_input", ["type", "clear"]),
    "<span contenteditable=plaintext-only>n</span>": ("text_input", ["type", "clear"]),
    "<div contenteditable=false>n</div>": ("paragraph", None),
    "<h2 contenteditable>n</h2>": ("heading", None),
}


@pytest.mark.parametrize(("html", "expected"), ROLES.items())
def test_elements_have_roles_and_actions(html, expected):
    element = only(html)
    assert (element["role"], element.get("actions")) == expected
    assert "n" in (element.get("text"), element.get("label"))


HIDDEN = [
    "<p hidden>x</p>",
    "<p hidden=until-found>x</p>",
    "<div aria-hidden=' TRUE'><p>x</p></div>",
    "<p style='display : NONE'>x</p>",
    "<p style='visibility:hidden!important'>x</p>",
    "<p style='opacity:0'>x</p>",
    "<p style='color:red;font-size:0px'>x</p>",
    "<p style='height:0;overflow:hidden'>x</p>",
    "<p style='position:absolute;clip:rect(0,0,0,0)'>x</p>",
    "<img alt='' src=x>",
    "<img role=presentation alt=x src=x>",
    "<svg><text>x</text></svg>",
    "<script>x</script><style>p{}</style><template><p>x</p></template><noscript>x</noscript><!-- x -->",
    "<style>.a{display:none}</style><p class='b a'>x</p>",
    "<style>p{display:none}</style><p>x</p>",
    "<style>b{display:none}</style><b>x</b>",
    "<style>P.a{display:none}</style><p class=a>x</p>",
    "<style>p, div#a { VISIBILITY : hidden }</style><p id=a>x</p>",
    "<input type=hidden value=x>",
    "<datalist><option>x</datalist>",
]


@pytest.mark.parametrize("html", HIDDEN)
def test_invisible_elements_are_left_out(html):
    assert elements_in(html) == []


SHOWN = [
    "<p style='opacity:0.5'>x</p>",
    "<p style='opacity:.05'>x</p>",
    "<p style='line-height:0;overflow:hidden'>x</p>",
    "<p style='max-height:0.5em;overflow:hidden'>x</p>",
    "<p style='clip:rect(0,0,0,0)'>x</p>",
    "<p aria-hidden=false>x</p>",
    "<p class=hidden>x</p>",
    "<style>.a:hover{display:none}</style><p class=a>x</p>",
    "<style>b.a{display:none}</style><p class=a>x</p>",
    "<style>p{display:none} p{display:block}</style><p>x</p>",
    "<style>html, body{visibility:hidden}</style><p>x</p>",
    "<style>*, , >{display:none}</style><p>x</p>",
    "<style>.a.b{display:none}</style><p class=a>x</p>",
    "<style>.m .a{display:none}</style><p class=a>x</p>",
    "<style>@media print{.a{display:none}}</style><p class=a>x</p>",
    "<style media=print>.a{display:none}</style><p class=a>x</p>",
    "<style>.a{display:none} .a{display:block}</style><p class=a>x</p>",
    "<style>/* .a{display:none} */</style><p class=a>x</p>",
]


@pytest.mark.parametrize("html", SHOWN)
def test_visible_elements_are_kept(html):
    assert said(html) == [("paragraph", "x")]


NAMES = {
    "<b id=a>A</b><i id=b>B</i><input aria-labelledby='a no b' aria-label=no>": "A B",
    "<input aria-label=' A \n B ' title=no>": "A B",
    "<label for=f>A <b>B</b></label><input id=f title=no>": "A B",
    "<label for=f><img src=x alt='A B'></label><input id=f>": "A B",
    "<b id=a><svg><title>A B</title></svg></b><input aria-labelledby=a>": "A B",
    "<label>A B <select title=no><option>x</select></label>": "A B",
    "<label>A B <select id=s><option>x</select></label>": "A B",
    "<input title='A B' placeholder=no>": "A B",
    "<input placeholder='A B'>": "A B",
    "<input type=reset value='A B'>": "A B",
    "<input type=image alt='A B' src=x>": "A B",
    "<a href=/><img src=x alt='A B'></a>": "A B",
    "<button><svg aria-hidden=false role=img><title>A B</title></svg></button>": "A B",
    "<button><svg><title>A B</title></svg></button>": "A B",
    "<a href=/><svg aria-label='A B'></svg></a>": "A B",
    "<button><svg aria-hidden=true><title>no</title></svg><i aria-label='A B'></i></button>": "A B",
    "<div role=button><img src=x alt='A B'></div>": "A B",
    "<map><area href=/ alt='A B'></map>": "A B",
    "<fieldset><legend>A <b>B</b></legend></fieldset>": "A B",
    "<table><caption>A B</caption><tr><td>x</table>": "A B",
}


@pytest.mark.parametrize(("html", "name"), NAMES.items())
def test_elements_have_names(html, name):
    assert elements_in(html)[-1]["label"] == name


@pytest.mark.parametrize("html", ["<button aria-label='Save'>save</button>", "<a href=/ title='x y'>x\n y</a>"])
def test_a_name_that_is_the_text_is_not_said_twice(html):
    assert "label" not in only(html)


ATTRS = {
    "<a href=/x role=button>y</a>": {"href": "/x", "source_role": "button"},
    "<a href=/x target=_blank rel=noopener hreflang=de type=text/x referrerpolicy=origin download title=t>y</a>": {
        "href": "/x",
        "target": "_blank",
        "rel": "noopener",
        "hreflang": "de",
        "type": "text/x",
        "referrerpolicy": "origin",
        "download": True,
    },
    "<input type=number name=n value=3 min=1 max=ten step=any required readonly disabled autofocus>": {
        "input_type": "number",
        "name": "n",
        "value": "3",
        "min": 1,
        "max": "ten",
        "step": "any",
        "required": True,
        "readonly": True,
        "disabled": True,
    },
    "<input type=radio name=g checked>": {"input_type": "radio", "group": "g", "name": "g", "checked": True},
    "<input type=file accept=image/* capture multiple>": {
        "input_type": "file",
        "accept": "image/*",
        "capture": True,
        "multiple": True,
    },
    "<textarea placeholder=p maxlength=10>\nold</textarea>": {"value": "old", "placeholder": "p", "maxlength": 10},
    "<button type=MENU value=v formnovalidate popovertarget=m>b</button>": {
        "button_type": "submit",
        "value": "v",
        "formnovalidate": True,
        "popovertarget": "m",
    },
    "<h4>x</h4>": {"level": 4},
    "<img src=/i.png alt=A>": {"alt": "A", "src": "/i.png"},
    "<details open><summary>More</summary></details>": {"open": True, "summary": "More"},
    "<section aria-label=S><p hidden></section><p>x</p>": None,
    "<iframe srcdoc='<p>x</p>' sandbox=a allow=b width=1 height=2 name=n></iframe>": {
        "has_srcdoc": True,
        "srcdoc_preview": "<p>x</p>",
        "name": "n",
        "sandbox": "a",
        "allow": "b",
        "width": "1",
        "height": "2",
    },
    "<p contenteditable spellcheck=false draggable=auto tabindex=-1 accesskey=k data-testid=t role=note>x</p>": {
        "contenteditable": True,
        "spellcheck": False,
        "draggable": "auto",
        "tabindex": -1,
        "accesskey": "k",
        "test_id": "t",
        "source_role": "note",
    },
    "<button aria-pressed=mixed aria-expanded=false aria-haspopup=menu aria-current=true aria-activedescendant=x>b": {
        "button_type": "submit",
        "aria": {"expanded": False, "haspopup": "menu", "current": True, "active_descendant": "x"},
    },
    "<div role=button aria-disabled=true aria-required=TRUE aria-readonly=false>b</div>": {
        "source_role": "button",
        "disabled": True,
        "required": True,
        "aria": {"disabled": True, "readonly": False},
    },
}


@pytest.mark.parametrize(("html", "attrs"), [(html, attrs) for html, attrs in ATTRS.items() if attrs is not None])
def test_elements_have_attributes(html, attrs):
    assert only(html)["attrs"] == attrs


def test_a_select_says_its_options_and_what_is_selected():
    html = (
        "<select name=s><option disabled>a<optgroup label=G disabled><option value=2>b</optgroup><option>c d</select>"
    )
    attrs = only(html)["attrs"]
    assert attrs["options"] == [
        {"value": "a", "text": "a", "disabled": True},
        {"value": "2", "text": "b", "group": "G", "disabled": True},
        {"value": "c d", "text": "c d", "selected": True},
    ]
    assert attrs["value"] == "c d"
    several = only("<select multiple size=3><option selected>a<option>b<option selected>c</select>")["attrs"]
    assert (several["selected_values"], several["multiple"], several["size"]) == (["a", "c"], True, 3)


def test_disabled_fieldsets_and_inert_parts_disable_their_controls():
    controls = elements_in(
        "<fieldset disabled><input><a href=/>x</a></fieldset><div inert><p><button>y</button></p></div>"
    )
    assert [control["attrs"].get("disabled") for control in controls] == [True, True, None, None, None]
    assert [control["attrs"].get("inert") for control in controls if control["role"] in ("button", "paragraph")] == [
        True,
        True,
    ]


def test_a_description_is_read_where_it_is_referred_to():
    assert (
        elements_in("<p id=d>Ten <b>digits</b></p><input aria-describedby=d>")[-1]["attrs"]["description"]
        == "Ten digits"
    )


def test_hints_are_from_the_words_of_the_specification():
    assert only("<button class='Btn-PRIMARY is-loading discard btn-lg'>x</button>")["hints"] == [
        "large",
        "loading",
        "primary",
    ]


def test_a_table_of_data_says_headers_and_rows_and_what_can_be_operated_follows():
    html = (
        "<table><thead><tr><th>Name<th colspan=2>Price</thead><tr><th>Tea<td>2<td>3 <a href=/t>buy</a>"
        "<tr><td hidden>x<td><h3>Soon</h3><input aria-label=n></table>"
    )
    table, *others = elements_in(html)
    assert table["attrs"] == {"headers": ["Name", "Price", "Price"], "rows": [["Tea", "2", "3 buy"], ["Soon"]]}
    assert [other["role"] for other in others] == ["link", "heading", "text_input"]


def test_cells_over_several_columns_and_rows_are_said_in_each_of_them():
    html = (
        "<table><thead><tr><th rowspan=2>A<th>B</thead><tr><td rowspan=2>a<td rowspan=9 colspan=2>b<td>c"
        "<tr><td>d<tr><td>e<tr></table>"
    )
    (table,) = elements_in(html)
    assert table["attrs"] == {
        "headers": ["A", "B"],
        "rows": [["a", "b", "b", "c"], ["a", "b", "b", "d"], ["e", "b", "b"]],
    }


LAYOUT = [
    "<table border=0><tr><td>a<td>b<td>c</table>",
    "<table><tr><td>a<td>b</table>",
    "<table role=presentation><tr><th>a<td>b<td>c</table>",
    "<table><tr><td>a<td>b<td><table><tr><td>c<td>d<td>e</table></table>",
    "<table><tr><td>a<td>b<td><section>c</section></table>",
]


@pytest.mark.parametrize("html", LAYOUT)
def test_a_table_that_arranges_is_not_there(html):
    assert {element["role"] for element in elements_in(html)} <= {"paragraph", "section"}


def test_lists_say_their_items_and_lists_with_a_structure_are_taken_apart():
    simple, link = elements_in("<ol><li>One <a href=/1>x</a><li> <li>Two<ul><li>deep</ul></ol>")
    assert simple["attrs"] == {"ordered": True, "items": [{"text": "One x"}, {"text": "Two deep"}]}
    assert link["role"] == "link"
    assert said("<ul><li><h3>A</h3><p>a</p><li><h3>B</h3>b</ul>") == [
        *[("heading", "A"), ("paragraph", "a")],
        *[("heading", "B"), ("paragraph", "b")],
    ]


def test_controls_in_links_and_paragraphs_are_not_lost():
    assert said("<p>Read <a href=/a>this <img src=i alt=icon></a> or <button>that</button></p>") == [
        *[("paragraph", "Read this or that"), ("link", "this"), ("button", "that")],
    ]
    assert said("<a href=/a><h3>Title</h3><p>More</p></a>") == [("link", "Title More"), ("heading", "Title")]
    assert said("<details><summary>Sum</summary><p>In</p><button>Go</button></details>") == [
        *[("details", "Sum"), ("paragraph", "In"), ("button", "Go")],
    ]


def test_texts_of_blocks_are_parted():
    assert only("<button><div>One</div><div>Two</div>Three<br>Four</button>")["text"] == "One Two Three Four"


def test_a_root_within_a_root_has_no_host():
    root = "<template shadowrootmode=open>"
    assert said(f"<my-a>{root}<p>a</p>{root}<p>b</p></template></template></my-a>") == [
        ("section", ""),
        ("paragraph", "a"),
    ]


def test_a_paragraph_of_nothing_is_none_in_a_shadow_root_too():
    assert said("<my-a><template shadowrootmode=open><p> </p><p>a</p></template></my-a>") == [
        *[("section", ""), ("paragraph", "a")],
    ]


def test_shadow_roots_are_with_their_hosts():
    html = (
        "<my-card class=x>light<template shadowrootmode=open><h2>T</h2>text<my-b><template shadowrootmode=closed>"
        "<button>B</button></template></my-b><slot></slot></template></my-card>"
    )
    host, light = elements_in(html)[0], elements_in(html)[-1]
    assert (host["role"], light["text"]) == ("section", "light")
    heading, text, inner = host["shadow"]["elements"]
    assert (heading["text"], text["text"], inner["shadow"]["mode"]) == ("T", "text", "closed")
    assert compiled(html)["meta"] | {"html_bytes": 0, "som_bytes": 0} == {
        "html_bytes": 0,
        "som_bytes": 0,
        "element_count": 6,
        "interactive_count": 1,
    }


def test_ids_of_the_page_are_kept():
    assert only("<p id=' intro '>x</p>")["html_id"] == "intro"

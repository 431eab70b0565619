"""Names of elements (accname 1.2, HTML-AAM): cases of our own, written after the published tests."""

import pytest

from awp_publish.pages import Budget
from awp_publish.pages.markdown import write_markdown
from tests.pages.reading import URL, compiled, elements_in, said

NAMED: dict[str, tuple[str, str]] = {
    "content": ("<a href=/>Teas</a>", "Teas"),
    "aria-label before content": ("<a href=/ aria-label=Teas>T</a>", "Teas"),
    "aria-label of spaces is none": ("<button aria-label=' '>Go</button>", "Go"),
    "aria-labelledby before aria-label": ("<b id=x>Teas</b><button aria-labelledby=x aria-label=y>z</button>", "Teas"),
    "several references": ("<b id=x>Green</b><b id=y>tea</b><button aria-labelledby='x y'>z</button>", "Green tea"),
    "a reference to what is hidden": ("<b id=x hidden>Teas</b><button aria-labelledby=x>z</button>", "Teas"),
    "a reference to what has a name": ("<b id=x aria-label=Teas>y</b><button aria-labelledby=x>z</button>", "Teas"),
    "a reference to an image": ("<img id=x alt=Teas><button aria-labelledby=x>z</button>", "Teas"),
    "a reference to a field": ("<input id=x value=Teas aria-label=''><button aria-labelledby=x>z</button>", "Teas"),
    "an image beside text": ("<a href=/><img alt='Widget Pro'><span>$49.99</span></a>", "Widget Pro $49.99"),
    "an image within text": ("<a href=/>Buy <img alt=tea> now</a>", "Buy tea now"),
    "an image alone": ("<a href=/><img alt=Teas></a>", "Teas"),
    "a drawing with a title": ("<button><svg><title>Search</title></svg></button>", "Search"),
    "a label within": ("<button>Buy <span aria-label=tea>x</span></button>", "Buy tea"),
    "a title within": ("<button>Buy <i title=tea></i></button>", "Buy tea"),
    "a field within a label": ("<label><input type=checkbox> Flash <input value=3> times</label>", "Flash 3 times"),
    "a choice within a label": (
        "<label><input type=checkbox> Flash <select><option>1<option selected>2</select> times</label>",
        "Flash 2 times",
    ),
    "a slider within a label": (
        "<label><input type=checkbox> At <input type=range aria-valuetext=half value=5></label>",
        "At half",
    ),
    "a label by id": ("<label for=x>Name</label><input id=x>", "Name"),
    "two labels": ("<label for=x>First</label><label for=x>name</label><input id=x>", "First name"),
    "a label before a title": ("<label for=x>Name</label><input id=x title=T placeholder=P>", "Name"),
    "a title before a placeholder": ("<input title=T placeholder=P>", "T"),
    "a placeholder": ("<input placeholder=P>", "P"),
    "submit by value": ("<input type=submit value=Buy>", "Buy"),
    "submit": ("<input type=submit>", "Submit"),
    "reset": ("<input type=reset>", "Reset"),
    "an image that submits": ("<input type=image alt=Buy src=x>", "Buy"),
    "an image that submits and says nothing": ("<input type=image src=x>", "Submit"),
    "a legend": ("<fieldset title=T><legend>Size</legend><input></fieldset>", "Size"),
    "a caption": ("<table title=T><caption>Teas</caption><tr><th>a<tr><td>b</table>", "Teas"),
    "a heading with an image": ("<h2>Our <img alt=teas></h2>", "Our teas"),
    "a hidden part says nothing": ("<button>Buy <span hidden>x</span><b>tea</b></button>", "Buy tea"),
    "blocks are apart": ("<button><div>Buy</div><div>tea</div><img alt=''></button>", "Buy tea"),
    "inline parts are not": ("<button><b>B</b>uy<img alt=''></button>", "Buy"),
    "a heading by its role with an image": ("<div role=heading>Our <img alt=teas></div>", "Our teas"),
    "a label that is called otherwise": ("<label for=x aria-label=Name>n</label><input id=x>", "Name"),
    "a reference within": ("<b id=x>tea</b><a href=/>Buy <span aria-labelledby=x>y</span></a>", "Buy tea"),
    "a reference is followed once": (
        "<b id=x aria-labelledby=y>Teas</b><b id=y aria-labelledby=x>n</b><button aria-labelledby=x>z</button>",
        "Teas",
    ),
    "references in a circle": (
        "<span id=x>a <b aria-labelledby=x>b</b></span><button>Go <i aria-labelledby=x>y</i></button>",
        "Go a b",
    ),
    "a reference to a drawing": (
        "<svg id=x role=img><title>Teas</title></svg><a href=/ aria-labelledby=x>y</a>",
        "Teas",
    ),
    "a reference to a table": (
        "<table id=x><caption>Teas<tr><td>y<td>z</table><button aria-labelledby=x>w</button>",
        "Teas",
    ),
    "a reference to a group": (
        "<button aria-labelledby=x>y</button><p></p><fieldset id=x><legend>Teas</legend></fieldset>",
        "Teas",
    ),
    "a reference to a labelled field": (
        "<button aria-labelledby=x>y</button><p><label for=x>Tea</label><input id=x>",
        "Tea",
    ),
    "a text area within a label": ("<label><input type=checkbox> Note<textarea>it</textarea></label>", "Note it"),
    "a name of a frame": ("<iframe src=/x title=Map></iframe>", "Map"),
}


@pytest.mark.parametrize(("html", "name"), NAMED.values(), ids=NAMED)
def test_an_element_is_called(html, name):
    wanted = [element for element in elements_in(html) if element["role"] not in ("paragraph", "image")]
    found = wanted[0] if "label>" in html or "fieldset>" in html else wanted[-1]
    assert name in (found.get("label"), found.get("text"), found.get("attrs", {}).get("legend"))


FIELDS = ("text", "password", "checkbox", "radio", "file", "image")
HIDING = (
    'style="display: none"',
    'style="visibility: hidden"',
    'style="visibility:collapse"',
    "aria-hidden=true",
    "hidden",
)
NAMED_ROLES = (
    "alert application cell document feed figure grid group heading img link list listbox log menu menubar meter note "
    "progressbar radiogroup region row rowgroup scrollbar searchbox separator slider spinbutton status switch table "
    "tablist tabpanel timer toolbar tooltip tree treegrid treeitem"
)
NAMED_TAGS = "address blockquote div dl fieldset figure pre"
TYPED = "color date datetime-local email file month number password range search tel text time url week"
COMBOBOX = "<div role=combobox{}><div role=textbox></div>{}</div>"
LISTBOX = "<ul role=listbox{}><li role=option>one <li role=option aria-selected=true>two </ul>"
MIXED = """<i aria-hidden=true>Not</i> <b>We</b> sell
<div><img src=x title=x alt="" role=presentation></div>
<span role=presentation aria-label=fine><b aria-label=x>y</b></span>
<b>tea</b> (loose) <span class=off><i>and coffee</i></span>"""

COMPUTED: dict[str, str] = {
    # In a label, what is a control says its value, and a menu nothing.
    **{
        f"<input type={kind} id=t><label for=t>Brew {part} please</label>": said
        for kind in FIELDS
        for part, said in (
            ("<input value=green>", "Brew green please"),
            ("<select><option>one<option selected>two</select>", "Brew two please"),
            ("<select role=menu><option role=menuitem selected>one</select>", "Brew please"),
            ("<span role=menu><b role=menuitem aria-selected=true>one</b></span>", "Brew please"),
            ("<div role=spinbutton aria-valuetext=Monday aria-valuenow=4></div>", "Brew Monday please"),
            ("<div role=spinbutton aria-valuenow=4></div>", "Brew 4 please"),
            ("<input role=slider type=range value=5 aria-valuenow=5>", "Brew 5 please"),
            ("<div role=textbox contenteditable>two</div>", "Brew two please"),
            (COMBOBOX.format("", LISTBOX.format("")), "Brew two please"),
        )
    },
    # A label that is hidden is a label, and what is hidden in a label that is not is none.
    **{f"<label for=t {how}>Tea <i {how}>leaf</i></label><input id=t>": "Tea leaf" for how in HIDING},
    **{
        f"<label {how}>Tea<input id=u></label><label for=t>Tea <i {how}>leaf</i></label><input id=t>": "Tea"
        for how in HIDING
    },
    **{
        f"<button id=t aria-labelledby=x></button><b id=x {how}>Tea <i {how}>leaf</i></b>": "Tea leaf" for how in HIDING
    },
    **{
        f"<button id=t aria-labelledby=x></button><p {how}><b id=x>Tea <i {how}>leaf</i></b>": "Tea leaf"
        for how in HIDING
    },
    **{f"<button id=t aria-labelledby=x></button><b id=x>Tea <i {how}>leaf</i></b>": "Tea" for how in HIDING},
    # Labels in the order of the page, whichever way they refer.
    "<label for=t>A cup</label> <label>of <input type=checkbox id=t> tea</label>": "A cup of tea",
    "<label>of <input type=checkbox id=t> tea</label> <label for=t>a cup</label>": "of tea a cup",
    "<label for=t title=Tea><input id=t title=T></label>": "Tea",
    "<label for=t>T<i>e<b>a</b></i><br>or<div>leaf<div>s<b>?</b></div></div></label><input id=t>": "Tea or leaf s?",
    # What another element owns is a part of it, once.
    f"<label for=t>Brew <b aria-owns=x>cup</b> now</label><input id=t><div id=x>{LISTBOX.format('')}": (
        "Brew cup two now"
    ),
    f"<input id=t><label for=t>Brew <b aria-owns=x>cup</b> now</label>{COMBOBOX.format(' id=x aria-owns=y', '')}"
    f"{LISTBOX.format(' id=y')}": "Brew cup two now",
    "<input id=t><label for=t>Brew <b id=y aria-owns=x>cup</b></label><div id=x aria-owns=y>now</div>": "Brew cup now",
    # Content, with what is called otherwise in it.
    f"<style>.off {{ display: none }}</style><div id=t role=link tabindex=0>{MIXED}</div>": "We sell fine tea (loose)",
    f"<style>.off {{ display: none }}</style><input id=t><label for=t>{MIXED}</label>": "We sell fine tea (loose)",
    f"<style>.off {{ display: none }}</style><input id=t aria-labelledby=x><div id=x>{MIXED}</div>": (
        "We sell fine tea (loose)"
    ),
    "<h2 id=t>From <input role=combobox title=T value=Assam></h2>": "From Assam",
    "<h2 id=t>From <div role=combobox><div role=textbox>Assam</div></div></h2>": "From Assam",
    "<h2 id=t>tea<!-- x -->pot</h2>": "teapot",
    # The other spelling, after that of the specification.
    "<b id=x>Tea</b><a id=t href=/ aria-labeledby=x>y</a>": "Tea",
    "<b id=x>Tea</b><button id=t aria-labeledby=x aria-label=z>y</button>": "Tea",
    "<b id=x>Tea</b><div id=t role=group aria-labeledby=x>y</div>": "Tea",
    "<b id=x>Tea</b><b id=z>Pot</b><a id=t href=/ aria-labelledby=x aria-labeledby=z>y</a>": "Tea",
    "<button id=t aria-labelledby=x aria-label=Tea><b id=x><i hidden>y</i></b></button>": "Tea",
    "<div id=t role=group aria-label=Our aria-labelledby='t x'><h2 id=x>teas</h2></div>": "Our teas",
    # Pictures and drawings.
    "<input value=green id=x><img id=t aria-label=Tea aria-labelledby='t x' alt=a title=b>": "Tea green",
    "<input value=green id=x><img id=t aria-label='' aria-labelledby='t x' alt='' title=Tea>": "Tea green",
    "<img id=t alt='' aria-label=Tea>": "Tea",
    "<img id=t role=presentation aria-labelledby=x><b id=x>Tea</b>": "Tea",
    "<svg id=t aria-labelledby=x><title>y</title></svg><b id=x>Tea</b>": "Tea",
    "<svg id=t aria-label=Tea></svg>": "Tea",
    # Parts of a page without a role in SOM.
    **{f"<div id=t role={role} aria-label=Teas>x</div>": "Teas" for role in NAMED_ROLES.split()},
    **{f"<{tag} id=t aria-label=Teas>x</{tag}>": "Teas" for tag in NAMED_TAGS.split()},
}


def test_elements_are_called_as_accname_says():
    wrong = {}
    for html, name in COMPUTED.items():
        found = [element for element in elements_in(html) if element.get("html_id") == "t"]
        called = [finding.get("label") or finding.get("text") for finding in found]
        if called != [name]:
            wrong[html] = called
    assert wrong == {}


@pytest.mark.parametrize(
    "html",
    [
        "<div role=presentation aria-label=x>y</div>",
        "<div aria-label=' '>y</div>",
        "<div aria-label=x></div>",
        "<div aria-labelledby=nothing>y</div>",
        "<ul><li aria-label=x>y</ul>",
        "<table><tr aria-label=x><th>y<td>z<tr><th>y<td>z</table>",
        "<div title=x>y</div>",
    ],
)
def test_a_name_makes_no_element_of_what_is_none(html):
    assert "section" not in [element["role"] for element in elements_in(html)]


def test_an_image_is_called_what_it_shows_and_its_title_is_told_beside():
    (image,) = elements_in("<img alt=Tea title='Click to enlarge' src=/x>")
    assert "label" not in image
    assert image["attrs"] == {"alt": "Tea", "src": "/x", "title": "Click to enlarge"}


@pytest.mark.parametrize(
    ("html", "value"),
    [
        ("<div role=combobox tabindex=0><span> Assam </span></div>", "Assam"),
        (COMBOBOX.format("", LISTBOX.format("")), "two"),
        (LISTBOX.format(""), "two"),
    ],
)
def test_a_choice_made_of_other_elements_says_what_is_chosen(html, value):
    assert next(element for element in elements_in(html) if element["role"] == "select")["attrs"]["value"] == value


def test_names_of_many_elements_that_own_each_other_take_no_more_than_their_length():
    html = "".join(f"<h2 id=h{n} aria-owns='h{n + 1} h{n + 2} h0'>x<b>y</b></h2>" for n in range(2_000))
    assert all(len(element.get("label", "")) <= 1_000 for element in elements_in(html, Budget.FULL))


ROLES = {
    "<search><a href=/>x</a></search>": "r_search",
    "<div role=search><a href=/>x</a></div>": "r_search",
    "<div role=form aria-label=x><input></div>": "r_form",
    "<div role=region aria-label=x><p>y</div>": "section",
    "<div role=article aria-label=x><p>y</div>": "section",
    "<div role=paragraph>y</div>": "paragraph",
    "<div role=heading aria-level=3>y</div>": "heading",
    "<a href=/>x</a>": "link",
    "<map name=m><area href=/x alt=x></map>": "link",
    "<article aria-label=x>y</article>": "section",
    "<aside>x</aside>": "r_aside",
    "<button>x</button>": "button",
    "<details><summary>x</summary>y</details>": "details",
    "<dialog open>x</dialog>": "r_dialog",
    "<fieldset><legend>x</legend><input></fieldset>": "group",
    "<footer>x</footer>": "r_footer",
    "<form aria-label=x><input></form>": "r_form",
    "<header>x</header>": "r_header",
    "<h4>x</h4>": "heading",
    "<hgroup><h1>x</h1></hgroup>": "heading",
    "<hr>": "separator",
    "<iframe src=/x></iframe>": "iframe",
    "<img alt=x src=/x>": "image",
    **{f"<input type={kind} value=x>": "button" for kind in ("button", "reset", "submit", "image")},
    **{f"<input type={kind}>": kind for kind in ("checkbox", "radio")},
    **{f"<input type={kind}>": "text_input" for kind in TYPED.split()},
    "<input type=search role=combobox>": "text_input",
    "<main>x</main>": "r_main",
    "<menu><li>x</menu>": "list",
    "<nav>x</nav>": "r_navigation",
    "<ol><li>x</ol>": "list",
    "<p>x</p>": "paragraph",
    "<section aria-label=x>y</section>": "section",
    "<select><option>x</select>": "select",
    "<select size=2><option>x</select>": "select",
    "<table><tr><th>x<th>y<tr><td>1<td>2</table>": "table",
    "<textarea></textarea>": "textarea",
    "<ul><li>x</ul>": "list",
    "<div role=none><p>x</div>": "paragraph",
    "<h2 role=presentation>x</h2>": "heading",
    # Without a name or an address, or in a part of the page, they are nothing of their own (HTML-AAM, 3.5).
    "<a>x</a>": "paragraph",
    "<article>x</article>": "r_content",
    "<section>x</section>": "r_content",
    "<details><p>x<summary>y</summary><summary>z</summary></details>": "details",
    "<summary>x</summary>": "paragraph",
    "<nav><header aria-label=x>y</header></nav>": "r_navigation",
    "<nav><footer aria-label=x>y</footer></nav>": "r_navigation",
    "<main><section><header>x</header></section></main>": "r_main",
    "<article><footer>x</footer></article>": "r_content",
    "<article><header role=banner>x</header></article>": "r_header",
}


def test_roles_and_landmarks_of_html_aam():
    wrong = {}
    for html, wanted in ROLES.items():
        regions = compiled(html)["regions"]
        found = {regions[0]["id"], regions[0]["elements"][0]["role"]}
        if wanted not in found:
            wrong[html] = found
    assert wrong == {}


def test_a_label_that_names_an_id_is_that_of_the_first_element_with_it():
    html = "<label for=q>Search</label><select id=q><option>All</option></select><input id=q hidden><b id=q>x</b>"
    assert ("paragraph", "Search") not in said(html), "the choice says it"
    assert ("paragraph", "Search") in said(f"<b id=q>x</b>{html}"), "no control is the first, so nothing says it"


def test_details_are_called_after_a_summary_without_text():
    html = (
        "<details><summary aria-label=Search><svg></svg></summary><p>x</p></details>"
        "<details><summary><img alt=Menu src=x></summary><p>y</p></details>"
    )
    assert [element.get("label") for element in elements_in(html) if element["role"] == "details"] == ["Search", "Menu"]
    assert write_markdown(html, URL).startswith("**Search**\n\nx\n\n**![Menu](")


def test_a_link_that_shows_but_a_sign_is_called_by_its_name_in_markdown():
    html = "<a href=/r aria-label='Remove Assam'>&times;</a> <a href=/2 aria-label='Page 2'>2</a> <a href=/n>→</a>"
    signs = "[Remove Assam](https://shop.example/r) [2](https://shop.example/2) [→](https://shop.example/n)\n"
    assert write_markdown(html, URL) == signs


TABLE = "<table><tr><th>Name<th>Does<th>Cups</tr>{}</table>".format(
    "".join(
        f"<tr><td>{name}<td><a href=/edit/{name}>Edit</a> <button>Delete</button><td><input name={name}></tr>"
        for name in ("Ada", "Emma")
    )
)


def test_links_buttons_and_fields_of_rows_are_called_after_their_row_in_each_format():
    names = [element["label"] for element in elements_in(TABLE) if "label" in element]
    assert names == ["Edit Ada", "Delete Ada", "Ada Cups", "Edit Emma", "Delete Emma", "Emma Cups"]
    written = write_markdown(TABLE, URL)
    assert "[Edit Ada](https://shop.example/edit/Ada) [button: Delete Ada]" in written
    assert "[Edit Emma](https://shop.example/edit/Emma) [button: Delete Emma]" in written


@pytest.mark.parametrize(
    "html",
    [
        "<ul><li>{0}: <a href=/e/{0}>Edit</a><li>{1} <a href=/e/{1}>Edit</a></ul>",
        "<ul><li><a href=/u>{0}</a> <a href=/e/{0}>Edit</a><li><b>{1}</b> <a href=/e/{1}>Edit</a></ul>",
        "<article><h2>{0}</h2><a href=/e/{0}>Edit</a></article><article><h2>{1}</h2><a href=/e/{1}>Edit</a></article>",
    ],
)
def test_links_in_items_and_cards_are_called_after_them_in_each_format(html):
    html = html.format("Ada", "Emma")
    assert [element["label"] for element in elements_in(html) if "label" in element] == ["Edit Ada", "Edit Emma"]
    written = write_markdown(html, URL)
    assert "[Edit Ada](https://shop.example/e/Ada)" in written
    assert "[Edit Emma](https://shop.example/e/Emma)" in written


@pytest.mark.parametrize(
    "html",
    [
        "<ul><li>Ada <a href=/1>More</a><li>Emma <a href=/1>More</a></ul>",  # one address
        "<ul><li>Ada <a href=/1>More</a></ul><ul><li>Emma <a href=/2>More</a></ul>",  # two lists
        "<ul><li>Ada<ul><li>x</ul><a href=/1>More</a><li>Emma<ul><li>x</ul><a href=/2>More</a></ul>",  # menus
        f"<ul><li>Ada, {'a ' * 40}<a href=/1>More</a><li>Emma, {'a ' * 40}<a href=/2>More</a></ul>",  # texts
        "<ul><li>Ada <a href=#1>More</a><li>Emma <a href=#2>More</a></ul>",  # parts of the page
        "<ul><li>a <a href=/1>More</a><li>b <a href=/2>More</a></ul>",  # marks
        "<ul><li><a href=/1>More</a> Ada<li><a href=/2>More</a> Emma</ul>",  # what stands after it
    ],
)
def test_links_that_are_no_actions_of_an_item_need_no_names(html):
    assert not [element["label"] for element in elements_in(html) if "label" in element]


def test_links_of_rows_that_lead_to_one_address_need_no_names():
    rows = "".join(f"<tr><td>{name}<td><a href=/tea>Tea</a>" for name in ("Ada", "Emma"))
    assert not [element["label"] for element in elements_in(f"<table>{rows}</table>") if "label" in element]


@pytest.mark.parametrize(
    ("html", "name"),
    [
        ("<p>Your name: <input></p>", "Your name"),
        ("<p>Your name *<br><input></p>", "Your name"),
        ("<div>City</div><div><select><option>x</select></div>", "City"),
        ("<div><span>City</span></div><div><div><input></div></div>", "City"),
        ("<dl><dt>Street<dd><input></dl>", "Street"),
        ("<table><tr><td>Street<td><input></table>", "Street"),
        ("<table><tr><th>Street<td><input></table>", "Street"),
        ("<table><tr><th>Tea<th>Cups<tr><th>Assam<td><input></table>", "Assam Cups"),
        ("<input type=checkbox> Remember me", "Remember me"),
        ("<input type=radio> Milk <input type=radio> Lemon", "Milk"),
        ("<label>Name</label><input>", "Name"),
        ("<p>Note<p><textarea></textarea>", "Note"),
        ("<p>Your name: <input title=Person></p>", "Person"),
        # What belongs to something else names nothing.
        ("<label for=a>Name</label><input id=a><input id=b>", "Name"),
        ("<input type=checkbox> Agree <select id=b><option>x</select>", "Agree"),
        ("<h2>Login</h2><input>", None),
        ("<form>Search</form><input>", None),
        ("<p>Search <button>Go</button> <input>", None),
        (f"<p>{'word ' * 30}<input></p>", None),
        ("<p>: <input></p>", None),
    ],
)
def test_a_field_without_a_label_is_called_after_what_stands_around_it(html, name):
    fields = [
        element for element in elements_in(html) if element["role"] not in ("paragraph", "button", "heading", "table")
    ]
    assert fields[0].get("label") == name
    assert all("label" not in field for field in fields if field.get("html_id") == "b")


def test_a_form_and_its_button_are_not_called_after_another_form():
    html = "<form action=/a><h2>Login</h2><button>Go</button></form><form action=/b><input><button>Go</button></form>"
    login, other = compiled(html)["regions"]
    assert (login["label"], other.get("label")) == ("Login", None)
    assert [element.get("label") for element in elements_in(html) if element["role"] == "button"] == ["Go Login", None]


def test_content_is_written_in_its_slots():
    html = (
        "<x-card><template shadowrootmode=open><h2><slot name=title></slot></h2><p>By <slot>nobody</slot></p>"
        "<p><slot name=more>None</slot></template>Ada<b slot=title>Tea</b></x-card>"
    )
    assert write_markdown(html, URL) == "## **Tea**\n\nBy Ada\n\nNone\n"


def test_controls_directly_in_a_shadow_root_have_the_text_before_them():
    html = "<x-y><template shadowrootmode=open>City <input><button>Go</button><button>Go</button></template></x-y>"
    (region,) = compiled(html)["regions"]
    field, *buttons = region["elements"][0]["shadow"]["elements"][-3:]
    assert field["label"] == "City"
    assert [button["text"] for button in buttons] == ["Go", "Go"]

"""Names of elements (accname 1.2, HTML-AAM): cases of our own, written after the published tests."""

import pytest

from tests.pages.reading import elements_in

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
    "an image beside text": ("<a href=/><img alt='Widget Pro'><span>$49.99</span></a>", "Widget Pro$49.99"),
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
    wanted = [one for one in elements_in(html) if one["role"] not in ("paragraph", "image")]
    found = wanted[0] if "label>" in html or "fieldset>" in html else wanted[-1]
    assert name in (found.get("label"), found.get("text"), found.get("attrs", {}).get("legend"))


ROLES = {
    "<search><a href=/>x</a></search>": "r_search",
    "<div role=search><a href=/>x</a></div>": "r_search",
    "<div role=form aria-label=x><input></div>": "r_form",
    "<div role=region aria-label=x><p>y</div>": "section",
    "<div role=article aria-label=x><p>y</div>": "section",
    "<div role=paragraph>y</div>": "paragraph",
    "<div role=heading aria-level=3>y</div>": "heading",
}


def test_roles_and_landmarks_of_html_aam():
    from tests.pages.reading import compiled

    wrong = {}
    for html, wanted in ROLES.items():
        regions = compiled(html)["regions"]
        found = {regions[0]["id"], regions[0]["elements"][0]["role"]}
        if wanted not in found:
            wrong[html] = found
    assert wrong == {}

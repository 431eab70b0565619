"""Controls of pages on which one acts, beside those of Chromium's accessibility tree: the main content keeps them."""

import re
from typing import Any

from awp_publish.pages.markdown import write_content

URL = "https://shop.example/page"
CONTROLS = frozenset(
    ("button", "checkbox", "combobox", "link", "listbox", "radio", "searchbox", "slider", "spinbutton", "textbox")
)
OUTSIDE = frozenset(("banner", "complementary", "contentinfo", "navigation"))
LEAST_RECALL = 0.98
WORD = re.compile(r"\w+")

SENTENCE = "Our teas come from small gardens, are picked by hand, and keep for two years. "
CHROME = "<header><a href=/>Shop</a></header><nav>{}</nav>".format(
    "".join(f"<a href=/c/{number}>Category number {number}</a>" for number in range(40))
)
PAGES = {
    "a list of products with filters": "<main><h1>Teas</h1><form><fieldset><legend>Origin</legend>{}</fieldset></form>"
    "<ul>{}</ul><p><a href=?p=2 rel=next>Next page</a></p></main>".format(
        "".join(f"<label><input type=checkbox name=o value={number}>Region {number}</label>" for number in range(12)),
        "".join(
            f"<li><a href=/tea/{number}><img src=x alt=''><h3>Tea number {number}</h3></a><p>$ {number}.50</p>"
            f"<form method=post action=/add><input type=hidden name=id value={number}>"
            f"<button>Add tea {number}</button></form></li>"
            for number in range(40)
        ),
    ),
    "search results with texts": "<main><h1>Results</h1><form><label>Words <input name=q type=search></label>"
    "<button>Search</button></form>{}</main>".format(
        "".join(
            f"<div class=hit><h3><a href=/r/{number}>Result number {number}</a></h3><p>{SENTENCE}</p></div>"
            for number in range(20)
        )
    ),
    "a form": "<main><h1>Order</h1><p>{}</p><form method=post>{}<label>Pay by <select name=pay><option>Card"
    "<option>Invoice</select></label><label><input type=radio name=when>Today</label><label><input type=radio "
    "name=when>Tomorrow</label><label>Note <textarea name=note></textarea></label><button>Order now</button>"
    "<button formaction=/draft>Keep as draft</button></form></main>".format(
        SENTENCE * 3, "".join(f"<label>Field {number} <input name=f{number}></label>" for number in range(20))
    ),
    "a table with actions": "<main><h1>Books</h1><table><tr><th>Title<th>Action{}</table></main>".format(
        "".join(
            f"<tr><td><a href=/b/{number}>Book {number}</a><td><a href=/b/{number}/edit>Edit {number}</a>"
            f"<form method=post action=/b/{number}/delete><button>Delete {number}</button></form>"
            for number in range(30)
        )
    ),
    "choices that the page draws itself": "<style>.sr{{position:absolute;clip:rect(0 0 0 0);width:1px;height:1px}}"
    ".o{{opacity:0;position:absolute}}</style><main><h1>Shirt</h1><form method=post>{}<label><input type=checkbox "
    "class=o name=gift> Wrap as a gift</label><input type=file class=sr id=f><label for=f>Choose a picture</label>"
    "<label class=sr for=q>Number of shirts</label><input type=number id=q name=q><button><svg></svg><span class=sr>"
    "Add to basket</span></button><a href=/basket><svg></svg><span class=sr>Open the basket</span></a></form>"
    "</main>".format(
        "".join(
            f"<input type=radio class=sr id=c{number} name=colour><label for=c{number}>Colour {number}</label>"
            for number in range(8)
        )
    ),
    "documentation": "<main><article><h1>Install</h1>{}<p><a href=/use rel=next>Next</a></p></article></main>".format(
        "".join(
            f"<h2>Step {number}</h2><p>{SENTENCE}See <a href=/docs/{number}>the page on step {number}</a>, please.</p>"
            f"<pre>run {number}</pre>"
            for number in range(12)
        )
    ),
    "a product with a long text": "<main><h1>Assam</h1><form method=post action=/cart><label>Size <select name=s>"
    "<option>50 g<option>100 g</select></label><label>Number <input type=number name=n></label>"
    "<button>Add to basket</button></form><div>{}</div></main>".format(f"<p>{SENTENCE * 3}</p>" * 8),
    "a thread": "<main><h1>Storm</h1>{}<form><textarea name=t aria-label='Your answer'></textarea><button>Post</button>"
    "</form></main>".format(
        "".join(
            f"<div class=post><div><a href=/u/{number}>Ada {number}</a></div><p>{SENTENCE * 4}</p><div>"
            f"<a href=/like/{number}>Like {number}</a><a href=/quote/{number}>Quote {number}</a></div></div>"
            for number in range(8)
        )
    ),
    "a basket": "<main><h1>Basket</h1><form method=post action=/update><table>{}</table><button>Update</button></form>"
    "<form method=post action=/order><button>Check out</button></form></main>".format(
        "".join(
            f"<tr><td><a href=/tea/{number}>Tea number {number}</a><td><input type=number name=n{number} "
            f"aria-label='Number of tea {number}'><td><button name=drop value={number}>Remove tea {number}</button>"
            for number in range(10)
        )
    ),
}


def controls_of(session: Any) -> set[tuple[str, str]]:
    """Role and name of each control outside of navigation, header, footer and asides."""
    nodes = {node["nodeId"]: node for node in session.send("Accessibility.getFullAXTree")["nodes"]}
    found = set[tuple[str, str]]()
    for node in nodes.values():
        role, name = (node.get(member, {}).get("value", "") for member in ("role", "name"))
        around, above = set[str](), nodes.get(node.get("parentId", ""))
        while above is not None:
            around.add(above.get("role", {}).get("value", ""))
            above = nodes.get(above.get("parentId", ""))
        if role in CONTROLS and not node.get("ignored") and name and around.isdisjoint(OUTSIDE):
            found.add((role, name))
    return found


def words(text: str) -> str:
    return " ".join(["", *WORD.findall(text), ""])


def test_the_main_content_keeps_the_controls_that_chromium_has(tab: Any) -> None:
    session = tab.context.new_cdp_session(tab)
    wanted, lost = 0, []
    for name, html in PAGES.items():
        page = f"<!doctype html><title>Shop</title>{CHROME}{html}<footer><a href=/imprint>Imprint</a></footer>"
        tab.set_content(page)
        controls = controls_of(session)
        assert len(controls) >= 3, name
        written = words(write_content(page, URL))
        wanted += len(controls)
        lost += [(name, *control) for control in controls if words(control[1]) not in written]
    assert len(lost) <= (1 - LEAST_RECALL) * wanted, lost

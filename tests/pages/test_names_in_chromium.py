"""Names of elements beside those of Chromium's accessibility tree: each case has an element with the id `t`."""

from typing import Any

from awp_publish.pages import Budget
from tests.pages.reading import elements_in
from tests.pages.test_names import COMPUTED, HIDING

ROOT = "<template shadowrootmode=open>{}</template>"
CSS = (
    ".b::before{content:'before'}.n::after{content:' \\201C new'}.k:before{content:'a' attr(data-k)}.d{display:block}"
    ".e::after{content:''}.w::before{content:'x';display:none}.l{display:inline-block}.h{visibility:hidden}"
)
UNSEEN = (
    ".c{position:absolute;clip:rect(0 0 0 0);width:1px;height:1px;overflow:hidden}"
    ".p{position:absolute;clip-path:inset(50%)}.o{position:absolute;left:-9999px}.z{position:absolute;opacity:0}.f{font-size:0}.i{text-indent:-9999px}"
    ".v{position:absolute;opacity:0;visibility:hidden}.g{display:none}"
)
"""What hides a text from the eyes, as a text for screen readers is, and at the end what hides it from everybody."""

CASES: dict[str, str] = {
    "<button id=t>Buy <b>tea</b></button>": "Buy tea",
    "<button id=t><x-a>{}two</x-a></button>".format(ROOT.format("one <slot></slot> three")): "one two three",
    "<button id=t><x-a>{}</x-a></button>".format(ROOT.format("one <slot>two</slot> three")): "one two three",
    "<button id=t><x-a>{}two</x-a></button>".format(
        ROOT.format("one <slot aria-label=x></slot> three")
    ): "one two three",
    "<button id=t><x-a>{}<b slot=n>two</b></x-a></button>".format(
        ROOT.format("<slot></slot>one <slot name=n></slot>")
    ): "one two",
    "<button id=t><x-a>{}</x-a></button>".format(ROOT.format("<div aria-label=Tea>x</div>")): "Tea",
    "<label for=t><x-a>{}</x-a></label><input id=t>".format(ROOT.format("Name")): "Name",
    "<div id=x><x-a>{}leaf</x-a></div><a href=/ id=t aria-labelledby=x>y</a>".format(
        ROOT.format("Tea <slot></slot>")
    ): "Tea leaf",
    "<x-a>{}</x-a>".format(ROOT.format("<label for=t>Name</label><input id=t>")): "Name",
    "<x-a>{}</x-a>".format(ROOT.format("<label>Name <input id=t></label>")): "Name",
    "<b id=x>Outer</b><x-a>{}</x-a>".format(
        ROOT.format("<b id=x>Inner</b><button id=t aria-labelledby=x>y</button>")
    ): "Inner",
    "<x-a>{}</x-a>".format(ROOT.format("<h2 id=t>Our <img alt=teas src=x></h2>")): "Our teas",
    "<a id=t href=/><img alt=Tea src=x></a>": "Tea",
    "<a id=t href=/ title=Tea></a>": "Tea",
    "<a id=t href=/><span aria-hidden=true>&times;</span><span>Remove</span></a>": "Remove",
    "<a id=t href=/><svg role=img aria-label=Tea></svg></a>": "Tea",
    "<a id=t href=/><svg><title>Tea</title></svg></a>": "Tea",
    "<button id=t aria-label=Remove>&times;</button>": "Remove",
    "<button id=t title=Remove></button>": "Remove",
    "<input id=t type=submit>": "Submit",
    "<input id=t type=reset>": "Reset",
    "<input id=t type=button value=Buy>": "Buy",
    "<input id=t type=image alt=Buy src=x>": "Buy",
    "<input id=t type=image src=x title=Buy>": "Buy",
    "<input id=t placeholder=Name>": "Name",
    "<input id=t placeholder=Name title=Person>": "Person",
    "<input id=t title=Person>": "Person",
    "<input id=t aria-placeholder=Name>": "Name",
    "<label>Name<input id=t></label>": "Name",
    "<label>Name <input id=t placeholder=P></label>": "Name",
    "<label>Name <input> <input id=t title=P></label>": "P",
    "<label for=t>First</label><label for=t>name</label><input id=t>": "First name",
    "<label for=t aria-label=Tea>x</label><input id=t>": "Tea",
    "<label aria-label=Tea>x <input id=t></label>": "Tea",
    "<label><input id=t type=checkbox> Remember <a href=/>me</a></label>": "Remember me",
    "<label for=t>Size</label><select id=t><option>S<option>M</select>": "Size",
    "<select id=t aria-label=Size><option>S</select>": "Size",
    "<label for=t>Note</label><textarea id=t>x</textarea>": "Note",
    "<fieldset id=t><legend>Size <b>of</b> cup</legend><input></fieldset>": "Size of cup",
    "<h2 id=t>From <input value=Assam></h2>": "From Assam",
    "<h2 id=t aria-label=Teas>x</h2>": "Teas",
    "<div role=button id=t tabindex=0>Buy <img alt=tea src=x></div>": "Buy tea",
    "<div role=link id=t tabindex=0><b>Our</b> teas</div>": "Our teas",
    "<div role=checkbox id=t aria-checked=true tabindex=0>Milk</div>": "Milk",
    "<div role=checkbox id=t tabindex=0><img alt=Pic src=x> more</div>": "Pic more",
    "<div role=switch id=t tabindex=0>Flash <input value=3 aria-label=n> times</div>": "Flash 3 times",
    "<div role=radio id=t tabindex=0><span aria-label=Zed>x</span> w</div>": "Zed w",
    "<div role=radio id=t tabindex=0>in <select><option>S<option selected>M</select> sizes</div>": "in M sizes",
    "<div role=textbox id=t contenteditable aria-label=Note></div>": "Note",
    "<div role=switch id=t tabindex=0 aria-labelledby=x></div><b id=x>Steep</b>": "Steep",
    "<ul><li role=menuitem id=t tabindex=0>Open <kbd>O</kbd></li></ul>": "Open O",
    "<img id=t alt=Tea src=x>": "Tea",
    "<img id=t aria-label=Tea src=x>": "Tea",
    "<img id=t title=Tea src=x>": "Tea",
    "<button id=t><span style='display:none'>x</span>Buy</button>": "Buy",
    "<button id=t><span style='visibility:hidden'>x</span>Buy</button>": "Buy",
    "<button id=t>a<br>b</button>": "a b",
    "<button id=t><div>a</div><div>b</div></button>": "a b",
    "<button id=t><span>a</span><span>b</span></button>": "ab",
    "<button id=t>a<img alt=b src=x>c<img alt='' src=x>d</button>": "a b cd",
    "<a id=t href=/>a<b aria-label=b>x</b>cd</a>": "a b cd",
    "<button id=t>a<b role=progressbar aria-label=b></b>c</button>": "a b c",
    "<button id=t>a<b role=progressbar aria-label=b aria-valuenow=3></b>c</button>": "a 3 c",
    "<button id=t>\n a \n <b> b </b> </button>": "a b",
    "<button id=t aria-labelledby='t x'>Delete</button><b id=x>Emma</b>": "Delete Emma",
    "<button id=t aria-label=Delete aria-labelledby='t x'>y</button><b id=x>Emma</b>": "Delete Emma",
    "<button id=t aria-labelledby=nothing>Delete</button>": "Delete",
    "<label for=t>Size</label><button id=t aria-labelledby=x><b id=x>Choose your size</b></button>": "Choose your size",
    "<label for=t>Size</label><button id=t aria-label='Choose a size'>Choose a size</button>": "Choose a size",
    "<button id=t aria-label=' '>Delete</button>": "Delete",
    "<button id=t aria-labelledby=x>y</button><div id=x hidden>Tea <b>leaf</b></div>": "Tea leaf",
    "<button id=t>Buy <b role=presentation>tea</b></button>": "Buy tea",
    "<a id=t href=/><ins>new</ins><del>old</del></a>": "newold",
    "<a id=t href=/>Read <i>more</i>, <b>now</b>.</a>": "Read more, now.",
    "<table><tr><td><a id=t href=/>Edit</a></table>": "Edit",
    **{
        f"<style>{CSS}</style>{html}": name
        for html, name in {
            "<button id=t class=b>label</button>": "beforelabel",
            "<a id=t href=/ class='b n'>label</a>": "beforelabel “new",
            "<h2 id=t class=n>label</h2>": "label “new",
            "<button id=t><span class=b>x</span></button>": "beforex",
            "<button id=t data-k=12><span class=k data-k=12>x</span></button>": "a12x",
            "<button id=t class=e>label</button>": "label",
            "<button id=t class=w>label</button>": "label",
            "<a id=t href=/><span class=d>a</span><span class=d>b</span></a>": "a b",
            "<a id=t href=/><span class=l>a</span><span class=l>b</span></a>": "a b",
            "<h2 id=t>a<span class=d>b</span></h2>": "a b",
            "<button id=t><b style='display:flex'>a</b>b</button>": "a b",
            "<button id=t><span>a</span><span class=h>b</span><span>c</span></button>": "ac",
            "<label for=t class=b>Name</label><input id=t>": "beforeName",
        }.items()
    },
    **{
        f"<style>{UNSEEN}</style>{html.format(how)}": heard if how in "cpozfi" else silent
        for how in "cpozfivg"
        for html, heard, silent in (
            ("<button id=t><i></i><span class={}>Close</span></button>", "Close", ""),
            ("<button id=t>Close <span class={}>the window</span></button>", "Close the window", "Close"),
            ("<a id=t href=/><span class={}>Read <b>more</b></span><i></i></a>", "Read more", ""),
            ("<a id=t href=/>Read more<span class={}> about cats</span></a>", "Read more about cats", "Read more"),
            ("<div role=button id=t tabindex=0><i></i><span class={}>Close</span></div>", "Close", ""),
            ("<label for=t>Name <span class={}>of the cat</span></label><input id=t>", "Name of the cat", "Name"),
            (
                "<fieldset id=t><legend><span class={}>Size</span> of cup</legend><input></fieldset>",
                "Size of cup",
                "of cup",
            ),
            ("<button id=t><span class=o><b class={}>Close</b> it</span></button>", "Close it", "it"),
        )
    },
    **{f"<style>{UNSEEN}</style><label for=t class={name}>Name</label><input id=t>": "Name" for name in "cpozfi"},
    **{
        f"<style>{UNSEEN}</style>{html.format(how)}": name
        for how in "cpoz"
        for html, name in {
            "<button id=t>Close<span class={}>the window</span></button>": "Close the window",
            "<label><input type=checkbox id=t class={}> Remember me</label>": "Remember me",
            "<input type=radio id=t class={}><label for=t>Small</label>": "Small",
            "<input type=file id=t class={}><label for=t><b>Choose</b> a file</label>": "Choose a file",
        }.items()
    },
}
DIFFERENT = (
    *(f"<label for=t {how}>" for how in HIDING),
    "<div role=combobox><div role=textbox>",
    "aria-label='' aria-labelledby='t x'",
)
"""Beginnings and parts of cases in which Chromium does not follow accname 1.2: hidden labels, values within values."""

WRITE = "page => { document.open(); document.write(page); document.close(); }"
NAME = """() => {
    const find = root => root.querySelector('#t')
        ?? [...root.querySelectorAll('*')].map(one => one.shadowRoot && find(one.shadowRoot)).find(Boolean);
    return find(document);
}"""


def test_an_element_has_the_name_that_it_has_in_chromium(tab: Any) -> None:
    session = tab.context.new_cdp_session(tab)
    wrong = []
    for html, wanted in {**CASES, **COMPUTED}.items():
        if any(part in html for part in DIFFERENT):
            continue
        tab.evaluate(WRITE, f"<!doctype html><title>Shop</title><main>{html}</main>")
        found = session.send("Runtime.evaluate", {"expression": f"({NAME})()"})["result"]["objectId"]
        (node,) = session.send("Accessibility.getPartialAXTree", {"objectId": found, "fetchRelatives": False})["nodes"]
        name = " ".join(node.get("name", {}).get("value", "").split())
        if name != wanted:
            wrong.append(f"{html}\n    {name!r} in Chromium, not {wanted!r}")
    assert not wrong, "\n".join(wrong)


def test_elements_have_the_names_that_they_have_in_chromium() -> None:
    wrong = {}
    for html, wanted in CASES.items():
        element = next((element for element in elements_in(html, Budget.FULL) if element.get("html_id") == "t"), {})
        attrs = element.get("attrs", {})
        names = (element.get("label"), element.get("text"), attrs.get("alt"), attrs.get("legend"))
        if (name := next(filter(None, names), "")) != wanted:
            wrong[html] = name
    assert wrong == {}

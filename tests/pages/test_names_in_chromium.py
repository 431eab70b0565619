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

CASES = [
    "<button id=t>Buy <b>tea</b></button>",
    "<button id=t><x-a>{}two</x-a></button>".format(ROOT.format("one <slot></slot> three")),
    "<button id=t><x-a>{}</x-a></button>".format(ROOT.format("one <slot>two</slot> three")),
    "<button id=t><x-a>{}two</x-a></button>".format(ROOT.format("one <slot aria-label=x></slot> three")),
    "<button id=t><x-a>{}<b slot=n>two</b></x-a></button>".format(ROOT.format("<slot></slot>one <slot name=n></slot>")),
    "<button id=t><x-a>{}</x-a></button>".format(ROOT.format("<div aria-label=Tea>x</div>")),
    "<label for=t><x-a>{}</x-a></label><input id=t>".format(ROOT.format("Name")),
    "<div id=x><x-a>{}leaf</x-a></div><a href=/ id=t aria-labelledby=x>y</a>".format(ROOT.format("Tea <slot></slot>")),
    "<x-a>{}</x-a>".format(ROOT.format("<label for=t>Name</label><input id=t>")),
    "<x-a>{}</x-a>".format(ROOT.format("<label>Name <input id=t></label>")),
    "<b id=x>Outer</b><x-a>{}</x-a>".format(ROOT.format("<b id=x>Inner</b><button id=t aria-labelledby=x>y</button>")),
    "<x-a>{}</x-a>".format(ROOT.format("<h2 id=t>Our <img alt=teas src=x></h2>")),
    "<a id=t href=/><img alt=Tea src=x></a>",
    "<a id=t href=/ title=Tea></a>",
    "<a id=t href=/><span aria-hidden=true>&times;</span><span>Remove</span></a>",
    "<a id=t href=/><svg role=img aria-label=Tea></svg></a>",
    "<a id=t href=/><svg><title>Tea</title></svg></a>",
    "<button id=t aria-label=Remove>&times;</button>",
    "<button id=t title=Remove></button>",
    "<input id=t type=submit>",
    "<input id=t type=reset>",
    "<input id=t type=button value=Buy>",
    "<input id=t type=image alt=Buy src=x>",
    "<input id=t type=image src=x title=Buy>",
    "<input id=t placeholder=Name>",
    "<input id=t placeholder=Name title=Person>",
    "<input id=t title=Person>",
    "<input id=t aria-placeholder=Name>",
    "<label>Name<input id=t></label>",
    "<label>Name <input id=t placeholder=P></label>",
    "<label>Name <input> <input id=t title=P></label>",
    "<label for=t>First</label><label for=t>name</label><input id=t>",
    "<label for=t aria-label=Tea>x</label><input id=t>",
    "<label aria-label=Tea>x <input id=t></label>",
    "<label><input id=t type=checkbox> Remember <a href=/>me</a></label>",
    "<label for=t>Size</label><select id=t><option>S<option>M</select>",
    "<select id=t aria-label=Size><option>S</select>",
    "<label for=t>Note</label><textarea id=t>x</textarea>",
    "<fieldset id=t><legend>Size <b>of</b> cup</legend><input></fieldset>",
    "<h2 id=t>From <input value=Assam></h2>",
    "<h2 id=t aria-label=Teas>x</h2>",
    "<div role=button id=t tabindex=0>Buy <img alt=tea src=x></div>",
    "<div role=link id=t tabindex=0><b>Our</b> teas</div>",
    "<div role=checkbox id=t aria-checked=true tabindex=0>Milk</div>",
    "<div role=checkbox id=t tabindex=0><img alt=Pic src=x> more</div>",
    "<div role=switch id=t tabindex=0>Flash <input value=3 aria-label=n> times</div>",
    "<div role=radio id=t tabindex=0><span aria-label=Zed>x</span> w</div>",
    "<div role=radio id=t tabindex=0>in <select><option>S<option selected>M</select> sizes</div>",
    "<div role=textbox id=t contenteditable aria-label=Note></div>",
    "<div role=switch id=t tabindex=0 aria-labelledby=x></div><b id=x>Steep</b>",
    "<ul><li role=menuitem id=t tabindex=0>Open <kbd>O</kbd></li></ul>",
    "<img id=t alt=Tea src=x>",
    "<img id=t aria-label=Tea src=x>",
    "<img id=t title=Tea src=x>",
    "<button id=t><span style='display:none'>x</span>Buy</button>",
    "<button id=t><span style='visibility:hidden'>x</span>Buy</button>",
    "<button id=t>a<br>b</button>",
    "<button id=t><div>a</div><div>b</div></button>",
    "<button id=t><span>a</span><span>b</span></button>",
    "<button id=t>a<img alt=b src=x>c<img alt='' src=x>d</button>",
    "<a id=t href=/>a<b aria-label=b>x</b>cd</a>",
    "<button id=t>a<b role=progressbar aria-label=b></b>c</button>",
    "<button id=t>a<b role=progressbar aria-label=b aria-valuenow=3></b>c</button>",
    "<button id=t>\n a \n <b> b </b> </button>",
    "<button id=t aria-labelledby='t x'>Delete</button><b id=x>Emma</b>",
    "<button id=t aria-label=Delete aria-labelledby='t x'>y</button><b id=x>Emma</b>",
    "<button id=t aria-labelledby=nothing>Delete</button>",
    "<label for=t>Size</label><button id=t aria-labelledby=x><b id=x>Choose your size</b></button>",
    "<label for=t>Size</label><button id=t aria-label='Choose a size'>Choose a size</button>",
    "<button id=t aria-label=' '>Delete</button>",
    "<button id=t aria-labelledby=x>y</button><div id=x hidden>Tea <b>leaf</b></div>",
    "<button id=t>Buy <b role=presentation>tea</b></button>",
    "<a id=t href=/><ins>new</ins><del>old</del></a>",
    "<a id=t href=/>Read <i>more</i>, <b>now</b>.</a>",
    "<table><tr><td><a id=t href=/>Edit</a></table>",
    *(
        f"<style>{CSS}</style>{html}"
        for html in (
            "<button id=t class=b>label</button>",
            "<a id=t href=/ class='b n'>label</a>",
            "<h2 id=t class=n>label</h2>",
            "<button id=t><span class=b>x</span></button>",
            "<button id=t data-k=12><span class=k data-k=12>x</span></button>",
            "<button id=t class=e>label</button>",
            "<button id=t class=w>label</button>",
            "<a id=t href=/><span class=d>a</span><span class=d>b</span></a>",
            "<a id=t href=/><span class=l>a</span><span class=l>b</span></a>",
            "<h2 id=t>a<span class=d>b</span></h2>",
            "<button id=t><b style='display:flex'>a</b>b</button>",
            "<button id=t><span>a</span><span class=h>b</span><span>c</span></button>",
            "<label for=t class=b>Name</label><input id=t>",
        )
    ),
    *(
        f"<style>{UNSEEN}</style>{html}"
        for name in "cpozfivg"
        for html in (
            f"<button id=t><i></i><span class={name}>Close</span></button>",
            f"<button id=t>Close <span class={name}>the window</span></button>",
            f"<a id=t href=/><span class={name}>Read <b>more</b></span><i></i></a>",
            f"<a id=t href=/>Read more<span class={name}> about cats</span></a>",
            f"<div role=button id=t tabindex=0><i></i><span class={name}>Close</span></div>",
            f"<label for=t>Name <span class={name}>of the cat</span></label><input id=t>",
            f"<fieldset id=t><legend><span class={name}>Size</span> of cup</legend><input></fieldset>",
            f"<button id=t><span class=o><b class={name}>Close</b> it</span></button>",
        )
    ),
    *(f"<style>{UNSEEN}</style><button id=t>Close<span class={name}>the window</span></button>" for name in "cpoz"),
    *(f"<style>{UNSEEN}</style><label for=t class={name}>Name</label><input id=t>" for name in "cpozfi"),
    *(
        f"<style>{UNSEEN}</style>{html}"
        for name in "cpoz"
        for html in (
            f"<label><input type=checkbox id=t class={name}> Remember me</label>",
            f"<input type=radio id=t class={name}><label for=t>Small</label>",
            f"<input type=file id=t class={name}><label for=t><b>Choose</b> a file</label>",
        )
    ),
    *(html for html in COMPUTED if "labeledby" not in html),
]
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
    for html in CASES:
        if any(part in html for part in DIFFERENT):
            continue
        tab.evaluate(WRITE, f"<!doctype html><title>Shop</title><main>{html}</main>")
        found = session.send("Runtime.evaluate", {"expression": f"({NAME})()"})["result"]["objectId"]
        (node,) = session.send("Accessibility.getPartialAXTree", {"objectId": found, "fetchRelatives": False})["nodes"]
        wanted = " ".join(node.get("name", {}).get("value", "").split())
        element = next((one for one in elements_in(html, Budget.FULL) if one.get("html_id") == "t"), {})
        attrs = element.get("attrs", {})
        names = (element.get("label"), element.get("text"), attrs.get("alt"), attrs.get("legend"))
        if wanted != next(filter(None, names), ""):
            wrong.append(f"{html}\n    {wanted!r} in Chromium, {next(filter(None, names), '')!r} here")
    assert not wrong, f"{len(wrong)} of {len(CASES)}:\n" + "\n".join(wrong)

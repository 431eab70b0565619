"""`awp-publish synthesize` on a small site of these tests' own, over HTTP."""

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from awp_publish.checks import check_documents
from tests.conftest import run_command

ROOT = Path(__file__).parents[2]

HOME = """<!doctype html><html lang=en><head><title>Shoe shop</title>
<meta name=description content="Sells shoes."></head>
<body><nav><a href=/about>About us</a> <a href="https://elsewhere.example/">Else</a> <a href=/logout>Log out</a>
<a href=/away>Away</a> <a href=/private/x>Secret</a> <a href=/about?page=2>More</a> <a href=/list.pdf>List</a>
<a href="http://[">Bad</a></nav>
<form action=/search role=search><label for=q>Words</label><input id=q name=q required maxlength=80>
<select name=sort><option value=new>Newest<option value=cheap>Cheapest</select><button>Search shoes</button></form>
<form method=post action=/newsletter id=news><input type=hidden name=csrf_token value=T0PSECRET>
<label>Your address <input type=email name=email required></label><button>Subscribe</button></form>
<form action="https://pay.example/x"><input name=card></form></body></html>"""

OPENAPI = {
    "openapi": "3.1.0",
    "info": {"title": "Shoes", "version": "1"},
    "paths": {
        "/api/shoes/{id}": {
            "get": {
                "operationId": "getShoe",
                "summary": "Get a shoe",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
                "responses": {"200": {"description": "A shoe"}},
            }
        }
    },
}

PAGES = {
    "/": ("text/html; charset=utf-8", HOME),
    "/about": ("text/html", "<title>About</title><p>We are <a href=/>here</a>."),
    "/robots.txt": ("text/plain", "User-agent: *\nDisallow: /private/\n"),
    "/openapi.json": ("application/json", json.dumps(OPENAPI)),
}


class Shop(BaseHTTPRequestHandler):
    pages = PAGES
    asked: list[str]

    def do_GET(self):
        self.asked.append(self.path)
        kind, text = self.pages.get(self.path, ("text/html", ""))
        self.send_response(302 if self.path == "/away" else 200 if self.path in self.pages else 404)
        if self.path == "/away":
            self.send_header("Location", "http://169.254.169.254/latest/")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def shop() -> Iterator[Any]:
    handler: Any = type("OneShop", (Shop,), {"asked": [], "pages": dict(PAGES)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    handler.address = f"http://127.0.0.1:{server.server_port}/"
    yield handler
    server.shutdown()
    server.server_close()
    thread.join()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command("synthesize", *arguments)


def test_what_is_written_was_seen_is_marked_and_passes_the_checks(shop):
    done = run("--allow-private", shop.address)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    documents = told["documents"]
    assert set(documents) == {"/agent.json", "/.well-known/ai-actions.json"}
    for document in documents.values():
        assert document["source"] == "synthetic"
        assert 0 < document["confidence"] < 1
        assert document["last_verified"].endswith("Z")
    encoded = {path: json.dumps(document).encode() for path, document in documents.items()}
    assert [str(one) for one in check_documents(encoded) if one.level == "error"] == []
    actions = {one["id"]: one for one in documents["/agent.json"]["actions"]}
    assert set(actions) == {"get_shoe", "search_shoes", "subscribe", "open_about"}
    assert actions["search_shoes"]["inputs"]["q"]["required"] is True
    assert actions["search_shoes"]["inputs"]["sort"]["options"] == ["new", "cheap"]
    assert (actions["subscribe"]["method"], actions["subscribe"]["endpoint"]) == ("POST", "/newsletter")
    assert actions["subscribe"]["x-needs-from-page"] == ["csrf_token"]
    assert actions["get_shoe"]["endpoint"] == "/api/shoes/{id}"
    kinds = {one["id"]: one["type"] for one in documents["/.well-known/ai-actions.json"]["actions"]}
    assert kinds == {
        "get_shoe": "data_retrieval",
        "search_shoes": "search",
        "subscribe": "form_submission",
        "open_about": "navigation",
    }
    assert "T0PSECRET" not in done.stdout
    assert documents["/agent.json"]["errors"] == {}  # how it refuses was not seen
    assert actions["subscribe"]["outputs"] == {}


CONTROLS = {
    "size": (
        "<label for=size>Size</label><input id=size type=number name=size min=1 max=9.5 required>",
        {"type": "number", "description": "Size", "minimum": 1, "maximum": 9.5},
    ),
    "name": (
        "<label><span>Your <b>name</b></span><input name=name minlength=2 maxlength=40></label>",
        {"type": "string", "minLength": 2, "maxLength": 40, "description": "Your name"},
    ),
    "basket": ("<input type=hidden name=basket value=b7>", {"type": "string", "default": "b7"}),
    "csrf_token": ("<input type=hidden name=csrf_token value=x>", None),
    "colour": (
        "<input type=radio name=colour value=red><input type=radio name=colour value=blue>",
        {"type": "string", "enum": ["red", "blue"]},
    ),
    "gift": (
        "<input type=checkbox name=gift aria-label='As a gift'>",
        {"type": "string", "enum": ["on"], "description": "As a gift"},
    ),
    "extras": (
        "<select name=extras multiple><option value=box>A box<option value=''>None<option disabled>Gone</select>",
        {"type": "array", "items": {"type": "string", "enum": ["box"]}, "description": "box: A box"},
    ),
    "note": ("<textarea name=note placeholder=Notes></textarea>", {"type": "string", "description": "Notes"}),
    "off": ("<input name=off disabled>", None),
    "day": ("<input type=date name=day>", {"type": "string", "format": "date"}),
    "level": ("<input type=range name=level min=1e5>", {"type": "number"}),
    "go": ("<button name=go>Send</button>", None),
    "far": ("</form><input form=order name=far>", {"type": "string"}),
}


def test_the_controls_of_a_form_are_inputs_with_what_their_markup_says(shop):
    others = "<form action=/tints><input name=tint></form><form action=/all><input name=q></form>"
    others += "<form action=/shoes role=search><input name=x></form><form action=/a/search/><input name=y></form>"
    form = f"<form action=/order method=post id=order>{''.join(html for html, _ in CONTROLS.values())}"
    shop.pages = {"/": ("text/html", f"<title>Shop</title>{form}{others}<form method=dialog></form>")}
    told = json.loads(run("--allow-private", shop.address).stdout)
    actions = {one["path"]: one for one in told["documents"]["/.well-known/ai-actions.json"]["actions"]}
    assert {path: one["type"] for path, one in actions.items()} == {
        "/order": "form_submission",
        "/tints": "filter",
        "/all": "search",
        "/shoes": "search",
        "/a/search/": "search",
    }
    order = actions["/order"]
    assert order["inputSchema"]["properties"] == {
        name: schema for name, (_, schema) in CONTROLS.items() if schema is not None
    }
    assert (order["inputSchema"]["required"], order["name"], order["selector"]) == (["size"], "Send", "#order")


def test_nothing_is_followed_that_leads_away_is_forbidden_or_does_something(shop):
    document = OPENAPI | {"servers": [{"url": "https://api.elsewhere.example/v1"}]}
    shop.pages["/openapi.json"] = ("application/json", json.dumps(document))
    told = json.loads(run("--allow-private", shop.address).stdout)
    why = " ".join(f"{one['at']} {one['why']}" for one in told["left_out"])
    assert "/private/x robots.txt does not allow it" in why
    assert "/logout it may do something when it is opened" in why
    assert "leads to another site: http://169.254.169.254/latest/" in why
    assert "a form sends to another site: pay.example" in why
    assert "/openapi.json its server is another site: https://api.elsewhere.example/v1" in why
    assert not {"/logout", "/private/x", "/about?page=2", "/list.pdf"} & set(shop.asked)


def test_a_page_of_countless_forms_labels_and_choices_is_read(shop):
    forms = "".join(f"<form action=/{number} id=f{number}><input name=q></form>" for number in range(6_000))
    labels = "".join(f"<label for=i{number}>Words</label><input form=f{number} name=p>" for number in range(6_000))
    radios = "<input type=radio name=size value=1>" * 20_000
    shop.pages["/"] = ("text/html", f"<title>Forms</title>{forms}{labels}<form action=/sizes>{radios}</form>")
    told = json.loads(run("--allow-private", shop.address, "--max-pages", "1").stdout)
    assert len(told["documents"]["/agent.json"]["actions"]) == 100


def test_this_machine_is_not_read_unless_it_is_asked_for(shop):
    done = run(shop.address)
    assert done.returncode == 2
    assert "is on this machine or in its own network" in done.stderr
    assert shop.asked == []


def test_files_are_written_below_a_folder(shop, tmp_path):
    done = run("--allow-private", shop.address, "--out", str(tmp_path), "--max-pages", "1")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "agent.json").read_text())["source"] == "synthetic"
    assert "open_about" not in (tmp_path / ".well-known" / "ai-actions.json").read_text()


def test_a_site_with_documents_of_its_own_is_left_alone(shop):
    shop.pages["/agent.json"] = ("application/json", json.dumps({"awp_version": "0.2", "actions": []}))
    done = run("--allow-private", shop.address)
    assert done.returncode == 1
    assert "is the site's own" in done.stdout
    assert run("--allow-private", "--anyway", shop.address).returncode == 0


def test_a_site_of_which_nothing_can_be_made_is_a_finding(shop):
    shop.pages.clear()
    shop.pages["/"] = ("text/html", "<title>Empty</title>")
    assert run("--allow-private", shop.address).returncode == 1
    shop.pages["/"] = ("image/png", "x")
    assert run("--allow-private", shop.address).returncode == 2

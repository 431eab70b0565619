"""Maps of actions.json together with what they import."""

import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from awp_publish.cli import main
from awp_publish.maps import rules
from awp_publish.maps.composition import Imported, ImportRefused
from awp_publish.plugins.actions_json.reading import ActionMap
from tests.browsing.running import Driver, Json, map_of, step, tool

PAGES = {"/": "<title>Home</title><main><h1>Home</h1></main>"}
STATES = [{"name": "home", "diagnostics": [{"name": "head", "target": {"selector": "h1"}}]}]


def imports(*entries: Json, **composition: Any) -> Json:
    given = [{"id": f"i{number}", "kind": "public", "trust": "public", **one} for number, one in enumerate(entries)]
    return {"imports": given, **({"composition": composition} if composition else {})}


def other(name: str, **members: Any) -> Json:
    return tool(name, step("page", "page.info"), output=f"{{% '{name} of ' & input.who %}}", **members)


def compose(document: Json, maps: Mapping[str, Json]) -> ActionMap:
    def load(uri: str, base: str) -> Imported:
        if uri not in maps:
            raise ImportRefused(f"{uri} is not there")
        read = ActionMap.read(maps[uri])
        assert read.is_valid, read.findings
        return Imported(read.document, uri)

    own = ActionMap.read(document)
    assert own.is_valid, own.findings
    return own.composed(load, "main")


def names(composed: ActionMap, section: str = "tools", member: str = "name") -> list[object]:
    return [one[member] for one in composed.objects(section)]


def problems(composed: ActionMap) -> list[tuple[str, str]]:
    return [(finding.pointer, finding.message) for finding in composed.findings if finding.check == "actions-import"]


def test_a_map_with_a_namespace_stands_beside_the_local_one():
    document = map_of(other("search"), **imports({"uri": "shop", "namespace": "shop"}))
    composed = compose(document, {"shop": map_of(other("search"))})
    assert names(composed) == ["search", "shop.search"]
    assert problems(composed) == []
    run = Driver(PAGES, map_of())
    run.runtime.map = composed
    assert run.call("shop.search", who="it") == "search of it"


def test_references_of_an_imported_map_get_its_namespace():
    inner = map_of(
        other("go", target={"state": "home"}),
        states=[{**STATES[0], "observables": ["seen", "other words"]}],
        transitions=[
            {
                "name": "move",
                "from": ["home"],
                "to": "home",
                "tool": "go",
                "signal": "moved",
                "preconditions": ["home", "free text"],
                "convergence": {"complete_when": "home", "max_attempts": 2},
            }
        ],
        signals=[{"name": "moved", "event": "x:y", "target": {"state": "home"}}],
        context=[
            {
                "id": "c",
                "available_tools": ["go"],
                "next_states": ["home"],
                "load_when": {"states": ["home"], "targets": ["a"]},
            }
        ],
        attachments=[
            {"id": "a", "target": {"state": "home"}, "lifecycle": {"x": 1}, "affordance": {"opens": {"tool": "go"}}}
        ],
        checks=[
            {
                "id": "k",
                "tool": "go",
                "state": "home",
                "attachment": "a",
                "steps": [{"type": "call", "tool": "go"}],
                "assertions": [{"target": {"state": "home"}}],
            }
        ],
        state_projections=[
            {"name": "seen", "snapshot": {}, "postconditions": {"go": {"projection": "seen"}, "elsewhere": {}}}
        ],
    )
    composed = compose(map_of(**imports({"uri": "x", "namespace": "n.s"})), {"x": inner})
    text = json.dumps(composed.document)
    for name in ("go", "home", "moved", "seen"):
        assert f'"{name}"' not in text, name
    (check,) = composed.objects("checks")
    assert check == {
        "id": "n.s.k",
        "tool": "n.s.go",
        "state": "n.s.home",
        "attachment": "n.s.a",
        "steps": [{"type": "call", "tool": "n.s.go"}],
        "assertions": [{"target": {"state": "n.s.home"}}],
    }
    (transition,) = composed.objects("transitions")
    assert transition["preconditions"] == ["n.s.home", "free text"]
    assert next(iter(composed.objects("state_projections")))["postconditions"] == {
        "n.s.go": {"projection": "n.s.seen"},
        "elsewhere": {},
    }


def test_imports_without_a_namespace_need_a_composition_that_allows_it():
    document = map_of(other("search"), **imports({"uri": "x"}))
    assert [finding.check for finding in ActionMap.read(document).findings] == ["actions-namespace"]
    document = map_of(other("search"), **imports({"uri": "x"}, namespace_required=False))
    composed = compose(document, {"x": map_of(other("search"), other("open"))})
    assert names(composed) == ["search", "open"]
    assert "tools/search" in problems(composed)[0][1]


def test_with_another_policy_an_import_that_conflicts_is_refused_as_a_whole():
    document = map_of(other("a"), **imports({"uri": "x"}, namespace_required=False, default_conflict_policy="newest"))
    composed = compose(document, {"x": map_of(other("a"), other("b"))})
    assert names(composed) == ["a"]
    assert problems(composed)[0][0] == "/imports/0"


def test_a_signal_and_a_tool_of_one_name_are_a_conflict():
    signals = [{"name": "told", "event": "a:b", "ingestion": "enabled"}]
    document = map_of(other("told"), **imports({"uri": "x"}, namespace_required=False))
    composed = compose(document, {"x": map_of(signals=signals)})
    assert names(composed, "signals") == []


def test_an_import_that_fails_leaves_its_names_out_and_nothing_else():
    document = map_of(
        other("a"),
        **imports(
            {"uri": "gone", "namespace": "g"},
            {"uri": "x", "namespace": "x"},
            {"uri": "off", "enabled": False, "namespace": "o"},
        ),
    )
    composed = compose(document, {"x": map_of(other("b"))})
    assert composed.is_valid
    assert names(composed) == ["a", "x.b"]
    assert problems(composed) == [("/imports/0", "gone is not there")]


def test_imports_that_go_round_in_a_circle_are_refused_with_the_chain():
    maps = {
        "one": map_of(other("a"), **imports({"uri": "two", "namespace": "two"})),
        "two": map_of(other("b"), **imports({"uri": "one", "namespace": "one"})),
    }
    composed = compose(map_of(**imports({"uri": "one", "namespace": "one"})), maps)
    assert names(composed) == ["one.a", "one.two.b"]
    assert "main -> one -> two -> one" in problems(composed)[0][1]


def test_imports_are_followed_to_a_depth_and_a_number():
    deep = {str(n): map_of(other("t"), **imports({"uri": str(n + 1), "namespace": f"n{n}"})) for n in range(6)}
    composed = compose(map_of(**imports({"uri": "0", "namespace": "n"})), deep)
    assert names(composed) == ["n.t", "n.n0.t", "n.n0.n1.t"]
    assert f"to a depth of {rules.MAX_IMPORT_DEPTH}" in problems(composed)[0][1]
    wide = {str(n): map_of(other("t")) for n in range(30)}
    many = imports(*({"uri": str(n), "namespace": f"n{n}"} for n in range(30)))
    assert len(names(compose(map_of(**many), wide))) == rules.MAX_IMPORTS


def test_a_private_import_is_shown_to_nobody_else():
    document = map_of(other("a"), **imports({"uri": "x", "namespace": "mine", "trust": "private"}))
    composed = compose(document, {"x": map_of(other("b"))})
    run = Driver(PAGES, map_of())
    run.runtime = type(run.runtime)(composed, run.page)
    assert [action["name"] for action in run.ask("list")["actions"]] == ["a"]
    assert run.failure("mine.b").code == "unknown_action"
    run.runtime = type(run.runtime)(composed, run.page, private=True)
    assert run.call("mine.b", who="me") == "b of me"


@pytest.mark.parametrize(("trust", "reached"), [("website", True), ("public", False), ("unknown", False)])
def test_an_imported_tool_reaches_no_handler_of_ours_unless_it_is_the_sites_own(trust, reached):
    async def invoke(call: Any) -> str:
        return "reached"

    one = {"name": "buy", "description": "x", "input_schema": {}, "x_actions": {"handler": "agents.invoke"}}
    document = map_of(**imports({"uri": "x", "namespace": "x", "trust": trust}))
    composed = compose(document, {"x": map_of(one)})
    run = Driver(PAGES, map_of())
    run.runtime = type(run.runtime)(composed, run.page, handlers={"agents.invoke": invoke})
    if reached:
        assert run.call("x.buy") == "reached"
    else:
        assert run.failure("x.buy").code == "missing_handler"


@pytest.fixture
def server() -> Iterator[tuple[str, dict[str, bytes]]]:
    """A server on this machine that gives what a table has."""
    table: dict[str, bytes] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = table.get(self.path)
            if body is not None and body.startswith(b"-> "):
                self.send_response(302)
                self.send_header("Location", body[3:].decode())
                self.end_headers()
                return
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}", table
        listening.shutdown()


def test_a_map_at_an_address_is_checked_with_what_it_imports(server, capsys):
    address, table = server
    table["/map.json"] = json.dumps(map_of(other("a"), **imports({"uri": "other.json", "namespace": "o"}))).encode()
    table["/other.json"] = json.dumps(map_of(other("b"))).encode()
    assert main(["check", f"{address}/map.json"]) == 0
    assert "0 findings" in capsys.readouterr().out
    table["/other.json"] = b'{"protocol": "actions.json", "version": 2, "tools": []}'
    assert main(["check", f"{address}/map.json"]) == 0
    told = capsys.readouterr().out
    assert "actions-import" in told
    assert "/imports/0" in told
    table["/moved.json"] = b"-> /map.json"
    assert main(["check", f"{address}/moved.json"]) == 0
    table["/round.json"] = b"-> /round.json"
    assert main(["check", f"{address}/round.json"]) == 2
    assert main(["check", f"{address}/none.json"]) == 2
    assert "status 404" in capsys.readouterr().err


def test_a_file_imports_its_neighbours_and_nothing_in_the_network_around_it(tmp_path, server, capsys):
    address, table = server
    table["/x.json"] = json.dumps(map_of()).encode()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "b.json").write_text(json.dumps(map_of(other("b"))))
    (tmp_path.parent / "outside.json").write_text(json.dumps(map_of()))
    entries = [
        {"uri": "below/b.json", "namespace": "b", "kind": "local"},
        {"uri": "../outside.json", "namespace": "c", "kind": "local"},
        {"uri": f"{address}/x.json", "namespace": "d"},
        {"uri": "ftp://x.example/map.json", "namespace": "e"},
        {"uri": "b\0.json", "namespace": "f"},
        {"uri": "http://[b.json", "namespace": "g"},
        {"uri": "below", "namespace": "h"},
    ]
    path = tmp_path / "map.json"
    path.write_text(json.dumps(map_of(other("a"), **imports(*entries))))
    assert main(["check", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1].partition("#")[2] for line in lines[:-1]] == [f"/imports/{at}" for at in range(1, 7)]
    assert "in its own network" in lines[1]

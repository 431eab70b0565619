"""What each command prints, whole: `tests/cli/transcripts`. Run with --golden to write them anew, then read the change.

A line `$ awp-publish ...` is a command, run in a copy of `tests/cli/project`; `<<< text` is what it reads, and with
TERMINAL in front a person has typed it. What it says on standard error has a bar in front, and its status is in
brackets, unless it is 0. `$ cat FILE` shows a file. Each command gives the same status and one value with --json.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree
from threading import Thread
from typing import ClassVar
from urllib.parse import urlsplit

import pytest

from tests.conftest import run_command

HERE = Path(__file__).parent
LONG = 150
"""Lines of JSON that are shown as fewer, longer ones."""
SITES = ("site", "own")
"""Folders of the project that are served, each at an address of its own: http://site.test."""
CHANGING = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"(\"request_id\": |\"x-request-id\": )\"\w+\"", r'\1"ID"'),
    (r"(\"instance\": .*)#\w+", r"\1#ID"),
    (r"\"token\": \"[^\"]+\"", '"token": "TOKEN"'),
    (r"\(/\S+/(\S+\.py), line \d+\)", r"(\1)"),
    (r"\[Errno \d+\]", "[ERRNO]"),
]


class Static(SimpleHTTPRequestHandler):
    """A site of files. Its answer to a call is a refusal that quotes it."""

    requested: ClassVar[list[str]] = []

    def translate_path(self, path: str) -> str:
        file = Path(super().translate_path(urlsplit(path).path))
        return str(next((each for kind in (".html", ".txt") if (each := file.with_suffix(kind)).is_file()), file))

    def do_GET(self) -> None:
        self.requested.append(self.path)
        if self.path != "/away":
            super().do_GET()
            return
        self.send_response(302)
        self.send_header("Location", "http://169.254.169.254/latest/")
        self.end_headers()

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
        body = json.dumps(
            {
                "code": "REFUSED",
                "status": 409,
                "detail": f"{self.path} {sent}",
                "recovery": "Wait.",
                "errors": [7, {"pointer": "/a"}],
            }
        )
        self.send_response(409)
        self.send_header("Content-Type", "application/problem+json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(copytree(HERE / "project", tmp_path / "project"))


@pytest.fixture
def addresses(folder: Path) -> Iterator[Mapping[str, str]]:
    """Serve the sites. Gives the address of each by the one that it has in transcripts."""
    with ExitStack() as stack:
        addresses = {}
        for name in SITES:
            handler = partial(Static, directory=folder / name)
            server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
            stack.callback(server.shutdown)
            Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            addresses[f"{name}.test"] = f"127.0.0.1:{server.server_port}"
        yield addresses


def play(line: str, folder: Path, addresses: Mapping[str, str]) -> str:
    """Run a command of a transcript, and return it with all that it said."""
    command, _, text = line.partition(" <<<")
    for name, address in addresses.items():
        command = command.replace(name, address)
    words, given = shlex.split(command), text[1:].encode().decode("unicode_escape")
    if words[0] == "cat":
        return f"$ {line}\n{(folder / words[1]).read_text().rstrip()}\n"
    is_terminal, arguments = words[0] == "TERMINAL", words[words.index("awp-publish") + 1 :]
    done = run_command(*arguments, cwd=folder, given=given, is_terminal=is_terminal)
    output = done.stdout
    if output.count("\n") > LONG:
        output = re.sub(r"\n {5,}|\n {4}(?=[\]}])", " ", json.dumps(json.loads(output), indent=1)) + "\n"
    if not is_terminal:
        as_json = run_command("--json", *arguments, cwd=folder, given=given)
        value = json.loads(as_json.stdout)
        assert as_json.returncode == done.returncode, line
        assert done.returncode < 2 or done.stderr == f"awp-publish: {value['error']}\n" == as_json.stderr, line
    bars = "".join(f"| {each}\n" for each in done.stderr.splitlines())
    said = f"{output}{bars}{f'[{done.returncode}]' * bool(done.returncode)}".replace(str(folder), "FOLDER")
    for name, address in addresses.items():
        said = said.replace(address, name)
    for pattern, replacement in CHANGING:
        said = re.sub(pattern, replacement, said, flags=re.MULTILINE)
    return f"$ {line}\n{said.rstrip()}\n"


@pytest.fixture
def compare(
    folder: Path, addresses: Mapping[str, str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    monkeypatch.setenv("NO_COLOR", "1")

    def compare(name: str) -> None:
        path = HERE / "transcripts" / f"{name}.txt"
        commands = [line[2:] for line in path.read_text().splitlines() if line.startswith("$ ")]
        transcript = "\n".join(play(line, folder, addresses) for line in commands)
        if request.config.getoption("--golden"):
            path.write_text(transcript)
        assert transcript == path.read_text()

    return compare


def test_show_lists_all_that_is_published(compare):
    compare("show")


def test_an_unusable_application_is_reported_in_one_line(compare):
    compare("applications")


def test_actions_are_called(compare):
    compare("call")


def test_a_call_that_cannot_be_made_or_is_refused_says_why(compare):
    compare("refused")


def test_a_person_at_a_terminal_is_asked_for_what_is_missing(compare):
    compare("terminal")


def test_documents_are_checked(compare):
    compare("check")


def test_descriptions_are_judged(compare):
    compare("judge")


def test_rules_codes_and_limits_are_explained(compare):
    compare("explain")


def test_documents_are_exported_with_their_headers(compare):
    compare("export")


def test_pages_are_shown_as_agents_read_them(compare):
    compare("pages")


def test_a_site_is_synthesized_from_what_it_shows(compare):
    compare("synthesize")


def test_nothing_is_requested_that_leads_away_is_forbidden_or_does_something(addresses):
    Static.requested.clear()
    assert run_command("synthesize", "--allow-private", f"http://{addresses['site.test']}").returncode == 0
    documents = ["/.well-known/ai-actions.json", "/.well-known/awas.json", "/agent.json"]
    pages = ["/", "/about", "/away", "/gone", "/notes", "/untitled", "/robots.txt"]
    assert sorted(Static.requested) == sorted([*documents, *pages, "/api/described.json"])


def test_a_page_of_countless_forms_labels_and_choices_is_read(addresses, folder):
    forms = "".join(f"<form action=/{number} id=f{number}><input name=q></form>" for number in range(6_000))
    labels = "".join(f"<label for=i{number}>Words</label><input form=f{number} name=p>" for number in range(6_000))
    radios = "<input type=radio name=size value=1>" * 20_000
    (folder / "site" / "index.html").write_text(f"{forms}{labels}<form action=/sizes>{radios}</form>")
    options = ("--allow-private", "--max-pages", "1")
    answer = json.loads(run_command("synthesize", *options, f"http://{addresses['site.test']}").stdout)
    assert len(answer["documents"]["/agent.json"]["actions"]) == 100
    assert answer["left_out"] == [
        {"at": f"http://{addresses['site.test']}", "why": "5901 more, beyond the first 100 actions"}
    ]


def test_a_site_without_an_action_learns_why_its_description_gave_none(addresses, folder):
    elsewhere = {"openapi": "3.1.0", "servers": [{"url": "https://api.example"}], "paths": {"/x": {"get": {}}}}
    (folder / "site" / "openapi.json").write_text(json.dumps(elsewhere))
    (folder / "site" / "index.html").write_text("<title>Notes</title><a href=/openapi.json>API</a>")
    answer = run_command("synthesize", "--allow-private", "--max-pages", "1", f"http://{addresses['site.test']}")
    assert answer.returncode == 1
    assert "openapi.json: its server is another site: https://api.example" in answer.stdout

"""Skills: declared once, they are in the agent-skills index, in llms.txt and at the MCP door (SEP-2640)."""

import hashlib
from textwrap import dedent

import pytest
from fastapi import FastAPI
from hypothesis import given, strategies as st

from awp_publish import About, AgentPublisher, Site
from awp_publish.plugins.skills.front_matter import quoted, read_front_matter
from awp_publish.problems import DeclarationError
from tests.plugins.mcp.mcp_messages import VERSIONS, message, post

yaml = pytest.importorskip("yaml")

EXTENSION = "io.modelcontextprotocol/skills"
INDEX = "/.well-known/agent-skills/index.json"
PICTURE = b"\x89PNG\r\n\x00\xff"


def make_site(**options) -> Site:
    return Site("Shop", "Sells things.", url="https://shop.example", plugins=["mcp"], **options)


def ask(client, method, **params):
    answer = post(client, message(method, params)).json()
    return answer.get("result") or answer["error"]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "refunds"
    (folder / "references" / "deep").mkdir(parents=True)
    (folder / "SKILL.md").write_bytes(
        b'---\nname: refunds\ndescription: "Give money back: politely."\n'
        b'metadata:\n  version: "1.0"\n  level: 3\n---\r\n\n# Refunds\n'
    )
    (folder / "references" / "FORMS.md").write_text("# Formulare für alle\n")
    (folder / "references" / "deep" / "a b.png").write_bytes(PICTURE)
    (folder / "run.js").write_text("alert(1)")
    (folder / ".git").mkdir()
    (folder / ".git" / "secret").write_text("secret")
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    (folder / "link.txt").symlink_to(outside)
    return folder


@pytest.fixture
def client(folder, open_client):
    site = make_site()

    @site.agent("order", effect="write", confirm=True, examples=[{"title": "Emma"}])
    async def order(title: str) -> str:
        """Order a book."""
        return title

    site.skill("refunds", folder)

    @site.skill("how_to_order", "# How to order\n\nCall `order`.\n")
    def how_to_order() -> None:
        """Order a book. Use it when somebody wants to buy."""

    return open_client(AgentPublisher(FastAPI(), site=site))


def test_one_declaration_is_told_in_three_places_with_the_same_bytes(client):
    index = {skill["name"]: skill for skill in client.get(INDEX).json()["skills"]}
    entries = {skill["frontmatter"]["name"]: skill for skill in ask(client, "skills/list")["skills"]}
    assert list(index) == list(entries) == ["refunds", "how-to-order", "shop"]
    for name, listed in index.items():
        served = client.get(listed["url"])
        assert served.headers["content-type"].startswith("text/markdown")
        digest = "sha256:" + hashlib.sha256(served.content).hexdigest()
        entry = entries[name]
        assert entry["uri"] == f"skill://{name}/SKILL.md"
        assert (listed["digest"], entry["resources"][0]) == (
            digest,
            {"uri": entry["uri"], "digest": digest, "size": len(served.content)},
        )
        (read,) = ask(client, "resources/read", uri=entry["uri"])["contents"]
        assert read["text"].encode() == served.content
        assert listed["description"] == entry["frontmatter"]["description"]
        assert yaml.safe_load(served.text.split("---")[1]) == entry["frontmatter"]
        assert f"{listed['url']})" in client.get("/llms.txt").text


def test_the_files_of_a_folder_belong_to_the_skill_but_not_what_is_hidden_or_outside(client):
    entry = ask(client, "skills/get", uri="skill://refunds/SKILL.md")["skill"]
    assert [resource["uri"].removeprefix("skill://refunds/") for resource in entry["resources"]] == [
        "SKILL.md",
        "references/FORMS.md",
        "references/deep/a%20b.png",
        "run.js",
    ]
    for resource in entry["resources"]:
        (read,) = ask(client, "resources/read", uri=resource["uri"])["contents"]
        body = client.get(resource["uri"].replace("skill://", "/.well-known/agent-skills/")).content
        assert (len(body), "sha256:" + hashlib.sha256(body).hexdigest()) == (resource["size"], resource["digest"])
        assert ("blob" in read) is (body == PICTURE)
    assert client.get("/.well-known/agent-skills/refunds/run.js").headers["content-type"].startswith("text/plain")
    assert client.get("/.well-known/agent-skills/refunds/.git/secret").status_code == 404


def test_lists_are_cached_as_others_and_the_capability_says_so(client):
    assert ask(client, "server/discover")["capabilities"]["extensions"][EXTENSION] == {"directoryRead": True}
    for answer in (ask(client, "skills/list"), ask(client, "skills/get", uri="skill://shop/SKILL.md")):
        assert answer.keys() >= {"ttlMs", "cacheScope", "resultType"}
    listed = {resource["uri"]: resource for resource in ask(client, "resources/list")["resources"]}
    assert listed["skill://how-to-order/SKILL.md"]["name"] == "how-to-order"
    assert listed["skill://how-to-order/SKILL.md"]["description"].startswith("Order a book.")


def test_the_skill_of_the_site_has_its_examples(client):
    assert '- order: {"title":"Emma"}' in client.get("/.well-known/agent-skills/shop/SKILL.md").text


@pytest.mark.parametrize("version", VERSIONS)
def test_a_site_that_leaves_skills_out_has_none(open_client, version):
    site = make_site(about=About(leave_out=["agent_skills"]))
    site.skill("how_to", "Call nothing.")
    client = open_client(AgentPublisher(FastAPI(), site=site))
    assert client.get(INDEX).status_code == 404
    assert post(client, message("skills/list", version=version), version).json()["error"]["code"] == -32601


def test_a_skill_needs_no_action(open_client):
    site = make_site()
    site.skill("how_to", "---\nname: how-to\ndescription: Know how.\n---\n# How to\n")
    client = open_client(AgentPublisher(FastAPI(), site=site))
    assert [skill["name"] for skill in client.get(INDEX).json()["skills"]] == ["how-to"]
    assert "how-to/SKILL.md" in client.get("/llms.txt").text


def test_a_skill_with_the_name_of_the_site_replaces_its_own(open_client):
    site = make_site()
    site.agent("order", description="Order.")(lambda: "x")
    site.skill("shop", "Only call order.")
    client = open_client(AgentPublisher(FastAPI(), site=site))
    assert [skill["name"] for skill in client.get(INDEX).json()["skills"]] == ["shop"]
    assert "Only call order." in client.get("/.well-known/agent-skills/shop/SKILL.md").text


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "no/such/folder",
        None,
        "# A heading only",
        "---\nname: other\ndescription: x\n---\n",
        "---\nname: how-to\n---\n",
        "---\nname: how-to\ndescription: x\n",
        "---\nname: how-to\ndescription: &anchor x\n---\n",
        "---\nname: how-to\ndescription: x\ndescription: y\n---\n",
    ],
)
def test_an_invalid_skill_stops_the_start_and_is_named(open_client, wrong):
    site = make_site()
    site.skill("how_to", wrong)
    with pytest.raises(DeclarationError, match='skill "how_to"'):
        open_client(AgentPublisher(FastAPI(), site=site))


def test_a_skill_that_no_client_would_take_is_refused(open_client, folder):
    for number in range(520):
        (folder / f"{number}.txt").write_text("x")
    site = make_site()
    site.skill("refunds", folder)
    with pytest.raises(DeclarationError, match="512 files"):
        open_client(AgentPublisher(FastAPI(), site=site))


def test_ids_are_checked_where_they_are_written():
    site = make_site()
    site.skill("how_to", "Do.")
    for wrong in ("How-To", "", "how_to"):
        with pytest.raises(DeclarationError):
            site.skill(wrong, "Do.")
    with pytest.raises(DeclarationError, match="folder"):
        site.skill("more", 5)  # type: ignore[arg-type]


def test_front_matter_is_read_as_yaml_says():
    text = dedent(
        """\
        # a comment
        name: how-to
        description: >
          Order a book,
          politely.

          Use it often.
        literal: |-
          one
            two
        license: Apache-2.0  # a comment
        quoted: "a: \\"b\\" # c"
        single: 'it''s'
        allowed-tools: [search, order]
        numbers:
          - 1
          - 1.5
          - -3
        metadata:
          version: "1.0"
          deep:
            yes_or_no: true
            nothing:
        tags:
        - a
        - b c
        url: https://shop.example/x
        """
    )
    found, rest = read_front_matter("skill", f"---\n{text}---\nBody\n")
    assert (found, rest) == (yaml.safe_load(text), "Body")


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9-]{0,9}", fullmatch=True), st.text(max_size=40), min_size=1))
def test_a_value_written_by_a_library_is_read_the_same_or_refused(facts):
    written = yaml.safe_dump(facts, default_style='"', width=10_000, allow_unicode=True)
    try:
        found, _ = read_front_matter("skill", f"---\n{written}---\n")
    except DeclarationError:
        return
    assert found == facts


@pytest.mark.parametrize(
    "text",
    [
        "a: |\nb: 1\n",
        "a: >\n",
        "a: |\n  x\n\n\nb: |-\n    y\n     z\n",
        "a: 'x # y' # comment\n",
        'a: "x # y" # comment\nb: x#y\n',
        "a: 'it''s'\nb: 0x1F\nc: 0o17\nd: -1.5e+3\ne: .5\n",
        "a: null\nb: ~\nc:\nd: true\n",
        "a:\n  - 'x'\n  - y # z\n",
        "a: [x, 1, y z]\nb: []\n",
        "a:\n  - # nothing\n  - x\n",
        "a:\n  b:\n    c: d\n  e: f\n",
    ],
)
def test_front_matter_is_read_as_a_library_reads_it(text):
    found, _ = read_front_matter("skill", f"---\n{text}---\n")
    assert found == (yaml.safe_load(text.replace("0o17", "017")))


def test_a_description_is_quoted_so_that_a_library_reads_it_back():
    for text in ('a "b" c', "a\\b", "a: b # c"):
        assert yaml.safe_load(f"description: {quoted(text)}") == {"description": text}


def test_several_skills_are_all_published_and_a_file_in_another_encoding_is_refused(tmp_path):
    site = make_site()
    for number in range(3):
        site.skill(f"skill_{number}", "Do it.", description="How to do it.")
    assert [skill.name for skill in site.freeze(FastAPI()).skills] == ["skill-0", "skill-1", "skill-2"]
    (tmp_path / "SKILL.md").write_bytes("---\nname: how-to\ndescription: Für alle.\n---\n".encode("latin-1"))
    site = make_site()
    site.skill("how_to", tmp_path)
    with pytest.raises(DeclarationError, match="is not UTF-8"):
        site.freeze(FastAPI())


def test_a_skill_is_markdown_wherever_it_is_listed_and_read(client):
    listed = [
        resource for resource in ask(client, "resources/list")["resources"] if resource["uri"].endswith("SKILL.md")
    ]
    assert len(listed) == 3
    for item in listed:
        [read] = ask(client, "resources/read", uri=item["uri"])["contents"]
        assert item["mimeType"] == read["mimeType"] == "text/markdown"

"""Write the tables that are made from the code into the pages: `make docs`. A test notices when one is out of date."""

from pathlib import Path

from awp_publish.policy.table import claim_table, gate_table
from awp_publish.problems import ALL
from awp_publish.settings import About, ActionSettings, AgentSettings, AwasSettings, SiteSettings, option_rows


def problem_table() -> str:
    """Every problem type, in the order of the tree."""
    rows = [f"| `{kind.slug}` | {kind.default_status} | {kind.title} | {kind.default_recovery} |" for kind in ALL]
    return "\n".join(("| type | status | title | recovery |", "|---|---|---|---|", *rows))


def option_table(columns: str, options: type, *, beyond: type | None = None) -> str:
    """The options of a settings class, without those of the class that it extends."""
    inherited = dict(option_rows(beyond)) if beyond is not None else {}
    own = [(name, option) for name, option in option_rows(options) if name not in inherited]
    rows = [f"| `{name}` | {option.meaning} | {option.other} |" for name, option in own]
    return "\n".join((columns, "|---|---|---|", *rows))


PUBLISHED = "| option | what it says | where it is published |"
DEFAULT = "| option | what it says | default |"

MAKERS = {
    "site options": lambda: option_table(PUBLISHED, SiteSettings),
    "about options": lambda: option_table(PUBLISHED, About),
    "action options": lambda: option_table(DEFAULT, ActionSettings),
    "awas options": lambda: option_table(DEFAULT, AwasSettings),
    "agent options": lambda: option_table(DEFAULT, AgentSettings, beyond=ActionSettings),
    "problems": problem_table,
    "gates": gate_table,
    "claims": claim_table,
}


def renew(text: str) -> str:
    """A page with its tables made anew."""
    for name, make in MAKERS.items():
        before, start, rest = text.partition(f"<!-- table: {name} -->\n")
        if start:
            _, end, after = rest.partition("<!-- end -->")
            text = f"{before}{start}{make()}\n{end}{after}"
    return text


def main() -> None:
    for page in sorted(Path(__file__).parent.glob("*.md")):
        text = page.read_text()
        if renew(text) != text:
            page.write_text(renew(text))
            print(f"renewed {page.name}")


if __name__ == "__main__":
    main()

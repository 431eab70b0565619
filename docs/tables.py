"""Write the tables that are made from the code into the pages: `make docs`. A test notices when one is out of date."""

from pathlib import Path

from awp_publish.policy.table import claim_table, gate_table
from awp_publish.problems import ALL


def problem_table() -> str:
    """Every problem type, in the order of the tree."""
    rows = [f"| `{kind.slug}` | {kind.default_status} | {kind.title} | {kind.default_recovery} |" for kind in ALL]
    return "\n".join(("| type | status | title | recovery |", "|---|---|---|---|", *rows))


MAKERS = {"problems": problem_table, "gates": gate_table, "claims": claim_table}


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

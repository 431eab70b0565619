"""The integration keeps to what Django and asgiref document, but for three names, each with its reason."""

import re
from pathlib import Path

import awp_publish_django

FOLDER = Path(awp_publish_django.__file__).parent
DOCUMENTED = {"_meta", "_default_manager"}
OURS = {"_lock"}
OWN = re.compile(r"\b(self|cls|call|field|file|publication)\._\w+")
UNDOCUMENTED = re.compile(r"\._[a-z]\w*|[\"'](_[a-z]\w+)[\"']|trans_real|single_thread_executor|sys\.argv|outbox")


def test_private_names_of_django_are_three_each_with_a_comment():
    found: dict[str, list[str]] = {}
    for path in sorted(FOLDER.rglob("*.py")):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            code = OWN.sub("", line.partition("#")[0])
            for match in UNDOCUMENTED.finditer(code):
                name = (match[1] or match[0]).lstrip(".")
                if name in DOCUMENTED | OURS or name.startswith(("_awp", "_method")):
                    continue
                nearby = " ".join(lines[max(0, number - 3) : number + 3])
                assert "Private" in nearby, f"{path.name}:{number + 1} uses {name} without a reason"
                found.setdefault(name, []).append(f"{path.name}:{number + 1}")
    assert set(found) == {"_dont_enforce_csrf_checks", "_resource_closers", "single_thread_executor"}, found


def test_no_class_of_djangos_is_changed():
    for path in FOLDER.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"^\s*(BaseForm|BaseFormSet|HttpRequest|kind)\.\w+ = ", text, re.MULTILINE), path

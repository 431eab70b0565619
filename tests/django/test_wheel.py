"""What `pip install` gets: the wheel, built anew and used from a folder of its own."""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from itertools import chain
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

import awp_publish
from tests.django.servers import ROOT

CONTRIB = ROOT / "contrib" / "awp_publish_django"
USE = """
import awp_publish, awp_publish_django
from pathlib import Path
for package in (awp_publish, awp_publish_django):
    assert Path(package.__file__).is_relative_to(HERE), package.__file__
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("check", fail_level="WARNING")
call_command("agents", "check")
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def test_the_wheel_has_every_file_of_the_packages(installed):
    for source in (ROOT / "awp_publish", *CONTRIB.parent.glob("awp_publish_*")):
        wanted = {path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"}
        there = {path.relative_to(installed / source.name) for path in (installed / source.name).rglob("*")}
        assert wanted <= there
    for name in ("py.typed", "migrations/0001_initial.py", "templatetags/agents.py", "management/commands/agents.py"):
        assert (installed / "awp_publish_django" / name).is_file()
    assert {path.name for path in installed.iterdir() if path.suffix != ".dist-info"} == {
        "awp_publish",
        "awp_publish_django",
        "awp_publish_fastapi",
        "awp_publish_openapi",
        "awp_publish_pytest",
    }


def test_the_wheel_has_a_bill_of_materials_that_names_what_it_needs(installed):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [
        texts
        for name, texts in project["optional-dependencies"].items()
        if name not in ("demo", "test", "site", "bench")
    ]
    required = {Requirement(text).name for text in project["dependencies"]}
    optional = {Requirement(text).name for text in chain.from_iterable(extras)} - {project["name"]}
    [path] = installed.glob("*.dist-info/sboms/*")
    bill = json.loads(path.read_text())
    assert (path.name, bill["bomFormat"], bill["specVersion"]) == ("awp-publish.cdx.json", "CycloneDX", "1.6")
    own = bill["metadata"]["component"]
    assert own["purl"] == f"pkg:pypi/awp-publish@{awp_publish.__version__}"
    scopes = {component["name"]: component["scope"] for component in bill["components"]}
    assert scopes == dict.fromkeys(optional, "optional") | dict.fromkeys(required, "required")
    [starlette] = [component for component in bill["components"] if component["name"] == "starlette"]
    assert [one["value"] for one in starlette["properties"]] == ["starlette<2,>=0.41"]
    refs = [component["bom-ref"] for component in (own, *bill["components"])]
    assert [dependency["ref"] for dependency in bill["dependencies"]] == refs
    assert bill["dependencies"][0]["dependsOn"] == refs[1:]


@pytest.mark.slow
def test_a_project_runs_from_the_wheel(installed, tmp_path):
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "django.md").read_text(), re.DOTALL)
    database = 'DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},'
    script = tmp_path / "project.py"
    script.write_text(
        example.replace("ROOT_URLCONF", f"{database} ROOT_URLCONF", 1) + USE.replace("HERE", repr(str(installed)))
    )
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    subprocess.run([sys.executable, "-W", "error", str(script)], check=True, cwd=tmp_path, env=environment)

"""A site for a project of Django, in its settings."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from awp_publish.cli.sources import FileChange, read_source, refuse_twice, site_lines, title_of
from awp_publish.problems import DeclarationError

SETTINGS: Final = re.compile(r"DJANGO_SETTINGS_MODULE[\"']\s*,\s*[\"']([\w.]+)[\"']")


def plan_django(folder: Path, module: str) -> Iterator[FileChange]:
    base = folder.joinpath(*module.split("."))
    path = next((file for file in (base.with_suffix(".py"), base / "__init__.py") if file.is_file()), None)
    text = read_source(path) if path is not None else None
    if path is None or text is None:
        raise DeclarationError(f"{folder}", f"manage.py uses the settings {module}, which are not in this folder.", "")
    refuse_twice(path, text)
    package = module.rpartition(".settings")[0] or module.rpartition(".")[0]
    agents = folder.joinpath(*package.split(".")) / "agents.py" if package else folder / "agents.py"
    if agents.exists():
        raise DeclarationError(str(agents), "exists already.", "Rename it, or follow docs/django.md by hand.")
    is_tuple = {name: re.search(rf"^{name}\s*=\s*\(", text, re.MULTILINE) for name in ("INSTALLED_APPS", "MIDDLEWARE")}

    def added(name: str, value: str) -> str:
        return f'{name} += ("{value}",)' if is_tuple[name] else f'{name} += ["{value}"]'

    site = f"{package}.agents.site" if package else "agents.site"
    lines = [
        "# What agents see of this project: awp_publish",
        added("INSTALLED_APPS", "awp_publish_django"),
        added("MIDDLEWARE", "awp_publish_django.middleware.AgentPublisherMiddleware"),
        f'AWP_PUBLISH = {{"SITE": "{site}"}}',
    ]
    newline = "\r\n" if "\r\n" in text else "\n"
    yield FileChange(path, text, newline.join([text.rstrip(), "", *lines, ""]))
    name = title_of(Path(package.rpartition(".")[2] or folder.resolve().name))
    yield FileChange(
        agents,
        None,
        "\n".join(
            [
                f'"""What agents see of {name}."""',
                "",
                "import os",
                "",
                "from awp_publish import Site",
                "",
                *site_lines("site", name, "", "views"),
                "",
            ]
        ),
    )

"""`awp-publish robots`: prints the lines that robots.txt may have about the pages of an application."""

from argparse import Namespace
from typing import Any

import orjson

from awp_publish.documents.som_robots import robots_lines_of
from awp_publish.plugin import Command, LoadedApplication
from awp_publish.plugins.pages import som


def run(console: Any, application: LoadedApplication, options: Namespace) -> int:
    """Print the lines about pages for robots.txt. Returns 1 if pages are not available as SOM."""
    announced = application.documents.get(som.PATH)
    if announced is None:
        console.warn(f"{application.target} does not serve its pages as SOM")
        return 1
    lines = robots_lines_of(orjson.loads(announced.body))
    console.json({"lines": lines.splitlines()})
    console.block(lines.removesuffix("\n"))
    return 0


ROBOTS = Command(help="print lines for robots.txt about an application's pages", run=run)

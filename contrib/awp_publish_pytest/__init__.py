"""A plugin of pytest: with `--agents-drift` every declared page of an application is a test of its own.

    $ pytest --agents-drift=shop.app:app

The application may stand in the configuration, as `agents_app = "shop.app:app"`; then the option needs no value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from awp_publish.plugins.actions_json.differences import Drift

_CONFIGURED: Final = ""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option and the setting."""
    group = parser.getgroup("agents", "what a site publishes to agents")
    group.addoption(
        "--agents-drift",
        metavar="MODULE:APP",
        nargs="?",
        const=_CONFIGURED,
        help="render the declared pages of an application, and hold them to its actions.json",
    )
    group.addoption("--agents-browser", action="store_true", help="with --agents-drift: render the pages in Chromium")
    parser.addini("agents_app", "the application of --agents-drift, as module:app", default="")


class DriftFound(Exception):
    """A page has drifted; the message has the findings."""


class PageDrift(pytest.Item):
    """The findings of one page. Warnings fail nothing, and are shown as pytest shows warnings."""

    drifts: Sequence[Drift] = ()

    def runtest(self) -> None:
        """Fail where there is an error."""
        for drift in self.drifts:
            if drift.level != "error":
                self.warn(pytest.PytestWarning(str(drift)))
        errors = [str(drift) for drift in self.drifts if drift.level == "error"]
        if errors:
            raise DriftFound("\n".join(errors))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """Show the findings, and no traceback: nothing of the plugin is of interest."""
        return str(excinfo.value)

    def reportinfo(self) -> tuple[str, int, str]:
        """Say what the test is."""
        return "agents-drift", 0, self.name


class DriftCollector(pytest.Collector):
    """The pages of an application."""

    def __init__(self, *, target: str, **arguments: object) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]
        self.target = target

    def collect(self) -> Iterator[pytest.Item]:
        """Inspect the application once, and give a test for each page."""
        from awp_publish.cli.check import drift_of
        from awp_publish.problems import DeclarationError

        try:
            paths, drifts = drift_of(self.target, browser=bool(self.config.getoption("--agents-browser")))
        except (ImportError, AttributeError, DeclarationError) as error:
            raise self.CollectError(f"--agents-drift: {error}") from error
        for path in dict.fromkeys((*paths, *(drift.page for drift in drifts))):
            item: PageDrift = PageDrift.from_parent(self, name=path or "map")
            item.drifts = [drift for drift in drifts if drift.page == path]
            yield item


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the pages to the tests."""
    option = config.getoption("--agents-drift")
    if option is None:
        return
    target = option or config.getini("agents_app")
    if not target:
        raise pytest.UsageError("--agents-drift needs an application: --agents-drift=module:app, or agents_app.")
    collector = DriftCollector.from_parent(session, name=f"agents-drift {target}", target=str(target))
    try:
        items.extend(collector.collect())
    except collector.CollectError as error:
        raise pytest.UsageError(str(error)) from error

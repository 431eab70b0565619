"""Page reads in the record of traffic."""

from collections.abc import Callable

from awp_publish.calls.call import Credentials, Label
from awp_publish.calls.callers import AgentAuthenticator
from awp_publish.calls.observe import CallCounter
from awp_publish.http.exchange import Fields
from awp_publish.plugin import Serving
from awp_publish.plugins.pages.names import PageNames


def count_readings(serving: Serving, counter: CallCounter) -> Callable[[str, str, int, Fields], None]:
    """Return a function that counts a page read as SOM or Markdown, under the name of its page; an error has none."""
    agents = [
        authenticator for authenticator in serving.site.authenticators if isinstance(authenticator, AgentAuthenticator)
    ]
    names: list[PageNames] = []

    def count(url: str, requested: str, status: int, fields: Fields) -> None:
        if not names:
            names.append(PageNames(serving.site.catalogs, serving.application.routes()))
        label: Label = "unknown"
        for agent in agents:
            label = agent.label_of(Credentials({"user-agent": fields.get(b"user-agent", b"").decode("latin-1")}))
        is_page = status < 400
        name = names[0].name_of(url) if is_page else ""
        counter.add("som" if requested == "som" else "markdown", name, "", label, "ok" if is_page else str(status))

    return count

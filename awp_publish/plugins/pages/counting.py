"""Page reads in the record of traffic."""

from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from awp_publish.calls.authentication import AgentAuthenticator
from awp_publish.calls.call import Credentials, Label
from awp_publish.calls.invoke import CallCounter
from awp_publish.http.exchange import Fields


def count_readings(counter: CallCounter, authenticators: Iterable[object]) -> Callable[[str, str, int, Fields], None]:
    """Return a function that counts a page read as SOM or Markdown.

    For an error the path is left out: callers may invent paths.
    """
    agents = [one for one in authenticators if isinstance(one, AgentAuthenticator)]

    def count(url: str, requested: str, status: int, fields: Fields) -> None:
        label: Label = "unknown"
        for one in agents:
            label = one.label_of(Credentials({"user-agent": fields.get(b"user-agent", b"").decode("latin-1")}))
        is_page = status < 400
        path = urlsplit(url).path or "/"
        format_name = "som" if requested == "som" else "markdown"
        counter.add(format_name, path if is_page else "", "", label, "ok" if is_page else str(status))

    return count

"""Parts of the overview's pages, whole: `transcripts`, in the words of `tests/transcript.py`."""

from pathlib import Path

from tests.client import TestClient
from tests.plugins.everything import make_everything
from tests.transcript import compare

CHANGING = [
    (r"(timestamp|expires_at|ratelimit|x-ratelimit-reset)(&quot;|\"|</dt><dd>): ?(&quot;)?[^&<]+", r"\1 ..."),
    (r"[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{16}\b", "ID"),
    (r"[\d,.]+ (bytes|kB|tokens|ms)|<td>\d+</td>", "N"),
    (r"(&quot;|\")[\w.=-]{60,}(&quot;|\")", "TOKEN"),
]


def test_the_overview_answers_as_in_the_transcripts(request):
    with TestClient(make_everything(["overview", "mcp"]), base_url="https://shop.example") as client:
        compare(Path(__file__).parent / "transcripts" / "pages.txt", client, request, *CHANGING)

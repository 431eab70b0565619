"""What guarded routes answer to direct requests, whole: `transcripts`, in the words of `tests/transcript.py`."""

from pathlib import Path

from tests.client import TestClient
from tests.http.test_transcripts import CHANGING, make_echo
from tests.transcript import compare


def test_guarded_routes_answer_as_in_the_transcripts(request):
    app = make_echo({"idempotency": "24h", "scopes": ["buy"]}, guard_routes=True)
    with TestClient(app, base_url="https://shop.example", raise_server_exceptions=False) as client:
        compare(Path(__file__).parent / "transcripts" / "routes.txt", client, request, *CHANGING)

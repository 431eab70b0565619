"""What addresses, names and documents of clients come to: `transcripts/functions.txt`, in the words of
`tests/function_transcripts.py`.

`fetch` is given the answer of a client's server: its status, headers and document.
"""

from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson

from awp_publish.plugins.sign_in import clients
from awp_publish.plugins.sign_in.errors import OAuthError
from awp_publish.plugins.sign_in.names import shown_name
from awp_publish.plugins.sign_in.redirects import (
    is_local,
    is_loopback,
    matches,
    shown_host,
    why_refused,
    with_parameters,
)
from tests.function_transcripts import compare

CLIENT = "https://agent.example/client.json"


def test_functions_of_clients_answer_as_in_the_transcript(request, monkeypatch):
    def fetch(status: int, headers: dict[str, str], document: Any, client_id: str = CLIENT) -> Any:
        message = Message()
        for name, value in headers.items():
            message[name] = value
        body = document.encode() if isinstance(document, str) else orjson.dumps(document)
        answer = SimpleNamespace(status=status, headers=message, body=body)

        def send(*given: Any, **options: Any) -> Any:
            if status == 0:
                raise OSError("It is away.")
            return answer

        monkeypatch.setattr(clients, "request", send)
        seconds, client = clients.fetch_client(client_id, None)
        return [seconds, client.id, client.name, client.redirects, client.host]

    def read(metadata: Any, client_id: str = CLIENT) -> Any:
        try:
            client = clients.read_document(client_id, metadata, None)
        except OAuthError as error:
            return [error.code, error.detail]
        return [client.id, client.name, client.redirects, client.origin, client.host]

    functions: dict[str, Any] = {
        "fetch": fetch,
        "read": read,
        "host": clients.host_of_document,
        "why": why_refused,
        "local": is_local,
        "loopback": is_loopback,
        "matches": matches,
        "shown_host": shown_host,
        "name": shown_name,
        "with": lambda address, parameters: with_parameters(address, **parameters),
    }
    compare(Path(__file__).parent / "transcripts" / "functions.txt", functions, request)

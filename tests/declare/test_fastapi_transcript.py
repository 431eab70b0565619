"""What is known of handlers of FastAPI, and what they are sent: `transcripts/fastapi.txt`, in lines of JSON.

`call` sends an input to an action of `tests/declare/fastapi_shapes.py`. --golden writes the text anew; read the change.
"""

from pathlib import Path
from typing import Any

from awp_publish import AgentPublisher
from tests.client import TestClient
from tests.declare import fastapi_shapes
from tests.function_transcripts import compare
from tests.guarded import KEYS, known_callers, make_shop


def test_handlers_of_fastapi_are_described_as_in_the_transcript(request):
    site = make_shop(secret_keys=KEYS, authenticate=known_callers())
    app = fastapi_shapes.make(site)
    app.add_middleware(AgentPublisher, site=site)
    client = TestClient(app, base_url="https://shop.example", raise_server_exceptions=False)
    assert client.get("/agent.json").status_code == 200
    actions = {action.id: action for action in site.catalog.actions}

    def action(name: str) -> Any:
        found = actions[name]
        target = found.target
        places = [
            " ".join([each.name, "in", each.location, *([each.wire_name] if each.wire_name != each.name else [])])
            for each in (target.parameters if target is not None else ())
        ]
        facts = {
            "name": found.name,
            "description": found.description,
            "tags": found.tags,
            "at": f"{found.method} {target.path if target is not None else ''}",
            "takes": target.content_type if target is not None else None,
            "places": places,
            "inputs": found.inputs,
            "outputs": found.outputs,
            "auth_required": found.auth_required,
            "scopes": found.scopes,
            "credentials": [f"{each.name} in {each.place}" for each in found.route_credentials],
            "answers_json": found.answers_json,
            "outputs_vary": found.outputs_vary,
            "status": found.success_status,
            "operation_id": found.operation_id,
            "is_page": found.page,
        }
        usual: dict[str, Any] = {"tags": (), "takes": None, "places": [], "inputs": {}, "outputs": {}, "scopes": ()}
        usual |= {"auth_required": False, "credentials": [], "answers_json": True, "outputs_vary": False}
        usual |= {"status": 200, "operation_id": None, "is_page": None}
        return {name: value for name, value in facts.items() if name not in usual or value != usual[name]}

    def call(name: str, inputs: Any, headers: dict[str, str] | None = None) -> Any:
        answer = client.post(f"/agents/{name}/invoke", json={"input": inputs}, headers=headers or {})
        response = answer.json()
        if answer.status_code < 300:
            return [answer.status_code, response]
        return [answer.status_code, *(response[each] for each in ("code", "detail") if each in response)]

    compare(Path(__file__).parent / "transcripts" / "fastapi.txt", {"action": action, "call": call}, request)

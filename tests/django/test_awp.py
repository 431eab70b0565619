"""The AWP door under ASGI: an agent signs in on Django's own pages, and is known to the views behind its skills."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from tests.django.shop.asgi import application
from tests.serve.awp_socket import Socket, connected


async def do(socket: Socket, number: int, method: str, **params: object) -> Any:
    socket.say(method, f"r{number}", **params)
    answer = await socket.hear(f"r{number}")
    assert "result" in answer, answer
    return answer["result"]


async def test_an_agent_signs_in_on_a_page_and_calls_what_needs_a_user():
    await sync_to_async(User.objects.create_superuser)("ann", password="a secret of ann")
    async with connected(application) as socket:
        session = (await do(socket, 1, "session.create"))["session_id"]
        opened = await do(socket, 2, "page.navigate", session_id=session, url="/admin/")
        assert opened["url"].startswith("https://shop.example/admin/login/")
        name, password = ("type", "#id_username", "ann"), ("type", "#id_password", "a secret of ann")
        steps = [name, password, ("click", "[type=submit]", "")]
        for number, (action, css, value) in enumerate(steps, 3):
            intent = {"action": action, "target": {"css": css}, "value": value}
            acted = await do(socket, number, "page.act", session_id=session, intent=intent)
        assert acted["effects"]["url"] == "https://shop.example/admin/"
        told = await do(socket, 9, "skills.invoke", session_id=session, skill="whoami")
        assert "ann" in str(told["output"])

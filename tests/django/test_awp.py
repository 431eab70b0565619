"""The AWP door under ASGI: an agent signs in on Django's own pages, and is known to the views behind its skills."""

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from tests.django.shop.asgi import application
from tests.plugins.awp.awp_socket import Socket, connected


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
        answer = await do(socket, 9, "skills.invoke", session_id=session, skill="whoami")
        assert "ann" in str(answer["output"])


class Admin:
    """An agent in Django's admin."""

    def __init__(self, socket: Socket, session: str) -> None:
        self._socket = socket
        self._session = session
        self._asked = 100

    async def open(self, url: str) -> Any:
        return await self._do("page.navigate", url=url)

    async def fill(self, css: str, **fields: object) -> Any:
        return await self._act({"action": "fill_form", "target": {"css": css}, "fields": fields})

    async def press(self, css: str) -> Any:
        return (await self._act({"action": "click", "target": {"css": css}}))["effects"]

    async def read(self) -> str:
        return str((await self._do("page.observe", budget="full"))["som"])

    async def _act(self, intent: dict[str, object]) -> Any:
        return await self._do("page.act", intent=intent)

    async def _do(self, method: str, **params: object) -> Any:
        self._asked += 1
        return await do(self._socket, self._asked, method, session_id=self._session, **params)


async def test_an_agent_adds_changes_and_deletes_in_the_admin():
    await sync_to_async(User.objects.create_superuser)("eva", password="a secret of eva")
    async with connected(application) as socket:
        admin = Admin(socket, (await do(socket, 1, "session.create"))["session_id"])
        await admin.open("/admin/auth/user/add/")
        await admin.fill("#login-form", username="eva", password="a secret of eva")
        assert (await admin.press("[type=submit]"))["url"] == "https://shop.example/admin/auth/user/add/"

        await admin.fill("#user_form", username="ben", password1="a secret of ben", password2="another one")
        await admin.press("[name=_save]")
        assert "password fields didn" in await admin.read()
        await admin.fill("#user_form", password1="a secret of ben", password2="a secret of ben")
        added = await admin.press("[name=_save]")
        assert added["url"].endswith("/change/")

        await admin.fill("#user_form", first_name="Ben", is_staff=True, email="ben@example.org")
        assert (await admin.press("[name=_continue]"))["url"] == added["url"]
        ben = await User.objects.aget(username="ben")
        assert (ben.first_name, ben.is_staff, ben.is_active, ben.email) == ("Ben", True, True, "ben@example.org")

        assert (await admin.press(".deletelink"))["url"].endswith("/delete/")
        assert (await admin.press("#content [type=submit]"))["url"] == "https://shop.example/admin/auth/user/"
        assert not await User.objects.filter(username="ben").aexists()
        await admin.press("#logout-form button")
        assert (await admin.open("/admin/"))["url"].startswith("https://shop.example/admin/login/")

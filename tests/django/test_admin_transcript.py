"""What the admin shows of recent calls and background jobs, whole: `transcripts/admin.txt`.

`get` names who looks and an address below the admin. Of a page there are the lines of its table or its fields, with
what stands beside them. --golden writes the answers anew; read the change.
"""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import django
import pytest
from awp_publish_django.models import JobRecord, RecentCall
from django.contrib.auth.models import Permission, User
from django.test import Client, override_settings

from awp_publish.calls.progress import Progress
from awp_publish.plugins.jobs.job import Job, write_job
from awp_publish.problems import Refused
from tests.django.sites import make_site
from tests.function_transcripts import compare

BEGUN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FOREVER, LONG_AGO = 4_000_000_000.0, 1.0
CALLS: tuple[dict[str, Any], ...] = (
    {"door": "woa", "action": "search", "caller": "ann", "outcome": "ok", "status": 200, "input": {"q": "Emma"}},
    {"door": "mcp", "action": "order", "caller": "", "outcome": "INVALID_INPUT", "status": 422},
    {"door": "job", "action": "order", "caller": "ann", "outcome": "UNANSWERED", "status": None},
)
JOBS = {
    "begun": Job(id="begun", action="pack", input={}, status="running", created=BEGUN, updated=BEGUN, attempt=1),
    "half": Job(
        id="half",
        action="pack",
        input={"secret": "x"},
        principal="ann",
        status="running",
        progress=Progress(0.5, "wrapping"),
        created=BEGUN,
        updated=BEGUN + timedelta(hours=1),
        attempt=2,
    ),
    "done": Job(id="done", action="pack", input={}, status="done", created=BEGUN, updated=BEGUN),
    "failed": Job(
        id="failed", action="pack", input={}, status="failed", problem=Refused("No."), created=BEGUN, updated=BEGUN
    ),
}
plain = make_site(plugins=["no:traffic"])


def lines_of(page: str) -> list[str]:
    """Return the words of a page's content, a row or a paragraph a line."""
    content = page[page.index('id="content"') :].partition(">")[2].partition("</main>")[0]
    content = re.sub(r"(?s)<(script|svg|select).*?</\1>|<input[^>]*>", "", content)
    content = re.sub(r"\s+", " ", content)
    text = re.sub(r"</(?:p|tr|li|h\d|summary|caption|label|button)>|<(?:br|div)[^>]*>", "\n", content)
    lines = (" ".join(unescape(re.sub(r"<[^>]*>", " ", line)).split()) for line in text.splitlines())
    return [line for line in lines if line]


@pytest.mark.skipif(not (5, 2) <= django.VERSION < (6,), reason="other versions have other words, in another order")
def test_the_admin_shows_calls_and_jobs_as_in_the_transcript(request):
    for number, facts in enumerate(CALLS):
        time = BEGUN + timedelta(minutes=number)
        RecentCall.objects.create(time=time, milliseconds=1.5, request_id=f"request-{number}", **facts)
    for name, job in JOBS.items():
        JobRecord.objects.create(key=name, value=write_job(job), expires=FOREVER - len(name), is_job=True)
    JobRecord.objects.create(key="unreadable", value=b"of another version", expires=FOREVER, is_job=True)
    JobRecord.objects.create(key="forgotten", value=write_job(JOBS["done"]), expires=LONG_AGO, is_job=True)
    people = {"boss": User.objects.create_superuser("boss"), "clerk": User.objects.create_user("clerk", is_staff=True)}
    people["clerk"].user_permissions.add(Permission.objects.get(codename="view_jobrecord"))

    def get(who: str, path: str) -> list[object]:
        client = Client(SERVER_NAME="shop.example")
        client.force_login(people[who])
        answer = client.get(f"/admin/awp_publish_django/{path}", headers={"accept-language": "en"})
        return [answer.status_code, *(lines_of(answer.content.decode()) if answer.status_code == 200 else ())]

    with override_settings(AWP_PUBLISH={"SITE": f"{__name__}.plain"}):
        compare(Path(__file__).parent / "transcripts" / "admin.txt", {"get": get}, request)

"""A project on a database of its own for servers whose workers are not threads: `database` names its file."""

import json
import os

import django
from django.conf import settings

if not settings.configured:
    settings.configure(
        SECRET_KEY="only for tests, and long enough for a check",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "awp_publish_django"],
        MIDDLEWARE=["awp_publish_django.middleware.AgentPublisherMiddleware"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["GREEN_DATABASE"]}},
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        AWP_PUBLISH={"SITE": f"{__name__}.site", "RECENT_CALLS": 10},
    )
    django.setup()

from awp_publish_django.store import DjangoStore
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_GET, require_POST

from awp_publish import Site

site = Site(
    name="Green",
    description="Counts its users.",
    url="http://green.example",
    store=DjangoStore(),
    secret_keys=["only for tests, and long enough for a check"],
    plugins=["mcp"],
)


@site.action("count")
@require_GET
def count(request: HttpRequest) -> HttpResponse:
    """Count users."""
    return JsonResponse({"users": User.objects.count()})


@site.action("enrol", inputs={"properties": {"name": {"type": "string"}}}, idempotency=True)
@require_POST
def enrol(request: HttpRequest) -> HttpResponse:
    """Add a user."""
    name = json.loads(request.body).get("name", "")
    return JsonResponse({"id": User.objects.create(username=request.headers["idempotency-key"], first_name=name).pk})


@site.agent("count_async")
async def count_async() -> int:
    """Count users, asynchronously."""
    return await User.objects.acount()


@site.agent("count_later", execution="async")
def count_later() -> int:
    """Count users, when there is time."""
    return User.objects.count()


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse(f"<p>{User.objects.count()} users</p>")


urlpatterns = [path("count", count), path("enrol", enrol), path("page", page)]

if __name__ == "__main__":
    call_command("migrate", run_syncdb=True, verbosity=0)
else:
    application = get_wsgi_application()

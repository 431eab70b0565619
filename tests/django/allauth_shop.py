"""allauth's own sign-in, called as agents do: prints what was answered as JSON."""

import json
import sys

import django
from django.conf import settings

settings.configure(
    SECRET_KEY="only for tests, and long enough for a check",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.messages",
        "django.contrib.sessions",
        "allauth",
        "allauth.account",
        "awp_publish_django",
    ],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "allauth.account.middleware.AccountMiddleware",
        "awp_publish_django.middleware.AgentPublisherMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    AUTHENTICATION_BACKENDS=["allauth.account.auth_backends.AuthenticationBackend"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    EMAIL_BACKEND="django.core.mail.backends.locmem.EmailBackend",
    LOGIN_URL="account_login",
    LOGIN_REDIRECT_URL="/mine/",
    ACCOUNT_EMAIL_VERIFICATION="none",
    AWP_PUBLISH={"SITE": f"{__name__}.site"},
)
django.setup()

from django.contrib.auth.decorators import login_required  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.http import HttpRequest, HttpResponse, JsonResponse  # noqa: E402
from django.test import Client  # noqa: E402
from django.urls import include, path  # noqa: E402
from django.views.decorators.http import require_GET  # noqa: E402

from awp_publish import Site  # noqa: E402

site = Site(name="Shop", description="Sells books.", url="https://shop.example", plugins=["mcp"])


@require_GET
@login_required
def mine(request: HttpRequest) -> HttpResponse:
    """Say who I am."""
    return JsonResponse({"name": request.user.get_username()})


urlpatterns = [path("accounts/", include("allauth.urls")), path("mine/", mine)]
site.include()
site.declare("sign_in", method="POST", path="/accounts/login/", description="Sign in.")
site.declare("sign_up", method="POST", path="/accounts/signup/", description="Sign up.")

if __name__ == "__main__":
    sys.modules["allauth_shop"] = sys.modules["__main__"]
    call_command("migrate", run_syncdb=True, verbosity=0)
    User.objects.create_user("ann", "ann@shop.example", "correct horse battery")
    client = Client(SERVER_NAME="shop.example", raise_request_exception=False)

    def call(agent: str, **given: object) -> list[object]:
        answer = client.post(f"/agents/{agent}/invoke", json.dumps({"input": given}), content_type="application/json")
        return [answer.status_code, answer.json()]

    told = {
        "stranger": call("mine"),
        "wrong": call("sign_in", login="ann", password="wrong"),
        "taken": call("sign_up", email="x", username="ann", password1="correct horse", password2="horse"),
        "in": call("sign_in", login="ann", password="correct horse battery"),
        "known": call("mine"),
        "inputs": dict(site.catalog.action("sign_in").inputs),
        "actions": sorted(action.id for action in site.catalog.actions),
        "pages": [page.path for page in site.catalog.pages],
    }
    json.dump(told, sys.stdout)

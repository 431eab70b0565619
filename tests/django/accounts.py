"""A shop with accounts of allauth, whose people let agents buy. Run as a module, it prepares its database."""

import os
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
        "django.middleware.security.SecurityMiddleware",
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
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
    PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.environ["ACCOUNTS_DATABASE"],
            "OPTIONS": {"timeout": 20},
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    EMAIL_BACKEND="django.core.mail.backends.dummy.EmailBackend",
    CACHES={"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}},
    LOGIN_URL="account_login",
    LOGIN_REDIRECT_URL="/",
    ACCOUNT_EMAIL_VERIFICATION="none",
    AWP_PUBLISH={"SITE": f"{__name__}.site", "URL": os.environ["ACCOUNTS_URL"], "STORE": "django"},
)
django.setup()

from awp_publish_django.asgi import get_asgi_application  # noqa: E402
from django import forms  # noqa: E402
from django.contrib import messages  # noqa: E402
from django.contrib.auth.decorators import login_required  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse  # noqa: E402
from django.urls import include, path  # noqa: E402
from django.views.decorators.http import require_GET, require_POST  # noqa: E402

from awp_publish import SignIn, Site  # noqa: E402
from tests.django.servers import PASSWORD  # noqa: E402

site = Site(name="Shop", description="Sells books.", plugins=["mcp", SignIn()])


class OrderForm(forms.Form):
    title = forms.CharField()


@site.action("list_books", outputs={"type": "array"})
@require_GET
def list_books(request: HttpRequest) -> HttpResponse:
    """List all books."""
    return JsonResponse(["Emma"], safe=False)


@site.action("order_book", inputs=OrderForm)
@require_POST
@login_required
def order_book(request: HttpRequest) -> HttpResponse:
    """Order a book."""
    form = OrderForm(request.POST)
    if form.is_valid():
        messages.success(request, f"{form.cleaned_data['title']} for {request.user.get_username()}")
        return HttpResponseRedirect("/thanks")
    return HttpResponse(form.as_p())


urlpatterns = [
    path("accounts/", include("allauth.urls")),
    path("books", list_books),
    path("orders", order_book),
]


def make_wsgi() -> object:
    return get_wsgi_application()


def make_asgi() -> object:
    return get_asgi_application()


if __name__ == "__main__":
    sys.modules["tests.django.accounts"] = sys.modules["__main__"]
    call_command("migrate", run_syncdb=True, verbosity=0)
    for name in ("ann", "ben"):
        User.objects.create_user(name, f"{name}@shop.example", PASSWORD)

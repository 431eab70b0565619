"""django-oscar's own shop, set up as its documentation says. Ours is the end."""

import os

import oscar
from oscar.defaults import *  # noqa: F403

SECRET_KEY = "only for tests, and long enough for a check"
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "tests.django.oscar_shop.urls"
USE_TZ = True
LANGUAGE_CODE = "en-gb"
SITE_ID = 1
STATIC_URL = "/static/"
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
INSTALLED_APPS = list(oscar.INSTALLED_APPS)
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "oscar.apps.basket.middleware.BasketMiddleware",
    "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "oscar.apps.search.context_processors.search_form",
                "oscar.apps.checkout.context_processors.checkout",
                "oscar.apps.communication.notifications.context_processors.notifications",
                "oscar.core.context_processors.metadata",
            ]
        },
    }
]
AUTHENTICATION_BACKENDS = (
    "oscar.apps.customer.auth_backends.EmailBackend",
    "django.contrib.auth.backends.ModelBackend",
)
HAYSTACK_CONNECTIONS = {"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}}
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["OSCAR_DATABASE"],
        "ATOMIC_REQUESTS": True,
        # A request that reads before it writes waits for other writers, where SQLite would have it fail at once.
        "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": 20},
    }
}


class WithoutMigrations(dict[str, None]):
    """Tables are made as the models are, which is quicker than their history."""

    def __contains__(self, label: object) -> bool:
        return True

    def __getitem__(self, label: str) -> None:
        return None


MIGRATION_MODULES = WithoutMigrations()

# --- Ours ---

INSTALLED_APPS += ["awp_publish_django"]
MIDDLEWARE.insert(
    MIDDLEWARE.index("oscar.apps.basket.middleware.BasketMiddleware"),
    "awp_publish_django.middleware.AgentPublisherMiddleware",
)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "ERROR"},
}
AWP_PUBLISH = {"SITE": "tests.django.oscar_shop.agents.site"}

"""A small shop, an ordinary Django project."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

FOLDER = Path(tempfile.mkdtemp(prefix="awp-shop-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
SECRET_KEY = "only for tests, and long enough for a check"
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "tests.django.shop.urls"
USE_TZ = True
USE_I18N = True
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "German")]
LOGIN_URL = "/login/"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "awp_publish_django",
    "rest_framework",
    "tests.django.shop",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "awp_publish_django.middleware.AgentPublisherMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("SHOP_DATABASE", FOLDER / "shop.db"),
        "ATOMIC_REQUESTS": True,
        "OPTIONS": {"timeout": 20},
    },
    "store": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("SHOP_STORE_DATABASE", FOLDER / "store.db"),
        "OPTIONS": {"timeout": 20},
    },
}
AWP_PUBLISH = {"SITE": "tests.django.shop.agents.site"}
WSGI_APPLICATION = "tests.django.shop.wsgi.application"

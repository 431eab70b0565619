"""The shop with two books in it, for gunicorn and uvicorn."""

import os

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.django.oscar_shop.settings"

import django

django.setup()

from awp_publish_django.asgi import get_asgi_application  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from oscar.test.factories import create_product  # noqa: E402


def fill() -> None:
    """The tables, two books, and a customer."""
    call_command("check", fail_level="WARNING")
    call_command("migrate", run_syncdb=True, verbosity=0)
    create_product(title="Emma", price=12, num_in_stock=5)
    create_product(title="Moby-Dick", price=15, num_in_stock=0)
    User.objects.create_user("ann", "ann@shop.example", "only for tests")


if __name__ == "__main__":
    fill()
else:
    wsgi, asgi = get_wsgi_application(), get_asgi_application()

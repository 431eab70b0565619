import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.django.shop.settings")

from awp_publish_django.asgi import get_asgi_application

application = get_asgi_application()

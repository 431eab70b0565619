from typing import Any

from django.apps import apps
from django.urls import include, path

shop: Any = apps.get_app_config("oscar")
urlpatterns = [path("", include(shop.urls[0]))]

from django.conf.urls.i18n import i18n_patterns
from django.contrib import admin
from django.http import HttpResponse
from django.urls import include, path, re_path

from tests.django.shop import views

shop = (
    [
        path("search", views.search, name="search"),
        path("search/later", views.search_later, name="search_later"),
        path("books", views.add_book, name="add_book"),
    ],
    "shop",
)

urlpatterns = [
    path("", include(shop)),
    path("whoami", views.whoami),
    path("secret", views.secret),
    path("guarded", views.guarded),
    path("stock", views.stock),
    path("later", views.post_later),
    path("plain", views.plain_post),
    path("letters/<slug:letter>/", views.subscribe),
    path("order/", views.Order.as_view(), name="order"),
    path("order/by-hand/", views.order_by_hand),
    path("books/new/", views.NewBook.as_view()),
    path("books/<int:pk>/", views.Books.as_view()),
    re_path(r"^archive/(?P<year>[0-9]{4})/$", views.archive),
    path("ship", views.ship),
    path("page", lambda request: HttpResponse("<p>a page</p>")),
    path("admin/", admin.site.urls),
    *i18n_patterns(path("greet/<slug:name>", views.greet)),
]

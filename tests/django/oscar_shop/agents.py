"""What agents can do in the shop, in declarations only: its views stay as they were published."""

from awp_publish_django.store import DjangoStore
from oscar.apps.customer.forms import OrderSearchForm
from oscar.apps.search.forms import SearchForm

from awp_publish import ApplicationUser, Site

site = Site(
    name="Oscar",
    description="A shop.",
    url="https://shop.example",
    authenticate=ApplicationUser(),
    store=DjangoStore(),
    plugins=["mcp", "a2a"],
)
site.declare("search_products", method="GET", path="/search/", description="Search for products.", inputs=SearchForm)
site.declare(
    "show_product", method="GET", path="/catalogue/{product_slug}_{pk}/", description="Show a product and its price."
)
site.declare("add_to_basket", method="POST", path="/basket/add/{pk}/", description="Put a product into the basket.")
site.declare("show_basket", method="GET", path="/basket/", description="Show what is in the basket.")
site.declare(
    "show_orders",
    method="GET",
    path="/accounts/orders/",
    description="List one's own orders.",
    inputs=OrderSearchForm,
    auth_required=True,
)
site.include(paths=["/catalogue/", "/offers/"])

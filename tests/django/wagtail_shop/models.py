"""A blog and a form page, as Wagtail's own tutorial has them."""

from modelcluster.fields import ParentalKey
from wagtail.contrib.forms.models import AbstractForm, AbstractFormField
from wagtail.fields import RichTextField
from wagtail.models import Page


class BlogPage(Page):
    body = RichTextField(blank=True)
    template = "blog_page.html"


class FormField(AbstractFormField):
    page = ParentalKey("FormPage", related_name="form_fields")


class FormPage(AbstractForm):
    template = landing_page_template = "form_page.html"

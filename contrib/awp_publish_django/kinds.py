"""Inputs and outputs of Django's own kinds: which file reads what a declaration gives, and what a view class has.

Django REST framework and django-ninja are asked only when the project has imported them.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from awp_publish.discover.placement import take_inputs
from awp_publish.discover.route import Mode, Operation
from awp_publish_django.forms import form_of_view, read_form

if TYPE_CHECKING:
    from awp_publish_django.views import View


def understand(declared: object, method: str, mode: Mode) -> Operation | None:
    """What declared inputs or outputs mean, None for kinds that are not Django's. Raises UnusableSchema."""
    return read_form(declared, method) if mode == "validation" else None


def describe_view(view: "View", method: str, path: str, operation: Operation) -> Operation:
    """What is known of a view beyond its path."""
    form = form_of_view(view.cls, view.options) if method == "POST" else None
    known = read_form(form, method) if form is not None else None
    if known is None:
        return operation
    return take_known(operation, known, method, path)


def take_known(operation: Operation, known: Operation, method: str, path: str) -> Operation:
    """The path's inputs together with the view's own."""
    joined = replace(
        operation,
        parameters=(*operation.parameters, *known.parameters),
        content_type=known.content_type,
        outputs=known.outputs,
    )
    return take_inputs(joined, known.inputs, method, path, None)

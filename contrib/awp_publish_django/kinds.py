"""Inputs and outputs of Django's own kinds: which file reads what a declaration gives, and what a view class has.

Django REST framework and django-ninja are asked only when the project has imported them.
"""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from awp_publish.declare.discover.declared import take_inputs
from awp_publish.declare.discover.routes import Mode, Operation, path_parameters
from awp_publish_django.forms import UNREAD, form_of_view, read_form

if TYPE_CHECKING:
    from awp_publish_django.views import View

REST = "rest_framework.serializers"


def understand(
    declared: object, method: str, mode: Mode, *, on_page: bool = False, changes: bool = False
) -> Operation | None:
    """Return what declared inputs or outputs mean, None for kinds that are not Django's. Raises UnusableSchema.

    `on_page` and `changes` are those of `read_form`.
    """
    form = read_form(declared, method, on_page=on_page, changes=changes) if mode == "validation" else None
    if form is not None or REST not in sys.modules:
        return form
    from awp_publish_django.rest_framework import read_serializer

    return read_serializer(declared, method, mode)


def describe_view(view: "View", method: str, path: str, operation: Operation) -> Operation:
    """Return what is known of a view beyond its path. Raises UnusableSchema."""
    if view.operation is not None:
        from awp_publish_django.ninja import describe_operation

        return describe_operation(view.operation, method, path) or operation
    form = form_of_view(view.cls, view.options) if method == "POST" else None
    described = None
    if form is None and method == "POST" and view.cls is not None and hasattr(view.cls, "get_form_class"):
        UNREAD.add(view.cls)
    if form is not None:
        described = read_form(form, method, on_page=view.shows_form, changes=bool(path_parameters(path)))
    if form is None and REST in sys.modules and view.cls is not None:
        from awp_publish_django.rest_framework import describe_key, describe_rest_view

        described = describe_rest_view(view, method)
        operation = replace(operation, inputs=describe_key(view.cls, operation.inputs))
    if described is None:
        return operation
    joined = replace(
        operation,
        parameters=(*operation.parameters, *described.parameters),
        content_type=described.content_type,
        outputs=described.outputs,
        answers_json=described.answers_json or operation.answers_json,
        outputs_vary=described.outputs_vary,
        auth_required=described.auth_required or operation.auth_required,
        schemes=described.schemes,
        description=described.description or operation.description,
    )
    return take_inputs(joined, described.inputs, method, path, None) if described.parameters else joined

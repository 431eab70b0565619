"""The forms that clean the fields of a call.

A rendered page does not show its forms, and Django has no signal for them. But a form that is cleaned reads the fields
that were sent, and those of a call are ours: they look who reads them. No other request and no class of Django's is
touched.
"""

import inspect
from collections.abc import MutableMapping
from typing import Any, Final, TypeAlias

from django.forms import BaseForm, BaseFormSet
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

Cleaned: TypeAlias = "BaseForm | BaseFormSet[Any]"

MAX_FRAMES: Final = 30
"""Callers that are looked at: between a formset's `full_clean` and its widgets are some ten."""


class SentFields(MultiValueDict[str, Any]):
    """Fields that note in `cleaned` which forms and formsets are cleaned with them."""

    cleaned: list[Cleaned]

    def __getitem__(self, name: str) -> Any:
        self._note()
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._note()
        return super().__contains__(name)

    def getlist(self, name: str, *default: Any) -> Any:
        self._note()
        return super().getlist(name, *default)

    def __deepcopy__(self, memo: MutableMapping[int, Any]) -> "SentFields":
        copied: SentFields = super().__deepcopy__(memo)
        copied.cleaned = self.cleaned
        return copied

    def _note(self) -> None:
        frame = inspect.currentframe()
        for _ in range(MAX_FRAMES):
            if frame is None:
                return
            if frame.f_code.co_name == "full_clean":
                form = frame.f_locals.get("self")
                if isinstance(form, (BaseForm, BaseFormSet)) and all(form is not other for other in self.cleaned):
                    self.cleaned.append(form)
            frame = frame.f_back


class SentQuery(SentFields, QueryDict):
    """The fields of a query or of a body."""


class SentFiles(SentFields):
    """The files of a body."""


def noting(fields: MultiValueDict[str, Any], cleaned: list[Cleaned]) -> Any:
    """Have fields note who is cleaned with them. They stay the object that they are, whatever it is."""
    if type(fields) in _NOTING:
        fields.__class__ = _NOTING[type(fields)]
    if isinstance(fields, SentFields):
        fields.cleaned = cleaned
    return fields


_NOTING: Final[dict[type, type]] = {QueryDict: SentQuery, MultiValueDict: SentFiles}

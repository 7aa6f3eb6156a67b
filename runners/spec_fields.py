"""Fields of a specification: what each accepts, and how texts become values.

Each field of the dataclasses in `runners.specs` carries a `Limits` in its metadata, from which the command line, the
forms of the app and the checks below are made.
"""

import dataclasses
import difflib
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from runners.errors import SpecError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a field accepts, and how it is explained."""

    help: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    multiple: int | None = None
    choices: tuple[str, ...] = ()
    max_characters: int | None = None


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of a specification, as forms and the command line need it."""

    name: str
    type: type
    """str, int, float or bool."""
    optional: bool
    """Whether None, "the default of the model or machine", is a value."""
    default: Any
    limits: Limits


def field(default: Any, **limits: Any) -> Any:
    """A dataclass field with its `Limits`."""
    return dataclasses.field(default=default, metadata={"limits": Limits(**limits)})


def fields_of(spec_class: type) -> list[Field]:
    """The fields of a specification class, in order."""
    hints = typing.get_type_hints(spec_class)
    fields = []
    for item in dataclasses.fields(spec_class):
        hint = hints[item.name]
        optional = isinstance(hint, types.UnionType)
        plain = next(kind for kind in typing.get_args(hint) if kind is not type(None)) if optional else hint
        fields.append(
            Field(name=item.name, type=plain, optional=optional, default=item.default, limits=item.metadata["limits"])
        )
    return fields


def parse_assignments(texts: Iterable[str]) -> dict[str, str]:
    """`["steps=20", …]` as a dict.

    Raises:
        SpecError: A text has no equals sign or no name before it.
    """
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise SpecError("not-field-equals-value", text=text)
        values[name.strip()] = value
    return values


def suggest(name: str, known: Iterable[str]) -> dict[str, str]:
    """The nearest of the known names, and all of them, as message parameters."""
    names = list(known)
    folded = {item.casefold(): item for item in names}
    nearest = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.0)
    return {"nearest": folded[nearest[0]] if nearest else "-", "known": ", ".join(names)}


def checked(field: Field, value: Any) -> Any:
    """The value in the field's type and within its limits.

    Raises:
        SpecError: It is not; the message says what is.
    """
    if field.optional and (value is None or value in ("", "auto")):
        return None
    converted = _converted(field, value)
    limits = field.limits
    if limits.choices and converted not in limits.choices:
        by_folded = {choice.casefold(): choice for choice in limits.choices}
        if str(converted).casefold() in by_folded:
            return by_folded[str(converted).casefold()]
        raise SpecError(
            "unknown-value", field=field.name, value=str(converted)[:80], **suggest(str(converted), limits.choices)
        )
    if limits.max_characters is not None and len(converted) > limits.max_characters:
        raise SpecError("text-too-long", field=field.name, length=len(converted), maximum=limits.max_characters)
    _check_range(field, converted)
    return converted


def _converted(field: Field, value: Any) -> Any:
    """The value in the field's type; texts are parsed, numbers of another kind are converted where nothing is lost."""
    shown = str(value)[:80]
    if field.type is str:
        text = str(value)
        if not text.isprintable() and any("\ud800" <= character <= "\udfff" for character in text):
            raise SpecError("not-text", field=field.name)
        return text
    if field.type is bool:
        if isinstance(value, bool):
            return value
        if str(value).strip().lower() in ("true", "yes", "on", "1"):
            return True
        if str(value).strip().lower() in ("false", "no", "off", "0"):
            return False
        raise SpecError("not-a-boolean", field=field.name, value=shown)
    try:
        if field.type is int:
            if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
                raise ValueError(value)
            # int() of a text of many thousand digits is slow, and refused by Python beyond 4,300.
            return int(value.strip() if isinstance(value, str) else value)
        if isinstance(value, bool):
            raise ValueError(value)
        number = float(value)
        if number != number:
            raise ValueError(value)
        return number
    except (ValueError, TypeError, OverflowError):
        raise SpecError(
            "not-a-number" if field.type is int else "not-a-decimal", field=field.name, value=shown
        ) from None


def _check_range(field: Field, value: Any) -> None:
    limits = field.limits
    if field.type not in (int, float):
        return
    low = limits.minimum if limits.minimum is not None else -float("inf")
    high = limits.maximum if limits.maximum is not None else float("inf")
    if not low <= value <= high:
        raise SpecError("out-of-range", field=field.name, minimum=low, maximum=high, value=value)
    if limits.multiple and value % limits.multiple:
        nearest = max(int(low), round(value / limits.multiple) * limits.multiple)
        raise SpecError("not-a-multiple", field=field.name, multiple=limits.multiple, value=value, nearest=nearest)

"""What a person says about a file that does not say it itself: names, types, words and limits of the answers."""

import re
from collections.abc import Mapping, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from data.catalogue import read_catalogue
from data.importers.draft import SAMPLES_PER_STEP, Draft, ImportRefused, whole
from data.importers.habana_baselines import UNSTATED_THROUGHPUT
from data.importers.privacy import clean
from data.record_rows import CONDITION_FIELDS, CONDITION_TYPES
from data.vocabulary import CONDITION_WORDS, DEVICE_KINDS, WARMUP_RULE, WORKLOADS
from runners.spec_fields import suggest

NOT_PUBLISHED = "not published"
"""An answer, and what stands in the two places of a record that may not be empty."""
REQUIRED = ("workload", "device")
"""Without these a number can be found by nobody; a person may still say that they are not published."""
USEFUL = ("model", "batch_size_per_device", "devices", "precision")
"""Asked for, because comparisons look at them first; may stay unanswered."""
ALIASES = {"batch_size": "batch_size_per_device", "device_name": "device", "batch": "batch_size_per_device"}
THROUGHPUT_UNITS = {f"{noun}/s": f"{noun}_per_s" for noun in ("images", "samples", "tokens", "steps")}
SPECIAL = ("workload", "device", "device_kind", "created", "throughput_unit")
NAMES = (*SPECIAL, *(name for name in CONDITION_FIELDS if name != "workload"))
MAX_CHARACTERS = 200


def checked(answers: Mapping[str, str]) -> dict[str, Any]:
    """The answers with their canonical names and types; empty ones are left out.

    Raises:
        ImportRefused: A name or value is none that can be given.
    """
    found: dict[str, Any] = {}
    for raw, value in answers.items():
        name = ALIASES.get(raw.strip().replace("-", "_"), raw.strip().replace("-", "_"))
        if name not in NAMES:
            raise ImportRefused("import-answer-name", name=raw, **suggest(raw, (*NAMES, "batch_size")))
        text = value.strip()
        if not text or (text == NOT_PUBLISHED and name not in REQUIRED):
            continue
        found[name] = _value(name, text)
    return found


def missing(draft: Draft) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What has to be asked, and what is worth asking."""
    said = {"workload": draft.workload, "device": draft.device_name, **draft.conditions}
    useful = [name for name in USEFUL if said.get(name) is None]
    if any(item.name == UNSTATED_THROUGHPUT for item in draft.metrics):
        useful.append("throughput_unit")
    if draft.started_utc is None:
        useful.append("created")
    return tuple(name for name in REQUIRED if not said[name]), tuple(useful)


def lacking(draft: Draft) -> Set[str]:
    """Everything that the draft does not say and that can be answered."""
    said = {name for name, value in draft.conditions.items() if value is not None}
    places = {"workload": draft.workload, "device": draft.device_name, "device_kind": draft.device_kind}
    said |= {name for name, value in places.items() if value is not None}
    return set(NAMES) - said


def fitting(draft: Draft, answers: Mapping[str, Any], asked_elsewhere: Set[str]) -> Mapping[str, Any]:
    """The answers that are meant for this draft: not those that another one needs and this one says itself."""
    own = lacking(draft)
    return {name: value for name, value in answers.items() if name in own or name not in asked_elsewhere}


def applied(draft: Draft, answers: Mapping[str, Any], file: str) -> Draft:
    """The draft with the answers in the places that the file left empty.

    Raises:
        ImportRefused: An answer contradicts the file.
    """
    conditions = {name: value for name, value in draft.conditions.items() if value is not None}
    for name, value in answers.items():
        if name in SPECIAL:
            continue
        if name in conditions and conditions[name] != value:
            raise ImportRefused("import-answer-conflict", file=file, field=name, said=conditions[name], answered=value)
        conditions[name] = value
    draft = replace(draft, conditions=conditions)
    if "workload" in answers:
        _agree(file, "workload", draft.workload, answers["workload"])
        draft = replace(draft, workload=answers["workload"])
    if "created" in answers and draft.started_utc is None:
        draft = replace(draft, started_utc=answers["created"])
    if "device" in answers:
        name, kind = _known_device(answers["device"])
        _agree(file, "device", draft.device_name, name)
        draft = replace(draft, device_name=name, device_kind=draft.device_kind or kind)
    if "device_kind" in answers:
        _agree(file, "device_kind", draft.device_kind, answers["device_kind"])
        draft = replace(draft, device_kind=answers["device_kind"])
    return _with_batch(_with_unit(draft, answers.get("throughput_unit")), file)


def _value(name: str, text: str) -> Any:
    if name == "created":
        return _time(text)
    words = _words(name)
    if words and text not in words:
        raise ImportRefused("import-answer-value", field=name, value=text[:80], **suggest(text, words))
    if name == "warmup_rule" and not WARMUP_RULE.fullmatch(text):
        raise ImportRefused(
            "import-answer-value",
            field=name,
            value=text[:80],
            nearest="first-2-batches-dropped",
            known="none, first-batch-dropped, …",
        )
    kind = CONDITION_TYPES.get(name)
    if kind is None:
        if len(text) > MAX_CHARACTERS:
            raise ImportRefused("import-answer-long", field=name, maximum=MAX_CHARACTERS)
        return clean(text)
    return _number(name, text, kind)


def _words(name: str) -> tuple[str, ...]:
    known = {
        "workload": (*WORKLOADS, "synthetic", NOT_PUBLISHED),
        "device_kind": DEVICE_KINDS,
        "throughput_unit": tuple(THROUGHPUT_UNITS),
    }
    # Schedulers are many more than those that our own runs offer.
    return known.get(name) or (() if name == "scheduler" else CONDITION_WORDS.get(name, ()))


def _number(name: str, text: str, kind: pa.DataType) -> Any:
    if kind == pa.bool_():
        if text.lower() in ("true", "yes", "on", "1", "false", "no", "off", "0"):
            return text.lower() in ("true", "yes", "on", "1")
        raise ImportRefused("import-answer-value", field=name, value=text[:80], nearest="true", known="true, false")
    pattern = r"\d{1,9}" if kind == pa.int64() else r"\d{1,9}(\.\d{1,12})?|\d(\.\d{1,12})?e-\d{1,2}"
    if not re.fullmatch(pattern, text) or (float(text) == 0 and name != "guidance"):
        raise ImportRefused("import-answer-number", field=name, value=text[:80])
    return int(text) if kind == pa.int64() else float(text)


def _time(text: str) -> str:
    try:
        moment = datetime.fromisoformat(text)
        if not 2000 <= moment.year < 2100:
            raise ValueError(text)
    except ValueError:
        raise ImportRefused("import-answer-time", value=text[:40]) from None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "") + ("" if moment.tzinfo else "Z")


def _known_device(name: str) -> tuple[str, str | None]:
    """Name and kind of a device of the catalogue, by its id or name; any other name is taken as it is."""
    if name == NOT_PUBLISHED:
        return name, name
    for device in read_catalogue()[0].devices.values():
        if name.casefold() in (device.device_id.casefold(), device.name.casefold()):
            return device.name, device.kind
    return name, None


def _agree(file: str, field: str, said: object, answered: object) -> None:
    if said is not None and said != answered:
        raise ImportRefused("import-answer-conflict", file=file, field=field, said=said, answered=answered)


def _with_unit(draft: Draft, unit: str | None) -> Draft:
    if unit is None:
        return draft
    named = tuple(
        replace(item, name=THROUGHPUT_UNITS[unit], unit=unit) if item.name == UNSTATED_THROUGHPUT else item
        for item in draft.metrics
    )
    return replace(draft, metrics=named)


def _with_batch(draft: Draft, file: str) -> Draft:
    """Batch size and number of devices from each other, where the file gives their product; else only checked."""
    batch, devices = (draft.conditions.get(name) for name in ("batch_size_per_device", "devices"))
    total = draft.global_batch_size
    if total and devices and not batch and total % devices == 0:
        return replace(draft, conditions={**draft.conditions, "batch_size_per_device": total // devices})
    if total and batch and not devices and total % batch == 0:
        return replace(draft, conditions={**draft.conditions, "devices": total // batch})
    product = total or whole(draft.details.get(SAMPLES_PER_STEP))
    if product and ((batch or 1) * (devices or 1) > product or product % ((batch or 1) * (devices or 1))):
        raise ImportRefused(
            "import-batch-disagrees", file=file, total=product, batch=batch or "–", devices=devices or "–"
        )
    return draft

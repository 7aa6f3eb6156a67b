"""TensorBoard event files, as PyTorch, transformers and optimum-habana write them.

A file is a sequence of TFRecords (length, its checksum, data, its checksum), each holding one Event in protobuf's wire
format. Only what is needed is decoded here: TensorFlow would be half a gigabyte for that. An event has a wall clock
time, so real step times follow. The usual file name holds the host's name; it is not kept.

Formats: tensorflow/core/lib/io/record_writer.h and tensorflow/core/util/event.proto, framework/summary.proto.
"""

import json
import math
import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, BinaryIO

from data.importers.draft import MAX_SAMPLES, Draft, ImportRefused, finite, metric, present, text, utc_text, whole
from data.importers.reading import Source
from runners.records import Metric, Series

MAX_EVENT_BYTES = 64 * 2**20
MAX_TAGS = 500
_VERSION = b"brain.Event:"
_LOSS_TAGS = ("train/loss", "loss", "Loss/train", "train_loss")
_SUMMARY = {
    "train/train_samples_per_second": ("samples_per_s", "samples/s", "higher"),
    "train/train_steps_per_second": ("steps_per_s", "steps/s", "higher"),
    "train/train_runtime": ("train_runtime_s", "s", "lower"),
    "train/train_loss": ("train_loss", "", "lower"),
}
"""The Trainer's closing summary, logged once."""


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_CRC = _crc_table()


def masked_crc(data: bytes) -> int:
    """CRC-32C (Castagnoli), rotated and shifted as TFRecord does."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _CRC[(value ^ byte) & 0xFF] ^ value >> 8
    value ^= 0xFFFFFFFF
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def is_ours(head: bytes) -> bool:
    """Whether the file starts with a record that says it is TensorBoard's."""
    if len(head) < 16:
        return False
    (length,) = struct.unpack_from("<Q", head)
    return masked_crc(head[:8]) == struct.unpack_from("<I", head, 8)[0] and _VERSION in head[12 : 12 + min(length, 100)]


def read(source: Source) -> list[Draft]:
    """One run from an event file.

    Raises:
        ImportRefused: It is cut short or damaged (the message says after which event), or holds no scalars.
    """
    scalars: dict[str, list[tuple[int, float, float]]] = {}
    texts: dict[str, str] = {}
    for number, event in _events(source):
        try:
            _take(event, scalars, texts)
        except (ValueError, IndexError, struct.error):
            raise ImportRefused("import-event-damaged", file=source.name, event=number) from None
        if len(scalars) > MAX_TAGS:
            raise ImportRefused("import-too-many-tags", file=source.name, maximum=MAX_TAGS)
        if any(len(points) > MAX_SAMPLES for points in scalars.values()):
            raise ImportRefused("import-too-many-samples", file=source.name, count=MAX_SAMPLES + 1, maximum=MAX_SAMPLES)
    if not scalars:
        raise ImportRefused("import-no-numbers", file=source.name)
    times = [at for points in scalars.values() for _, at, _ in points]
    arguments = _json_text(texts.get("args", ""))
    configuration = _json_text(texts.get("model_config", ""))
    series = tuple(item for tag, points in scalars.items() if tag not in _SUMMARY for item in _series(tag, points))
    return [
        Draft(
            title="",
            conditions={**_conditions(arguments), **_model(configuration)},
            started_utc=utc_text(min(times)),
            finished_utc=utc_text(max(times)),
            metrics=_metrics(scalars),
            series=series,
            environment=_versions(configuration),
            warnings=_warnings(scalars),
        )
    ]


def _events(source: Source) -> Iterator[tuple[int, bytes]]:
    with source.path.open("rb") as file:
        number = 0
        while header := file.read(12):
            number += 1
            data = _record(file, header)
            if data is None:
                raise ImportRefused("import-event-damaged", file=source.name, event=number)
            yield number, data


def _record(file: BinaryIO, header: bytes) -> bytes | None:
    """The data of one record; None where it is cut short, or a checksum does not fit."""
    if len(header) < 12 or masked_crc(header[:8]) != struct.unpack_from("<I", header, 8)[0]:
        return None
    (length,) = struct.unpack_from("<Q", header)
    if length > MAX_EVENT_BYTES:
        return None
    data, check = file.read(length), file.read(4)
    if len(data) < length or len(check) < 4 or masked_crc(data) != struct.unpack("<I", check)[0]:
        return None
    return data


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Field number and raw value of a protobuf message; raises ValueError or IndexError where it is none."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        kind = key & 7
        if kind == 0:
            value, position = _varint(data, position)
            yield key >> 3, value
            continue
        length, position = _varint(data, position) if kind == 2 else ({1: 8, 5: 4}.get(kind, -1), position)
        if length < 0 or position + length > len(data):
            raise ValueError("not a protobuf message")
        yield key >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), position
        shift += 7
    raise ValueError("a number without end")


def _take(data: bytes, scalars: dict[str, list[tuple[int, float, float]]], texts: dict[str, str]) -> None:
    wall_time, step, summary = 0.0, 0, b""
    for field, value in _fields(data):
        if field == 1 and len(value) == 8:
            (wall_time,) = struct.unpack("<d", value)
        elif field == 2 and isinstance(value, int):
            step = value
        elif field == 5 and isinstance(value, bytes):
            summary = value
    if not math.isfinite(wall_time) or step >= 2**53:
        raise ValueError("a time or step that none can have")
    for field, value in _fields(summary):
        if field == 1 and isinstance(value, bytes):
            _take_value(value, wall_time, step, scalars, texts)


def _take_value(
    data: bytes, wall_time: float, step: int, scalars: dict[str, list[tuple[int, float, float]]], texts: dict[str, str]
) -> None:
    tag, number, plugin_text = "", None, None
    for field, value in _fields(data):
        if field == 1 and isinstance(value, bytes):
            tag = value.decode("utf-8")
        elif field == 2 and isinstance(value, bytes) and len(value) == 4:
            (number,) = struct.unpack("<f", value)
        elif field == 8 and isinstance(value, bytes):
            number, plugin_text = _tensor(value)
    if number is not None:
        scalars.setdefault(tag, []).append((step, wall_time, float(number)))
    elif plugin_text is not None:
        texts.setdefault(tag.removesuffix("/text_summary"), plugin_text)


def _tensor(data: bytes) -> tuple[float | None, str | None]:
    """A tensor's one number, or its one text; larger tensors (histograms, images) are neither."""
    kind, numbers, strings = 0, b"", []
    for field, value in _fields(data):
        if field == 1 and isinstance(value, int):
            kind = value
        elif field in (4, 5, 6) and isinstance(value, bytes):
            numbers = value
        elif field == 8 and isinstance(value, bytes):
            strings.append(value)
    layout = {1: "<f", 2: "<d"}.get(kind)
    if layout and len(numbers) == struct.calcsize(layout):
        return struct.unpack(layout, numbers)[0], None
    return None, strings[0].decode("utf-8", "replace") if kind == 7 and len(strings) == 1 else None


def _series(tag: str, points: list[tuple[int, float, float]]) -> Iterator[Series]:
    name = "loss" if tag in _LOSS_TAGS else tag
    yield Series(name=name, unit="", phase="measured", values=tuple(value for _, _, value in points))
    yield Series(name=f"{name}_at_step", unit="step", phase="measured", values=tuple(float(at) for at, _, _ in points))
    if tag in _LOSS_TAGS and (times := _step_times(points)):
        yield Series(name="step_s", unit="s", phase="measured", values=tuple(times))


def _step_times(points: list[tuple[int, float, float]]) -> list[float]:
    """Mean time of a step between two logged losses; evaluation and saving between them are inside."""
    return [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(points) if b[0] > a[0] and b[1] > a[1]]


def _metrics(scalars: dict[str, list[tuple[int, float, float]]]) -> tuple[Metric, ...]:
    found = [
        metric(name, scalars[tag][-1][2], unit, better=better)
        for tag, (name, unit, better) in _SUMMARY.items()
        if tag in scalars
    ]
    losses = next((scalars[tag] for tag in _LOSS_TAGS if tag in scalars), [])
    if len(losses) > 1 and (steps := losses[-1][0] - losses[0][0]) > 0:
        seconds = losses[-1][1] - losses[0][1]
        times = len(_step_times(losses))
        if seconds > 0:
            found.append(metric("s_per_step", seconds / steps, "s/step", better="lower", n=times))
    if losses:
        found.append(metric("final_loss", losses[-1][2], "", better="lower"))
    return present(*found)


def _json_text(value: str) -> dict[str, Any]:
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _conditions(arguments: dict[str, Any]) -> dict[str, Any]:
    """What the Trainer's own arguments, which it logs, say of the run. Only these are read: others name folders."""
    precision = None
    if arguments:
        mixed = next((name for name in ("bf16", "fp16") if arguments.get(name) is True), None)
        precision = f"{mixed}-mixed" if mixed else None
    checkpointing = arguments.get("gradient_checkpointing")
    return {
        "batch_size_per_device": whole(arguments.get("per_device_train_batch_size")),
        "learning_rate": finite(arguments.get("learning_rate")),
        "optimizer": text(arguments.get("optim")),
        "epochs": finite(arguments.get("num_train_epochs")) if (whole(arguments.get("max_steps")) or -1) < 1 else None,
        "steps": steps if (steps := whole(arguments.get("max_steps"))) and steps > 0 else None,
        "gradient_checkpointing": checkpointing if isinstance(checkpointing, bool) else None,
        "precision": precision,
    }


def _model(configuration: dict[str, Any]) -> dict[str, Any]:
    """The architecture, where its sizes are those of one that has a name here."""
    names = {
        ("bert", 768, 12, 3072): "bert-base",
        ("bert", 1024, 24, 4096): "bert-large",
        ("t5", 1024, 24, 16384): "t5-3b",
    }
    sizes = (
        configuration.get("model_type"),
        configuration.get("hidden_size", configuration.get("d_model")),
        configuration.get("num_hidden_layers", configuration.get("num_layers")),
        configuration.get("intermediate_size", configuration.get("d_ff")),
    )
    model = next((name for known, name in names.items() if known == sizes), text(configuration.get("model_type")))
    version = text(configuration.get("transformers_version"))
    return {"model": model, "software": f"transformers {version}" if version else None}


def _versions(configuration: dict[str, Any]) -> dict[str, Any]:
    version = text(configuration.get("transformers_version"))
    return {"packages": {"transformers": version}} if version else {}


def _warnings(scalars: dict[str, list[tuple[int, float, float]]]) -> tuple[str, ...]:
    found = []
    if any(not math.isfinite(value) for points in scalars.values() for _, _, value in points):
        found.append("import-not-finite")
    if any(len(scalars.get(tag, ())) > 1 for tag in _LOSS_TAGS):
        found.append("import-step-time-from-log")
    return tuple(found)

"""The record: whole, exact, and refused with a reason when it is not."""

import dataclasses
import json
import math
import os
import uuid
from pathlib import Path

import pytest

from runners.errors import RecordError
from runners.records import (
    SCHEMA_VERSION,
    Artifact,
    Audit,
    Conditions,
    DeviceInfo,
    ErrorInfo,
    Metric,
    Phase,
    Record,
    Series,
    new_run_id,
    read_record,
    record_from_json,
    record_to_json,
    write_json_atomically,
)


def full_record() -> Record:
    return Record(
        run_id=new_run_id(),
        workload="text-to-image",
        status="failed",
        spec={"prompt": "魚 🐟", "seed": 2**63 - 1},
        conditions=Conditions(workload="text-to-image", model="stable-diffusion-1", width_px=512, tf32=False),
        device=DeviceInfo(kind="cpu", name="a CPU", memory_bytes=1, cores=2),
        environment={"packages": {"torch": "2.13.0"}},
        created_utc="2026-11-30T10:00:00.000Z",
        finished_utc="2026-11-30T10:00:01.000Z",
        error=ErrorInfo(type="WorkloadFailed", message_id="x", params={"a": 1}, message="m", log_tail="t"),
        phases=(Phase(name="load", duration_s=0.1),),
        series=(Series(name="step_s", unit="s", phase="measured", values=(0.1, math.nan, 1 / 3)),),
        metrics=(
            Metric(name="s_per_image", value=0.1, unit="s/image", interval=(0.05, 0.2), n=6, higher_is_better=False),
        ),
        artifacts=(Artifact(path="images/000.png", kind="image", sha256="00"),),
        audit=Audit(sync_policy="none", warnings=("too-few-samples",)),
        details={"latents_sha256": ["ab"]},
    )


def test_a_record_survives_the_file(tmp_path: Path) -> None:
    record = full_record()
    write_json_atomically(tmp_path / "record.json", record_to_json(record))
    again = read_record(tmp_path / "record.json")
    assert record_to_json(again) == record_to_json(record)
    assert again.metrics == record.metrics
    assert again.conditions.hash() == record.conditions.hash()
    assert math.isnan(again.series[0].values[1])
    assert again.series[0].values[2] == 1 / 3


def test_an_interval_that_was_not_finite_is_none(tmp_path: Path) -> None:
    metric = Metric(name="x", value=1.0, unit="s", interval=(math.nan, math.inf), n=6, higher_is_better=False)
    document = record_to_json(dataclasses.replace(full_record(), metrics=(metric,)))
    assert record_from_json(document).metrics[0].interval is None


def test_no_temporary_file_stays(tmp_path: Path) -> None:
    write_json_atomically(tmp_path / "record.json", {})
    with pytest.raises(TypeError):
        write_json_atomically(tmp_path / "record.json", {"x": object()})
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]
    assert (tmp_path / "record.json").read_text() == "{}"


def test_a_record_cut_anywhere_is_refused_and_left_alone(tmp_path: Path) -> None:
    text = json.dumps(record_to_json(full_record()))
    path = tmp_path / "record.json"
    for length in range(0, len(text) - 1, 37):
        path.write_text(text[:length])
        with pytest.raises(RecordError) as caught:
            read_record(path)
        assert caught.value.message_id == "record-unreadable"
        assert path.read_text() == text[:length]


def test_a_future_version_is_told_from_a_damaged_file() -> None:
    document = record_to_json(full_record()) | {"schema_version": SCHEMA_VERSION + 1}
    with pytest.raises(RecordError, match="Update LikeForLike") as caught:
        record_from_json(document)
    assert caught.value.message_id == "record-from-future"


@pytest.mark.parametrize(
    "change",
    [
        {"status": "fine"},
        {"schema_version": None},
        {"schema_version": True},
        {"conditions": None},
        {"device": {"kind": "cpu"}},
        {"spec": []},
        {"series": [{"name": "x"}]},
        {"metrics": 7},
        {"run_id": 7},
        {"repeat": float("inf")},
        {"metrics": [{"name": "x", "value": "abc", "unit": "s", "n": 1, "higher_is_better": True}]},
        {"metrics": [{"name": [], "value": 1, "unit": "s", "n": 1, "higher_is_better": True}]},
        {"metrics": [{"name": "x", "value": 10**400, "unit": "s", "n": 1, "higher_is_better": True}]},
        {"metrics": [{"name": "x", "value": 1, "unit": "s", "n": 1, "higher_is_better": True, "interval": [1]}]},
        {"series": [{"name": "x", "unit": "s", "phase": "measured", "values": [10**400]}]},
        {"series": [{"name": "x", "unit": "s", "phase": "measured", "values": ["1"]}]},
    ],
)
def test_wrong_types_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(RecordError, match="cannot be read"):
        record_from_json(record_to_json(full_record()) | change)


@pytest.mark.parametrize("document", [None, [], "text", 3])
def test_other_json_is_refused(document: object) -> None:
    with pytest.raises(RecordError):
        record_from_json(document)


def test_fields_of_a_later_release_are_passed_over() -> None:
    document = record_to_json(full_record()) | {"invented_later": 1}
    document["device"]["invented_later"] = 2
    assert record_from_json(document).device.name == "a CPU"


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "record.json")
    with pytest.raises(RecordError, match="not a file"):
        read_record(tmp_path / "record.json")


def test_run_ids_sort_by_age() -> None:
    ids = [new_run_id() for _ in range(100)]
    assert all(uuid.UUID(item).version == 7 for item in ids)
    assert len(set(ids)) == 100
    assert [item[:13] for item in ids] == sorted(item[:13] for item in ids)


def test_the_hash_sees_every_field() -> None:
    first = Conditions(workload="synthetic")
    assert first.hash() == Conditions(workload="synthetic").hash()
    assert first.hash() != Conditions(workload="synthetic", precision="fp32").hash()

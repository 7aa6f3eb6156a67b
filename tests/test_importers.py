"""Result files of other programs become run folders: what they say, nothing else, and all of it or nothing."""

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from data.__main__ import main
from data.importers import detect
from data.importers.draft import Draft, ImportRefused, metric
from data.importers.keep import store
from data.importers.plan import FilePlan, make_plan
from data.importers.privacy import clean
from data.importers.reading import Source, encoding_of, lines
from data.importers.tensorboard_events import masked_crc
from data.messages import render
from data.store import Store
from runners.records import Record
from runners.rundir import list_runs

SAMPLES = Path(__file__).parent / "samples" / "imports"
EVERY = sorted(path.name for path in SAMPLES.iterdir())
ANSWERS = {"workload": "other", "device": "gaudi2"}
# Which answers a sample still needs; the others say it themselves.
SAID = {
    "codecarbon-2.4.2-padded-emissions.csv": "device",
    "codecarbon-3.3.2-emissions.csv": "device",
    "diffusers-benchmark-new.csv": "workload",
    "diffusers-benchmark-old.csv": "workload",
    "mlperf-training-bert-result.txt": "workload",
    "mlperf-training-stable-diffusion-result.txt": "workload",
    "optimum-benchmark-0.6.0-tiny-bert-training.json": "device",
    "optimum-benchmark-0.6.0-tiny-bert.json": "device",
    "optimum-benchmark-0.6.0-tiny-sd.json": "device workload",
    "optimum-habana-baselines.json": "device",
}


def plan_of(path: Path, runs_dir: Path, answers: Mapping[str, str] | None = None) -> FilePlan:
    [plan] = make_plan([Source(path, path.name)], answers or {}, runs_dir)
    return plan


def answers_for(name: str) -> dict[str, str]:
    return {key: value for key, value in ANSWERS.items() if key not in SAID.get(name, "")}


def records_of(name: str, tmp_path: Path, **answers: str) -> list[Record]:
    """The records that a sample becomes, read back from their folders."""
    runs_dir = tmp_path / "runs"
    plan = plan_of(SAMPLES / name, runs_dir, {**answers_for(name), **answers})
    result = store(plan, runs_dir)
    assert result.problem is None, render(*result.problem)
    assert set(result.added) == {run.run_id for run in list_runs(runs_dir)}
    # In the file's order.
    return [next(run for run in list_runs(runs_dir) if run.run_id == item.run_id).record() for item in plan.runs]


def value(record: Record, name: str) -> float:
    found = record.metric(name)
    assert found is not None, name
    return found.value


def refused(path: Path, runs_dir: Path, **answers: str) -> tuple[str, Mapping[str, Any]]:
    """Why a file is refused; nothing of it is stored."""
    plan = plan_of(path, runs_dir, answers)
    result = store(plan, runs_dir)
    assert result.problem is not None and list_runs(runs_dir) == []
    assert "{" not in render(*result.problem)
    return result.problem


def write(tmp_path: Path, content: str | bytes | object, name: str = "file") -> Path:
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


# What each format says.


def test_trainer_results_of_both_releases(tmp_path: Path) -> None:
    for number, version in enumerate(("4.55.4", "5.24.0")):
        folder = tmp_path / str(number)
        [record] = records_of(f"trainer-{version}-all_results.json", folder)
        document = json.loads((SAMPLES / f"trainer-{version}-all_results.json").read_text())
        assert record.origin == "imported from transformers" and record.status == "ok"
        assert record.metrics[0].name == "samples_per_s"
        assert value(record, "samples_per_s") == document["train_samples_per_second"]
        assert value(record, "steps_per_s") == document["train_steps_per_second"]
        assert value(record, "eval_loss") == document["eval_loss"]
        assert (record.conditions.epochs, record.device.name, record.device.kind) == (2.0, "Gaudi2", "hpu")
        # 4 samples a step is arithmetic; how they are spread over devices is not in the file.
        assert record.details["samples_per_step"] == 4 and record.conditions.batch_size_per_device is None
        assert record.conditions.precision is None and record.conditions.devices is None


def test_habana_memory_is_gib_whatever_its_label_says(tmp_path: Path) -> None:
    document = {
        "train_samples_per_second": 20.0,
        "train_runtime": 9.0,
        "max_memory_allocated (GB)": 90.5,
        "total_memory_available (GB)": 94.62,
    }
    plan = plan_of(write(tmp_path, document), tmp_path / "runs", ANSWERS)
    record = plan.runs[0].record
    assert value(record, "peak_memory_bytes") == round(90.5 * 2**30)
    assert record.device.memory_bytes == round(94.62 * 2**30)


def test_trainer_state_keeps_every_entry_with_its_step(tmp_path: Path) -> None:
    [record] = records_of("trainer-5.24.0-trainer_state.json", tmp_path)
    series = {item.name: item.values for item in record.series}
    history = json.loads((SAMPLES / "trainer-5.24.0-trainer_state.json").read_text())["log_history"]
    logged = [entry for entry in history if "loss" in entry]
    assert series["loss"] == tuple(entry["loss"] for entry in logged)
    assert series["loss_at_step"] == tuple(entry["step"] for entry in logged)
    assert len(series["eval_loss"]) == 2 and record.conditions.steps == 24
    assert value(record, "final_loss") == logged[-1]["loss"]


def test_events_of_the_trainer(tmp_path: Path) -> None:
    [record] = records_of("trainer-4.55.4-events.tfevents", tmp_path)
    history = json.loads((SAMPLES / "trainer-4.55.4-trainer_state.json").read_text())["log_history"]
    logged = [entry for entry in history if "loss" in entry]
    series = {item.name: item for item in record.series}
    assert series["loss"].values == pytest.approx([entry["loss"] for entry in logged], rel=1e-6)
    assert series["loss_at_step"].values == tuple(entry["step"] for entry in logged)
    assert len(series["step_s"].values) == len(logged) - 1
    summary = next(entry for entry in history if "train_runtime" in entry)
    assert value(record, "samples_per_s") == pytest.approx(summary["train_samples_per_second"], rel=1e-6)
    # From the arguments and the model's configuration, which the Trainer logs as texts.
    conditions = record.conditions
    assert (conditions.batch_size_per_device, conditions.learning_rate, conditions.epochs) == (4, 5e-4, 2.0)
    assert (conditions.model, conditions.software) == ("bert", "transformers 4.55.4")
    assert record.created_utc.startswith("2026-12-01T")
    assert "out4" not in json.dumps(record.spec | record.details | record.environment)


def test_events_of_torch_in_both_styles(tmp_path: Path) -> None:
    [record] = records_of("torch-2.13-writer.tfevents", tmp_path)
    series = {item.name: item.values for item in record.series}
    assert series["loss"] == pytest.approx([2.0 / (number + 1) for number in range(6)], rel=1e-6)
    assert series["loss_at_step"] == (0, 10, 20, 30, 40, 50)
    assert series["step_s"] == pytest.approx([0.25] * 5) and value(record, "s_per_step") == pytest.approx(0.25)
    assert series["precise"] == pytest.approx([0.1 * number for number in range(6)], rel=1e-15)
    assert record.created_utc == "2023-11-14T22:13:20.000Z" and "weights" not in series


def test_optimum_benchmark_images(tmp_path: Path) -> None:
    [record] = records_of("optimum-benchmark-0.6.0-tiny-sd.json", tmp_path)
    report = json.loads((SAMPLES / "optimum-benchmark-0.6.0-tiny-sd.json").read_text())["report"]
    latency = report["call"]["latency"]
    assert (record.workload, record.device.kind, record.device.name) == ("text-to-image", "cpu", "AMD EPYC")
    assert value(record, "s_per_image") == pytest.approx(latency["mean"] / 2)
    assert value(record, "images_per_s") == pytest.approx(report["call"]["throughput"]["value"])
    assert value(record, "batch_latency_s") == pytest.approx(latency["mean"])
    assert value(record, "peak_ram_bytes") == round(report["call"]["memory"]["max_ram"] * 1e6)
    conditions = record.conditions
    assert (conditions.batch_size_per_device, conditions.steps, conditions.precision) == (2, 4, "fp32")
    assert (conditions.mode, conditions.timed_region) == ("eager", "end-to-end")
    assert conditions.model == "bundled", "a folder's name may hold a person's"
    # 0.6.0 repeats the steps of earlier images: 21 values where 3 calls of 4 steps make 12.
    assert report["per_step"]["latency"]["count"] == 21
    assert [item.name for item in record.series] == ["end_to_end_s"]
    assert "import-repeated-steps" in record.audit.warnings
    assert {phase.name for phase in record.phases} == {"load", "first-call", "measured"}


def test_optimum_benchmark_text_and_training(tmp_path: Path) -> None:
    [inference] = records_of("optimum-benchmark-0.6.0-tiny-bert.json", tmp_path / "a")
    assert inference.metrics[0].name == "samples_per_s" and inference.conditions.sequence_length == 16
    [training] = records_of("optimum-benchmark-0.6.0-tiny-bert-training.json", tmp_path / "b")
    assert training.conditions.batch_size_per_device == 2 and training.metrics[0].n == 8
    assert [(item.phase, len(item.values)) for item in training.series] == [("measured", 8), ("warm-up", 4)]
    [report] = records_of("optimum-benchmark-0.6.0-tiny-sd-report.json", tmp_path / "c")
    assert report.metrics[0].name == "images_per_s" and report.conditions.batch_size_per_device is None


def test_optimum_benchmark_bytes_called_mb(tmp_path: Path) -> None:
    document = json.loads((SAMPLES / "optimum-benchmark-0.6.0-tiny-sd.json").read_text())
    document["config"]["backend"]["device"] = "cuda"
    document["config"]["environment"] |= {"gpu": ["AMD INSTINCT MI250"], "gpu_count": 1, "gpu_vram_mb": 68_702_699_520}
    document["report"]["call"]["memory"] |= {"max_process_vram": 2_621_321.0e3, "max_allocated": 4_000.0}
    record = plan_of(write(tmp_path, document), tmp_path / "runs").runs[0].record
    assert (record.device.memory_bytes, record.device.kind) == (68_702_699_520, "rocm")
    assert record.metric("peak_process_vram_bytes") is None and value(record, "peak_allocated_bytes") == 4e9
    assert {"import-bytes-called-mb", "import-memory-impossible"} <= set(record.audit.warnings)


def test_baselines_mark_copies_and_ask_for_the_unit(tmp_path: Path) -> None:
    records = records_of("optimum-habana-baselines.json", tmp_path, throughput_unit="images/s")
    values = {(record.details["test"].rsplit("_", 1)[-1], record.device.name): record for record in records}
    bf16 = values["bf16", "Gaudi2"]
    assert (value(bf16, "images_per_s"), bf16.metrics[0].unit) == (1.086, "images/s")
    assert "import-identical-devices" not in bf16.audit.warnings
    copied = [record for record in records if "import-identical-devices" in record.audit.warnings]
    assert {record.device.name for record in copied} == {"Gaudi2", "Gaudi3"}
    assert all("import-baseline-floor" in record.audit.warnings for record in records) and len(records) == 7
    plan = plan_of(SAMPLES / "optimum-habana-baselines.json", tmp_path / "other")
    assert plan.asked == ("workload",) and "throughput_unit" in plan.useful
    assert plan.runs[0].record.metrics[0].unit == "", "images, samples or tokens: the file does not say"


def test_mlperf_inference_with_its_system(tmp_path: Path) -> None:
    names = ("mlperf_log_summary-offline.txt", "mlperf-system.json")
    sources = [Source(SAMPLES / name, name) for name in names]
    plan, companion = make_plan(sources, {"workload": "text-to-image"}, tmp_path)
    record = plan.runs[0].record
    assert companion.companion_of == names[0] and plan.asked == ()
    assert (record.device.name, record.conditions.devices) == ("An accelerator", 8)
    assert value(record, "samples_per_s") == 12.5
    assert value(record, "latency_mean_s") == 3000 and value(record, "latency_p99.9_s") == 5990
    assert record.details["submitter"] == "Somebody" and record.audit.warnings == ()
    assert "example.com" not in repr(record)
    assert plan_of(SAMPLES / names[1], tmp_path).problem == ("import-companion-alone", {"file": names[1]})
    invalid = (SAMPLES / names[0]).read_text().replace("Result is : VALID", "Result is : INVALID")
    record = plan_of(write(tmp_path, invalid), tmp_path / "runs").runs[0].record
    assert record.audit.warnings == ("import-mlperf-invalid",)


def test_mlperf_training_derives_its_rate_from_the_blocks(tmp_path: Path) -> None:
    [bert] = records_of("mlperf-training-bert-result.txt", tmp_path / "a", devices="8")
    seconds = [51.66 + 0.01 * number for number in range(8)]
    assert value(bert, "samples_per_s") == pytest.approx(335 * 448 * 8 / sum(seconds))
    assert bert.metric("samples_per_s").interval is not None  # type: ignore[union-attr]
    assert value(bert, "time_to_train_s") == pytest.approx(sum(seconds), abs=0.01)
    conditions = bert.conditions
    assert (conditions.model, conditions.sequence_length) == ("bert-large", 512)
    assert conditions.batch_size_per_device == 448 // 8, "the log states no accumulation, so this is arithmetic"
    assert next(item for item in bert.series if item.name == "eval_accuracy").values[-1] == pytest.approx(0.695)
    assert "example.com" not in repr(bert) and "/home" not in repr(bert)
    [diffusion] = records_of("mlperf-training-stable-diffusion-result.txt", tmp_path / "b")
    assert value(diffusion, "samples_per_s") == pytest.approx(100 * 512 / 21.6)


def test_mlperf_training_without_a_proven_unit_gives_no_rate(tmp_path: Path) -> None:
    text = (SAMPLES / "mlperf-training-bert-result.txt").read_text().replace('"epoch_num": 150080', '"epoch_num": 1')
    text = text.replace('"epoch_num": 1}', '"epoch_num": 2}')
    first = '"epoch_count": 335'
    record = plan_of(write(tmp_path, text.replace(first, '"epoch_count": 7')), tmp_path / "runs").runs[0].record
    assert record.metric("samples_per_s") is None and record.metric("time_to_train_s") is not None


def test_codecarbon_in_joules_without_the_place(tmp_path: Path) -> None:
    [padded] = records_of("codecarbon-2.4.2-padded-emissions.csv", tmp_path / "a")
    assert (padded.device.name, padded.device.kind, padded.conditions.devices) == (
        "NVIDIA A100-SXM4-80GB",
        "cuda",
        2,
    )
    assert value(padded, "energy_j") == pytest.approx(0.0217 * 3.6e6)
    assert value(padded, "mean_power_w") == pytest.approx(0.0217 * 3.6e6 / 120)
    assert padded.finished_utc == "2024-05-06T07:08:09.000Z" and padded.created_utc == "2024-05-06T07:06:09.000Z"
    for hidden in ("1.4442", "43.6045", "occitanie", "FRA", "0a0b"):
        assert hidden not in repr(padded)
    first, second = records_of("codecarbon-3.3.2-emissions.csv", tmp_path / "b")
    assert first.device.kind == "cpu" and first.run_id != second.run_id
    assert value(first, "energy_j") == pytest.approx(1.243563509131814e-05 * 3.6e6)


def test_diffusers_both_layouts(tmp_path: Path) -> None:
    first, compiled, four = records_of("diffusers-benchmark-old.csv", tmp_path / "a")
    assert (first.workload, first.conditions.model, first.conditions.mode) == (
        "text-to-image",
        "stable-diffusion-1",
        "eager",
    )
    assert value(four, "s_per_image") == pytest.approx(8.18 / 4) and value(four, "batch_latency_s") == 8.18
    assert value(first, "peak_memory_bytes") == round(3.976 * 2**30)
    assert compiled.metric("peak_memory_bytes") is None and "import-cell-left-out" in compiled.audit.warnings
    plain, compiled, quantized = records_of("diffusers-benchmark-new.csv", tmp_path / "b")
    assert value(plain, "s_per_forward") == 0.493, "the number in brackets is the previous one"
    assert (compiled.conditions.mode, quantized.conditions.mode) == ("compile", "eager")


def png(path: Path, **texts: str) -> Path:
    """An image with text chunks, as the web interfaces write them."""
    from PIL import Image, PngImagePlugin

    information = PngImagePlugin.PngInfo()
    for name, content in texts.items():
        information.add_text(name, content)
    Image.new("RGB", (64, 48), (1, 2, 3)).save(path, pnginfo=information)
    return path


PARAMETERS = (
    "a red circle\nNegative prompt: blur\nSteps: 30, Sampler: DDIM, CFG scale: 7, Seed: 5, Size: 64x48, "
    "Model: sd-v1-4, Lora: /home/jo/lora.safetensors, Version: v1.10.1"
)


def test_a_png_keeps_its_settings_and_loses_the_rest(tmp_path: Path) -> None:
    graph = {
        "1": {"class_type": "KSampler", "inputs": {"steps": 20, "cfg": 8, "seed": 3, "sampler_name": "euler"}},
    }
    files = {
        "AUTOMATIC1111": png(tmp_path / "a.png", parameters=PARAMETERS, workflow="/home/jo/x"),
        "ComfyUI": png(tmp_path / "c.png", prompt=json.dumps(graph)),
        "InvokeAI": png(
            tmp_path / "i.png",
            invokeai_metadata=json.dumps({"positive_prompt": "a cat", "steps": 12, "cfg_scale": 7.5}),
        ),
    }
    runs_dir = tmp_path / "runs"
    for program, path in files.items():
        plan = plan_of(path, runs_dir, {"device": "gaudi2"})
        assert store(plan, runs_dir).problem is None
        run = next(run for run in list_runs(runs_dir) if run.run_id == plan.runs[0].run_id)
        record = run.record()
        assert record.details["program"] == program and record.metrics == ()
        assert (record.conditions.width_px, record.conditions.height_px) == (64, 48)
        kept = (run.path / record.artifacts[0].path).read_bytes()
        assert b"tEXt" not in kept and b"/home" not in kept and "/home" not in repr(record)
        from PIL import Image

        with Image.open(run.path / "images" / "000.png") as image:
            assert image.size == (64, 48) and image.getpixel((0, 0)) == (1, 2, 3) and image.text == {}  # type: ignore[attr-defined]
        assert store(plan_of(path, runs_dir, {"device": "gaudi2"}), runs_dir).added == ()
    assert len(list_runs(runs_dir)) == 3
    with Store(tmp_path / "index.duckdb", runs_dir) as index:
        assert index.problems() == [] and set(index.runs()["steps"]) == {30, 20, 12}


def test_damaged_pngs_are_refused(tmp_path: Path) -> None:
    assert refused(png(tmp_path / "plain.png"), tmp_path / "runs", **ANSWERS)[0] == "import-png"
    content = png(tmp_path / "a.png", parameters=PARAMETERS).read_bytes()
    for length in range(8, len(content), 37):
        reason = refused(write(tmp_path, content[:length]), tmp_path / "runs", device="gaudi2")[0]
        assert reason in ("import-png", "import-cut-short", "import-odd")
    at = content.index(b"IDAT") + 8
    broken = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
    assert refused(write(tmp_path, broken), tmp_path / "runs", device="gaudi2")[0] in ("import-odd", "import-png")


# Detection, answers, duplicates.


def test_names_do_not_matter(tmp_path: Path) -> None:
    for name in EVERY:
        path = tmp_path / "renamed.bin"
        path.write_bytes((SAMPLES / name).read_bytes())
        assert detect.detect(Source(path, "renamed.bin")) == detect.detect(Source(SAMPLES / name, name))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_of_other_encodings(tmp_path: Path, encoding: str) -> None:
    """PowerShell's > writes UTF-16, and editors on Windows a mark before UTF-8."""
    for name in EVERY:
        if name.endswith("tfevents") or name == "mlperf-system.json":
            continue
        path = write(tmp_path, (SAMPLES / name).read_text().encode(encoding))
        original = plan_of(SAMPLES / name, tmp_path / "runs")
        assert [run.run_id for run in plan_of(path, tmp_path / "runs").runs] == [run.run_id for run in original.runs]


def test_windows_line_ends(tmp_path: Path) -> None:
    for name in EVERY:
        if name.endswith((".csv", ".txt")):
            path = write(tmp_path, (SAMPLES / name).read_text().replace("\n", "\r\n").encode())
            original = plan_of(SAMPLES / name, tmp_path / "runs")
            assert [run.run_id for run in plan_of(path, tmp_path / "runs").runs] == [
                run.run_id for run in original.runs
            ]


def test_what_is_missing_is_asked_and_never_guessed(tmp_path: Path) -> None:
    path, runs_dir = SAMPLES / "trainer-4.55.4-all_results.json", tmp_path / "runs"
    message_id, params = refused(path, runs_dir)
    assert message_id == "import-asked" and params["names"] == "workload, device"
    plan = plan_of(path, runs_dir, {"workload": "not published", "device": "not published"})
    assert plan.asked == () and plan.runs[0].record.device.kind == "not published"
    record = plan_of(
        path,
        runs_dir,
        {"workload": "bert-pretraining", "device": "A100 80GB", "batch_size": "2", "devices": "2", "tf32": "no",
         "precision": "bf16-mixed", "created": "2026-11-30", "software": "transformers 4.55.4"},
    ).runs[0].record  # fmt: skip
    assert (record.device.kind, record.conditions.batch_size_per_device, record.conditions.tf32) == ("cuda", 2, False)
    assert record.created_utc == "2026-11-30T00:00:00.000Z" and record.details["import"]["time"] == "answered"


@pytest.mark.parametrize(
    ("answers", "message_id"),
    [
        ({"batchsize": "4"}, "import-answer-name"),
        ({"precision": "half"}, "import-answer-value"),
        ({"workload": "bert"}, "import-answer-value"),
        ({"devices": "0"}, "import-answer-number"),
        ({"devices": "-1"}, "import-answer-number"),
        ({"devices": "nan"}, "import-answer-number"),
        ({"learning_rate": "1e400"}, "import-answer-number"),
        ({"created": "yesterday"}, "import-answer-time"),
        ({"tf32": "perhaps"}, "import-answer-value"),
        ({"warmup_rule": "some"}, "import-answer-value"),
        ({"device": "x" * 300}, "import-answer-long"),
    ],
)
def test_answers_are_checked(tmp_path: Path, answers: dict[str, str], message_id: str) -> None:
    with pytest.raises(ImportRefused) as caught:
        plan_of(SAMPLES / "trainer-4.55.4-all_results.json", tmp_path, answers)
    assert caught.value.message_id == message_id


def test_answers_cannot_contradict_the_file(tmp_path: Path) -> None:
    path = SAMPLES / "optimum-benchmark-0.6.0-tiny-sd.json"
    for answers in ({"batch_size": "8"}, {"workload": "other"}, {"device": "gaudi2"}, {"device_kind": "cuda"}):
        assert refused(path, tmp_path / "runs", **answers)[0] == "import-answer-conflict"
    path = SAMPLES / "trainer-4.55.4-all_results.json"
    assert refused(path, tmp_path / "runs", batch_size="3", **ANSWERS)[0] == "import-batch-disagrees"


@pytest.mark.parametrize("name", [name for name in EVERY if name != "mlperf-system.json"])
def test_a_second_import_adds_nothing_and_a_deleted_run_comes_back(tmp_path: Path, name: str) -> None:
    runs_dir = tmp_path / "runs"
    records = records_of(name, tmp_path)
    again = store(plan_of(SAMPLES / name, runs_dir, answers_for(name)), runs_dir)
    assert again.added == () and len(again.duplicates) == len(records)
    renamed = write(tmp_path, (SAMPLES / name).read_bytes(), "another name")
    assert store(plan_of(renamed, runs_dir, answers_for(name)), runs_dir).added == ()
    run = list_runs(runs_dir)[0]
    run.annotate(deleted=True)
    assert store(plan_of(SAMPLES / name, runs_dir, answers_for(name)), runs_dir).restored == (run.run_id,)
    assert run.annotations().get("deleted") is not True
    with Store(tmp_path / "index.duckdb", runs_dir) as index:
        assert len(index.runs()) == len(records) and index.problems() == []
    assert [path.name for path in runs_dir.iterdir() if path.name.startswith(".")] == []


# Bad files.


@pytest.mark.parametrize(
    ("content", "message_id"),
    [
        (b"", "import-empty"),
        (b"\x00\x01\x02" * 100, "import-binary"),
        (b"hello there", "import-unknown-format"),
        (b"\xff\xfeh\x00i\x00", "import-unknown-format"),
        (b'{"a": 1}', "import-unknown-json"),
        (b"[1, 2, 3]", "import-unknown-json"),
        (b"[" * 100_000, "import-unreadable"),
        (b'{"train_runtime": 1', "import-not-json"),
        (b'{"train_runtime": "\xff\xfe"}', "import-not-text"),
        (b'{"schema_version": 1, "run_id": "x"}', "import-bare-record"),
        (b'{"train_runtime": NaN}', "import-no-numbers"),
        (b'{"train_runtime": -5}', "import-implausible"),
        (b'{"train_samples_per_second": 1e300, "train_runtime": 1}', "import-implausible"),
        (b'{"train_samples_per_second": ' + b"9" * 5000 + b"}", "import-unreadable"),
        (b'{"train_samples_per_second": 0.01, "train_steps_per_second": 50.0}', "import-rates-disagree"),
        (b'{"log_history": [1, 2], "global_step": 3}', "import-odd"),
        (b'{"log_history": [], "global_step": 3}', "import-no-numbers"),
        (b'{"a::b": {"gaudi2": {"throughput": "fast"}}}', "import-implausible"),
        (b'{"a::b": {"gaudi2": 3}}', "import-odd"),
        (b':::MLLOG {"key": "run_start", "time_ms": 1}', "import-cut-short"),
        (b':::MLLOG {"key": "run_start", "time', "import-line-damaged"),
        (b':::MLLOG {"key": "loadgen_version", "time_ms": 1}', "import-loadgen-detail"),
        (b"MLPerf Results Summary\nMode : AccuracyOnly\n", "import-mlperf-accuracy"),
        (b"MLPerf Results Summary\nMode : PerformanceOnly\nSamples per second: 3\n", "import-cut-short"),
        (
            b"MLPerf Results Summary\nSamples per second: 1e30\nperformance_sample_count : 1\n",
            "import-implausible",
        ),
        (b"timestamp,project_name,duration,energy_consumed\n2026-01-01,x,1\n", "import-row-cells"),
        (b"timestamp,project_name,duration,energy_consumed\n2026-01-01,x,inf,1\n", "import-cell"),
        (b"timestamp,project_name,duration,energy_consumed\nyesterday,x,1,1\n", "import-cell"),
        (b"timestamp,project_name,duration,energy_consumed\n", "import-no-numbers"),
        (
            b"timestamp,project_name,duration,energy_consumed,gpu_energy\n2026-01-01,x,1,5000,5\n",
            "import-energy-disagrees",
        ),
        (b"pipeline_cls,ckpt_id,time (secs)\nA,b,-3\n", "import-cell"),
        (b"pipeline_cls,ckpt_id,time (secs)\nA,b,3\nA,b,3\n", "import-repeated-run"),
        (b"pipeline_cls,ckpt_id,time (secs)\n" + b"A" * 1_100_000, "import-line-too-long"),
    ],
)  # fmt: skip
def test_bad_files_are_refused_with_the_reason(tmp_path: Path, content: bytes, message_id: str) -> None:
    assert refused(write(tmp_path, content), tmp_path / "runs", **ANSWERS)[0] == message_id


def test_latencies_in_another_unit_are_refused(tmp_path: Path) -> None:
    document = json.loads((SAMPLES / "optimum-benchmark-0.6.0-tiny-sd.json").read_text())
    for path, wrong, message_id in (
        (("call", "latency", "unit"), "ms", "import-unit"),
        (("call", "latency", "values"), [14208.5, 14000.1, 15000.2], "import-rates-disagree"),
        (("call", "latency", "values"), [15.5, 12.1], "import-cut-short"),
        (("call", "latency", "values"), [15.5, None, 3.1], "import-implausible"),
    ):
        changed = json.loads(json.dumps(document))
        part = changed["report"]
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = wrong
        assert refused(write(tmp_path, changed), tmp_path / "runs")[0] == message_id


def test_nan_in_a_loss_curve_is_kept_and_said(tmp_path: Path) -> None:
    entries = [{"step": step, "loss": math.nan if step == 3 else 1.0 / step} for step in range(1, 5)]
    path = write(tmp_path, json.dumps({"global_step": 4, "log_history": entries}))
    runs_dir = tmp_path / "runs"
    assert store(plan_of(path, runs_dir, ANSWERS), runs_dir).problem is None
    [run] = list_runs(runs_dir)
    losses = run.record().series[0].values
    assert len(losses) == 4 and math.isnan(losses[2]) and "import-not-finite" in run.record().audit.warnings


def test_a_named_pipe_a_folder_and_a_missing_file(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing"):
        assert refused(path, tmp_path / "runs")[0] == "import-not-a-file"


def test_event_files_cut_anywhere_are_refused(tmp_path: Path) -> None:
    data = (SAMPLES / "torch-2.13-writer.tfevents").read_bytes()
    ends, position = set(), 0
    while position < len(data):
        position += 16 + struct.unpack_from("<Q", data, position)[0]
        ends.add(position)
    for length in range(60, len(data), 97):
        path = write(tmp_path, data[:length])
        if length not in ends:
            assert refused(path, tmp_path / "runs", **ANSWERS)[0] == "import-event-damaged"


def test_checksum_of_tfrecords() -> None:
    # RFC 3720, B.4: CRC-32C of 32 zero bytes is 0x8a9136aa; TFRecord rotates it by 15 and adds a constant.
    crc = 0x8A9136AA
    assert masked_crc(bytes(32)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_ten_million_lines_are_read_one_at_a_time(tmp_path: Path) -> None:
    """A log that is mostly other output, at a tenth of the size; memory must not grow with it."""
    import tracemalloc

    sample = (SAMPLES / "mlperf-training-bert-result.txt").read_text().splitlines(keepends=True)
    path = tmp_path / "long.txt"
    with path.open("w") as file:
        file.writelines(sample[:12])
        for _ in range(1000):
            file.write("step done, nothing to see here\n" * 1000)
        file.writelines(sample[12:])
    tracemalloc.start()
    try:
        plan = plan_of(path, tmp_path / "runs")
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert plan.problem is None and value(plan.runs[0].record, "samples_per_s") > 2000
    assert peak_bytes < 8 * 2**20


def test_too_many_rows_stop_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("data.importers.codecarbon.MAX_RUNS", 50)
    row = "2026-01-01T00:00:{:02d},x,{},1\n"
    header = "timestamp,project_name,duration,energy_consumed\n"
    path = write(tmp_path, header + "".join(row.format(n % 60, n + 1) for n in range(60)))
    assert refused(path, tmp_path / "runs", **ANSWERS)[0] == "import-too-many-runs"


def test_nothing_is_left_where_a_folder_cannot_take_its_name(tmp_path: Path) -> None:
    runs_dir = tmp_path / "runs"
    plan = plan_of(SAMPLES / "optimum-habana-baselines.json", runs_dir, {"workload": "other"})
    last = max(run.run_id for run in plan.runs)
    (runs_dir / last).mkdir(parents=True)  # a run that has not ended
    result = store(plan, runs_dir)
    assert result.problem is not None and result.problem[0] == "import-unfinished-here"
    assert [run.run_id for run in list_runs(runs_dir)] == [last]


def test_a_runs_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    plan = plan_of(SAMPLES / "optimum-benchmark-0.6.0-tiny-sd.json", tmp_path / "file")
    with pytest.raises(ImportRefused) as caught:
        store(plan, tmp_path / "file")
    assert caught.value.message_id == "import-unwritable"


# Mutated files: whatever happens to them, they are taken in whole or refused with a sentence.

TEXTS = [name for name in EVERY if name != "mlperf-system.json"]


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_files_are_taken_whole_or_refused(tmp_path: Path, name: str, data: st.DataObject) -> None:
    original = (SAMPLES / name).read_bytes()
    content = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "number"]))
        if kind == "flip":
            content[at] ^= data.draw(st.integers(1, 255))
        elif kind == "cut":
            del content[at : at + data.draw(st.integers(1, 400))]
        elif kind == "insert":
            content[at:at] = data.draw(st.binary(min_size=1, max_size=20))
        else:
            content[at:at] = data.draw(st.sampled_from([b"NaN", b"-1", b"1e999", b"99999999999999999999", b"null"]))
        if not content:
            break
    path = write(tmp_path, bytes(content))
    plan = plan_of(path, tmp_path / "none")
    if plan.problem is not None:
        assert "{" not in render(*plan.problem) or b"{" in content
        return
    plan = plan_of(path, tmp_path / "none", {name: ANSWERS[name] for name in plan.asked})
    if plan.problem is None:
        for run in plan.runs:
            assert all(math.isfinite(item.value) for item in run.record.metrics)
            assert run.record.metrics or run.record.series


# Personal fields.


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("/home/jo/models/sd-1.4", "sd-1.4"),
        (r"C:\Users\jo\models\sd-1.4", "sd-1.4"),
        ("~/sd-1.4", "sd-1.4"),
        ("CompVis/stable-diffusion-v1-4", "CompVis/stable-diffusion-v1-4"),
        ("hf_abcdefghijklmnop is mine", "… is mine"),
        ("ask jo@example.com", "ask …"),
        ("node 10.1.2.3 was slow", "node … was slow"),
        ("--hub_token=abcdef --lr 3", "--hub_token=… --lr 3"),
        ("https://jo:secret@host/x", "https://…host/x"),
        ("torch 2.13.0, 8 x A100", "torch 2.13.0, 8 x A100"),
        ("samples/s", "samples/s"),
        ("Linux-6.1-x86_64-with-glibc2.36", "Linux-6.1-x86_64-with-glibc2.36"),
    ],
)
def test_folders_and_secrets_are_taken_out(text: str, kept: str) -> None:
    assert clean(text) == kept


def test_no_sample_leaves_a_folder_or_a_host(tmp_path: Path) -> None:
    for name in TEXTS:
        for run in plan_of(SAMPLES / name, tmp_path, answers_for(name)).runs:
            assert "someone" not in repr(run.record) and "/home" not in repr(run.record), name


# Parts.


def test_ids_come_from_the_content_and_sort_by_age() -> None:
    one = metric("s_per_image", 1.0, "s/image", better="lower")
    assert one is not None
    drafts = [Draft(title="", metrics=(one,), started_utc=f"20{year}-01-01T00:00:00.000Z") for year in (24, 25, 26)]
    ids = [draft.run_id() for draft in drafts]
    assert ids == sorted(ids) and len(set(ids)) == 3 and all(run_id[14] == "8" for run_id in ids)
    assert Draft(title="", metrics=(one,)).run_id() == Draft(title="", metrics=(one,), warnings=("x",)).run_id()
    assert Draft(title="", metrics=(one,)).run_id() != Draft(title="", workload="other", metrics=(one,)).run_id()


def test_encodings() -> None:
    assert encoding_of("abc".encode("utf-16")) == "utf-16" and encoding_of(b"abc") == "utf-8"
    assert encoding_of(b"\x00\x00\x01\x02") is None and encoding_of(b"") == "utf-8"


def test_lines_have_numbers_and_say_where_text_ends(tmp_path: Path) -> None:
    path = write(tmp_path, b"one\r\ntwo\rthree\n")
    assert list(lines(Source(path, "x"))) == [(1, "one"), (2, "two"), (3, "three")]
    path.write_bytes(b"one\n" * 50_000 + b"\xff")
    with pytest.raises(ImportRefused) as caught:
        list(lines(Source(path, "x")))
    assert caught.value.message_id == "import-not-text" and caught.value.params["line"] > 40_000


# The command.


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    code = main([*arguments, "--json"])
    captured = capsys.readouterr()
    return code, json.loads(captured.out.splitlines()[-1]), captured.err


def test_the_command_imports_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs_dir = str(tmp_path / "var" / "runs")
    file = str(SAMPLES / "trainer-4.55.4-all_results.json")
    code, document, stderr = call(capsys, "import", file, "--dry-run")
    assert code == 0 and document["files"][0]["asked"] == ["workload", "device"] and "--set" in stderr
    code, document, stderr = call(capsys, "import", file)
    assert code == 1 and document["files"][0]["problem"]["message_id"] == "import-asked"
    assert list_runs(Path(runs_dir)) == []
    arguments = ("import", file, "--set", "device=gaudi2", "--set", "workload=other", "--set", "batch_size=4")
    code, document, stderr = call(capsys, *arguments)
    assert code == 0 and len(document["files"][0]["added"]) == 1 and "1 added" in stderr
    code, document, stderr = call(capsys, *arguments)
    assert code == 0 and document["files"][0]["duplicates"] and "1 already here" in stderr
    code, document, stderr = call(capsys, "import", file, "--set", "device")
    assert code == 1 and document["error"]["message_id"] == "not-field-equals-value"
    code, document, stderr = call(capsys, "import", str(tmp_path / "missing"), file, *arguments[2:])
    assert code == 1 and document["files"][1]["problem"] is None, "one bad file does not keep out the others"

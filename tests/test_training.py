"""BERT pretraining and T5 fine-tuning at tiny sizes: the real trainers, our clock, the data, and what is refused."""

import itertools
import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

from runners.device import backend
from runners.errors import DoesNotFit, SpecError
from runners.execute import Outcome, RunContext, execute
from runners.preflight_training import BERT_CONFIGS, T5_CONFIGS, check_memory, parameters_of
from runners.queue import RunQueue
from runners.registry import WORKLOADS, make_spec
from runners.rundir import create_run, list_runs
from runners.steady import Pacing
from runners.workloads import bert_pretraining, t5_finetuning
from runners.workloads.training import StepClock
from runners.workloads.training_text import SPECIAL_TOKENS, made_up_sequences, pairs_of_folder, sequences_of_folder

BERT = {"model": "bert-tiny", "sequence_length": 16, "batch_size": 8, "steps": 8, "device": "cpu"}
T5 = {"model": "t5-tiny", "source_length": 16, "target_length": 8, "batch_size": 4, "steps": 8, "device": "cpu"}
RUNS = {"bert-pretraining": (bert_pretraining.run, BERT), "t5-finetuning": (t5_finetuning.run, T5)}


def run(tmp_path: Path, workload: str, **changes: Any) -> Outcome:
    function, fields = RUNS[workload]
    run_dir = create_run(tmp_path / "runs", workload, {})
    context = RunContext(run_dir=run_dir, device=backend("cpu"))
    return function(make_spec(workload, {**fields, **changes}), context)  # type: ignore[operator]


def losses(outcome: Outcome) -> list[float]:
    return [value for series in outcome.series if series.name == "loss" for value in series.values]


@pytest.mark.parametrize("workload", list(RUNS))
class TestBoth:
    @pytest.mark.timeout(400)  # 150 steps on a machine that has other work
    def test_the_loss_falls_on_text_that_can_be_learned(self, tmp_path: Path, workload: str) -> None:
        outcome = run(tmp_path, workload, steps=150, batch_size=16, learning_rate=3e-3)
        found = losses(outcome)
        assert len(found) == 152
        assert sum(found[-8:]) / 8 < 0.95 * sum(found[:8]) / 8

    def test_samples_per_second_are_samples_over_the_measured_seconds(self, tmp_path: Path, workload: str) -> None:
        outcome = run(tmp_path, workload, warmup_steps=3)
        [measured] = [series for series in outcome.series if series.name == "step_s" and series.phase == "measured"]
        [warm] = [series for series in outcome.series if series.name == "step_s" and series.phase == "warm-up"]
        assert (len(warm.values), len(measured.values)) == (3, 8)
        [rate] = [metric for metric in outcome.metrics if metric.name == "samples_per_s"]
        batch = RUNS[workload][1]["batch_size"]
        assert rate.value == pytest.approx(batch * 8 / sum(measured.values))  # type: ignore[operator]
        assert outcome.conditions.warmup_rule == "first-3-steps-dropped"
        assert outcome.conditions.batch_size_per_device == batch

    def test_the_trainer_s_own_number_is_kept_and_agrees(self, tmp_path: Path, workload: str) -> None:
        outcome = run(tmp_path, workload, steps=30)
        ours, theirs = (outcome.details[name] for name in ("samples_per_s_over_all_steps", "trainer_samples_per_s"))
        # Tiny steps of a few milliseconds: the trainer's own start and end weigh more than in a real run.
        assert theirs == pytest.approx(ours, rel=0.25)

    def test_the_same_seed_gives_the_same_losses(self, tmp_path: Path, workload: str) -> None:
        first, second, other = (run(tmp_path, workload, seed=seed) for seed in (1, 1, 2))
        assert losses(first) == losses(second)
        assert losses(first) != losses(other)

    def test_checkpointing_changes_the_memory_and_not_the_loss(self, tmp_path: Path, workload: str) -> None:
        plain = run(tmp_path, workload, gradient_checkpointing=False)
        checkpointed = run(tmp_path, workload, gradient_checkpointing=True)
        assert losses(plain)[0] == pytest.approx(losses(checkpointed)[0], rel=1e-5)
        assert checkpointed.conditions.gradient_checkpointing is True

    def test_mixed_precision_is_named_so(self, tmp_path: Path, workload: str) -> None:
        outcome = run(tmp_path, workload, precision="bf16", steps=2)
        assert outcome.conditions.precision == "bf16-mixed"
        assert all(math.isfinite(loss) for loss in losses(outcome))

    def test_every_preset_is_a_specification(self, tmp_path: Path, workload: str) -> None:
        for preset in WORKLOADS[workload].presets.values():
            assert make_spec(workload, preset.fields)

    def test_a_diverging_run_is_a_failed_record(self, tmp_path: Path, workload: str) -> None:
        run_dir = create_run(tmp_path / "runs", workload, {**RUNS[workload][1], "learning_rate": 1.0, "steps": 200})  # type: ignore[dict-item]
        record = execute(run_dir)
        assert record.status in ("ok", "failed")
        if record.status == "failed":
            assert record.error is not None and record.error.message_id == "loss-not-finite"

    def test_cancelling_stops_at_the_next_step(self, tmp_path: Path, workload: str) -> None:
        run_dir = create_run(tmp_path / "runs", workload, {**RUNS[workload][1], "steps": 100_000})  # type: ignore[dict-item]
        run_dir.ask_to_cancel()
        assert execute(run_dir).status == "cancelled"


def test_the_projection_counts_all_samples_of_the_published_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bert_pretraining.PUBLISHED_SAMPLES == {32: 65_000 * 256, 64: 20_000 * 512}
    monkeypatch.setitem(bert_pretraining.BERT_CONFIGS, "bert-base", BERT_CONFIGS["bert-tiny"])  # type: ignore[arg-type]
    outcome = run(tmp_path, "bert-pretraining", model="bert-base", batch_size=32, steps=3)
    values = {metric.name: metric.value for metric in outcome.metrics}
    assert values["projected_time_to_train_s"] == pytest.approx(65_000 * 256 / values["samples_per_s"])


class TestClock:
    @pytest.fixture
    def device(self, monkeypatch: pytest.MonkeyPatch) -> "Device":
        made = Device()
        monkeypatch.setattr("runners.workloads.training.time.perf_counter", lambda: made.now_s)
        return made

    def test_hand_made_step_times(self, device: "Device") -> None:
        clock = StepClock(device, Pacing(2, 3, adaptive=False))  # type: ignore[arg-type]
        clock.begin()
        for seconds in (3.0, 1.0, 0.5, 0.5, 0.5):
            device.now_s += seconds
            over = clock.step_ended()
        assert over
        assert (clock.pacing.warmup, clock.pacing.measured) == ([3.0, 1.0], [0.5, 0.5, 0.5])

    def test_it_waits_at_the_edges_of_the_region_only(self, device: "Device") -> None:
        clock = StepClock(device, Pacing(3, 7, adaptive=False))  # type: ignore[arg-type]
        clock.begin()
        waits_after = []
        for step in range(1, 11):
            device.queued_s = 1.0  # queued, not done: only waiting makes it pass
            before = device.waits
            clock.step_ended()
            waits_after += [step] * (device.waits - before)
        assert waits_after == [3, 10], "after the warm-up, after the last"
        assert sum(clock.pacing.measured) == pytest.approx(1.0)

    def test_an_adaptive_run_waits_in_the_warm_up_and_where_it_looks(self, device: "Device") -> None:
        clock = StepClock(device, Pacing(50, 100))  # type: ignore[arg-type]
        clock.begin()
        waits_after, over = [], False
        while not over:
            device.now_s += 1.0
            before = device.waits
            over = clock.step_ended()
            waits_after += [len(clock.pacing.measured)] * (device.waits - before)
        assert waits_after == [0] * 10 + [20, 30, 45]


class Device:
    """Queued work takes its time when somebody waits."""

    def __init__(self) -> None:
        self.now_s, self.queued_s, self.waits = 10.0, 0.0, 0

    def synchronize(self) -> None:
        self.waits += 1
        self.now_s += self.queued_s
        self.queued_s = 0.0


def test_an_adaptive_training_ends_by_itself(tmp_path: Path) -> None:
    fields = {"model": "bert-tiny", "batch_size": 1, "sequence_length": 8, "stopping": "adaptive"}
    outcome = run(tmp_path, "bert-pretraining", **fields, warmup_steps=60, steps=400)
    told = outcome.details["stopping"]
    measured = next(item for item in outcome.series if (item.name, item.phase) == ("step_s", "measured"))
    assert told["rule"] == "adaptive"
    assert told["measured_samples"] == len(measured.values)
    assert told["target_reached"] or told["measured_samples"] == 400
    assert outcome.conditions.steps == told["warmup_samples"] + told["measured_samples"]
    assert outcome.conditions.warmup_rule == (
        "until-no-trend" if told["warm_by_trend_test"] else "first-60-steps-dropped"
    )
    losses = next(item for item in outcome.series if (item.name, item.phase) == ("loss", "measured"))
    assert len(losses.values) == len(measured.values)


def test_an_adaptive_warm_up_needs_room_for_its_test() -> None:
    with pytest.raises(SpecError, match="warmup_steps of 10 or more"):
        make_spec("bert-pretraining", {"stopping": "adaptive", "warmup_steps": 9})
    with pytest.raises(SpecError, match="warmup_batches of 10 or more"):
        make_spec("text-to-image", {"stopping": "adaptive", "images": 20})


class TestSizes:
    @pytest.mark.parametrize("name", list(BERT_CONFIGS))
    def test_bert_s_parameters(self, name: str) -> None:
        import torch

        spec = make_spec("bert-pretraining", {"model": name})
        with torch.device("meta"):
            model, _config = bert_pretraining._model(spec)
        assert parameters_of(spec) == sum(parameter.numel() for parameter in model.parameters())

    @pytest.mark.parametrize("name", list(T5_CONFIGS))
    def test_t5_s_parameters(self, name: str) -> None:
        import torch

        spec = make_spec("t5-finetuning", {"model": name})
        with torch.device("meta"):
            model, _config = t5_finetuning._model(spec)
        assert parameters_of(spec) == sum(parameter.numel() for parameter in model.parameters())

    def test_the_published_sizes(self) -> None:
        assert parameters_of(make_spec("bert-pretraining", {})) == pytest.approx(110.65e6, rel=1e-3)
        assert parameters_of(make_spec("t5-finetuning", {"model": "t5-3b"})) == 2_851_598_336

    def test_t5_3b_is_refused_at_once_with_the_sum(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import dataclasses

        from runners.device.cpu import Cpu

        info = dataclasses.replace(Cpu().info(), memory_bytes=24 * 2**30)
        monkeypatch.setattr(Cpu, "info", lambda _self: info)
        began_s = time.monotonic()
        with pytest.raises(DoesNotFit, match=r"42\.5 GiB .* model=t5-large"):
            RunQueue(tmp_path).submit("t5-finetuning", {"model": "t5-3b", "device": "cpu"})
        assert time.monotonic() - began_s < 2
        assert list_runs(tmp_path) == []

    def test_a_batch_that_is_too_large_is_told_the_one_that_fits(self) -> None:
        spec = make_spec("bert-pretraining", {"batch_size": 1000})
        with pytest.raises(DoesNotFit) as refusal:
            check_memory(spec, "cpu", 16 * 2**30)
        fitting = refusal.value.params["fitting"]
        assert isinstance(fitting, int) and 1 <= fitting < 1000
        check_memory(make_spec("bert-pretraining", {"batch_size": fitting}), "cpu", 16 * 2**30)


class TestData:
    def folder(self, tmp_path: Path, name: str, content: bytes) -> Path:
        folder = tmp_path / "data"
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        return folder

    def test_a_folder_of_text_is_trained_on(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path, "a.txt", ("a line of text, again and again\n" * 50).encode())
        outcome = run(tmp_path, "bert-pretraining", data=str(folder), steps=3)
        assert outcome.details["tokens"] == "bytes"
        assert len(losses(outcome)) == 5

    def test_articles_and_summaries_are_trained_on(self, tmp_path: Path) -> None:
        lines = [json.dumps({"article": f"article {n} about a cat", "highlights": f"cat {n}"}) for n in range(30)]
        folder = self.folder(tmp_path, "a.jsonl", "\n".join(lines).encode())
        assert len(losses(run(tmp_path, "t5-finetuning", data=str(folder), steps=3))) == 5

    def test_parquet(self, tmp_path: Path) -> None:
        import pyarrow
        import pyarrow.parquet

        folder = self.folder(tmp_path, "x.txt", b"")
        (folder / "x.txt").unlink()
        table = pyarrow.table({"article": ["one", "two"], "highlights": ["1", "2"]})
        pyarrow.parquet.write_table(table, folder / "a.parquet")
        assert pairs_of_folder(folder, 3) == [("one", "1"), ("two", "2"), ("one", "1")]

    @pytest.mark.parametrize(
        ("name", "content", "said"),
        [
            ("a.txt", b"one line", "too short"),
            ("a.txt", b"", "too short"),
            ("a.txt", b"\xff\xfe\x00binary" * 100, "line 1 is not UTF-8"),
            ("a.txt", b"fine\n" + b"nul \x00 byte\n" * 10, "line 2 is not UTF-8"),
            ("a.jsonl", b'{"text": "x"}\n{"text": \n', "line 2 is no JSON"),
            ("a.jsonl", b'{"text": 5}\n', "no text in the field"),
            ("a.parquet", b"PAR1 nonsense", "cannot be read as Parquet"),
            ("a.csv", b"text\nx", "no file that is read here"),
        ],
    )
    def test_bad_files_are_named_with_their_line(self, tmp_path: Path, name: str, content: bytes, said: str) -> None:
        with pytest.raises(SpecError, match=said):
            sequences_of_folder(self.folder(tmp_path, name, content), 4, 512, 1024)

    def test_a_missing_field_deep_in_a_file_is_named_by_its_line(self, tmp_path: Path) -> None:
        whole = json.dumps({"article": "a", "highlights": "b"})
        content = "\n".join([*[whole] * 40_000, json.dumps({"article": "only"})])
        with pytest.raises(SpecError, match=r"line 40001 .*highlights"):
            pairs_of_folder(self.folder(tmp_path, "a.jsonl", content.encode()), 50_000)

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(SpecError, match="There is no folder"):
            sequences_of_folder(tmp_path / "nowhere", 1, 16, 1024)

    def test_only_what_is_needed_is_read(self, tmp_path: Path) -> None:
        folder = self.folder(tmp_path, "a.txt", b"a good line of text\n" * 100)
        (folder / "b.txt").write_bytes(b"\xff not text")
        assert len(sequences_of_folder(folder, 10, 64, 1024)) == 10

    def test_made_up_text_is_the_same_for_the_same_seed(self) -> None:
        assert made_up_sequences(4, 32, 1024, 0) == made_up_sequences(4, 32, 1024, 0)
        assert made_up_sequences(4, 32, 1024, 0) != made_up_sequences(4, 32, 1024, 1)
        assert all(SPECIAL_TOKENS <= token < 1024 for row in made_up_sequences(9, 600, 1024, 0) for token in row)

    def test_masks_ask_for_fifteen_percent_and_never_for_padding(self) -> None:
        rows = bert_pretraining.masked(made_up_sequences(200, 64, 1024, 0), 1024, 0)
        asked = sum(int((row["labels"] != -100).sum()) for row in rows)
        assert asked / (200 * 64) == pytest.approx(0.15, abs=0.01)
        hidden = sum(int((row["input_ids"] == bert_pretraining.MASK).sum()) for row in rows)
        assert hidden / asked == pytest.approx(0.8, abs=0.03)


def test_each_step_keeps_its_learning_rate_and_gradient_norm(tmp_path: Path) -> None:
    outcome = run(tmp_path, "bert-pretraining", steps=8, warmup_steps=2)
    columns = {name: [] for name in ("learning_rate", "gradient_norm", "loss", "step_s")}
    for series in outcome.series:
        columns[series.name] += series.values
    assert {len(values) for values in columns.values()} == {10}
    # Linear from the highest to zero over all steps, as published: step i uses (1 - i / 10) of it.
    assert columns["learning_rate"] == pytest.approx([5e-5 * (1 - step / 10) for step in range(10)])
    assert all(0 < norm < 1e3 for norm in columns["gradient_norm"])


def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    outcome = run(tmp_path, "bert-pretraining", steps=8, warmup_steps=2)
    events = EventAccumulator(str(list_runs(tmp_path / "runs")[0].path / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {"train/loss", "train/learning_rate", "train/grad_norm", "train/step_s"}
    points = events.Scalars("train/loss")
    assert [point.step for point in points] == list(range(1, 11))
    assert [point.value for point in points] == pytest.approx(losses(outcome), rel=1e-6)
    spans = [after.wall_time - before.wall_time for before, after in itertools.pairwise(points)]
    assert spans == pytest.approx([p.value for p in events.Scalars("train/step_s")][1:], abs=1e-3)


def test_every_sequence_asks_for_as_many_words() -> None:
    examples = bert_pretraining.masked([list(range(5, 45)), list(range(7, 47))], vocabulary=100, seed=0)
    assert [int((example["labels"] != -100).sum()) for example in examples] == [6, 6]  # 15 % of 40

"""The Benchmarks page: its form comes from the specifications, its queue from files."""

import dataclasses
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import benchmark_form
from runners.device.cpu import Cpu
from runners.paths import runs_dir
from runners.queue import RunQueue
from runners.queue_files import BENCHMARK, QueueFiles
from runners.registry import WORKLOADS, make_spec
from runners.rundir import RunDir, create_run
from runners.spec_fields import fields_of
from runners.specs import SPECS
from tests.test_app_views import app, make_failed_run, make_image_run, texts

__all__ = ["app"]  # the fixture
BENCHMARKS = "app/views/benchmarks.py"


@pytest.fixture
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue stays as it is: no dispatcher takes from it."""
    monkeypatch.setattr(RunQueue, "_start_dispatcher", lambda _self: None)


def waiting() -> list[RunDir]:
    return [RunDir(runs_dir() / entry.run_id) for entry in QueueFiles(runs_dir()).entries()]


def queue_of(count: int) -> list[RunDir]:
    files = QueueFiles(runs_dir())
    files.make()
    return [
        create_run(
            runs_dir(),
            "synthetic",
            {"steps": number + 1},
            source="benchmarks",
            announce=lambda run_id: files.add(run_id, BENCHMARK),
        )
        for number in range(count)
    ]


def open_page(app: AppTest) -> AppTest:
    at = app.run().switch_page(BENCHMARKS).run()
    assert not at.exception
    return at


def choose(at: AppTest, workload: str) -> AppTest:
    return at.selectbox(key=benchmark_form.WORKLOAD_KEY).set_value(workload).run()


@pytest.fixture
def large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that holds every published model."""
    info = dataclasses.replace(Cpu().info(), memory_bytes=10**13)
    monkeypatch.setattr(Cpu, "info", lambda _self: info)


@pytest.mark.usefixtures("no_processes", "large_machine")
class TestForm:
    @pytest.mark.parametrize("workload", [name for name in WORKLOADS if name in SPECS])
    def test_every_field_of_a_workload_can_be_set(self, app: AppTest, workload: str) -> None:
        at = choose(open_page(app), workload)
        assert not at.exception
        assert not at.error
        for field in fields_of(SPECS[workload]):
            if field.name not in benchmark_form.HIDDEN_FIELDS:
                assert at.get_by_key(f"benchmarks_{workload}_{field.name}") is not None

    @pytest.mark.parametrize(
        ("workload", "preset"), [(w.name, p) for w in WORKLOADS.values() if w.name in SPECS for p in w.presets]
    )
    def test_a_preset_is_run_as_it_is(self, app: AppTest, workload: str, preset: str) -> None:
        at = choose(open_page(app), workload)
        at.selectbox(key=f"benchmarks_{workload}_preset").set_value(preset).run()
        at.button(key="benchmarks_start").click().run()
        assert not at.exception
        assert not at.error
        [run] = waiting()
        request = run.request()
        extra = benchmark_form.BENCHMARK_FIELDS.get(workload, {})
        assert (request.workload, request.preset, request.source) == (workload, preset, "benchmarks")
        wanted = make_spec(workload, {**WORKLOADS[workload].presets[preset].fields, **extra})
        assert make_spec(workload, request.fields) == wanted

    def test_a_changed_preset_is_not_named_in_the_record(self, app: AppTest) -> None:
        at = choose(open_page(app), "synthetic")
        at.number_input(key="benchmarks_synthetic_steps").set_value(7).run()
        at.button(key="benchmarks_start").click().run()
        request = waiting()[0].request()
        assert (request.preset, request.fields["steps"]) == (None, 7)

    def test_repetitions_are_runs_of_one_group(self, app: AppTest) -> None:
        at = choose(open_page(app), "synthetic")
        at.number_input(key=benchmark_form.REPEATS_KEY).set_value(3)
        at.number_input(key=benchmark_form.LIMIT_KEY).set_value(2)
        at.button(key="benchmarks_start").click().run()
        requests = [run.request() for run in waiting()]
        assert [request.repeat for request in requests] == [0, 1, 2]
        assert len({request.group_id for request in requests}) == 1
        assert {request.timeout_s for request in requests} == {120.0}

    @pytest.mark.parametrize(("field", "value", "said"), [("steps", 0, "between 1"), ("batch_size", 10**7, "between")])
    def test_what_cannot_be_run_is_refused_in_place(self, app: AppTest, field: str, value: Any, said: str) -> None:
        at = choose(open_page(app), "synthetic")
        at.number_input(key=f"benchmarks_synthetic_{field}").set_value(value)
        at.button(key="benchmarks_start").click().run()
        assert said in texts(at)
        assert waiting() == []
        assert at.number_input(key=f"benchmarks_synthetic_{field}").value == value, "what was typed stays"


@pytest.mark.usefixtures("no_processes")
def test_what_does_not_fit_is_refused_before_it_is_started(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    info = dataclasses.replace(Cpu().info(), memory_bytes=24 * 2**30)
    monkeypatch.setattr(Cpu, "info", lambda _self: info)
    at = choose(open_page(app), "t5-finetuning")
    at.selectbox(key="benchmarks_t5-finetuning_preset").set_value("published-gaudi2-batch-1").run()
    assert not at.exception
    assert "42.5 GiB" in texts(at)
    at.button(key="benchmarks_start").click().run()
    assert waiting() == []


@pytest.mark.usefixtures("no_processes")
class TestQueue:
    def test_empty_it_says_so(self, app: AppTest) -> None:
        assert "Nothing runs and nothing waits." in texts(open_page(app))

    def test_order_and_removal(self, app: AppTest) -> None:
        first, second, third = queue_of(3)
        at = open_page(app)
        at.button(key=f"queue_down_{first.run_id}").click().run()
        assert waiting() == [second, first, third] or [run.run_id for run in waiting()] == [
            second.run_id,
            first.run_id,
            third.run_id,
        ]
        at.button(key=f"queue_up_{third.run_id}").click().run()
        assert [run.run_id for run in waiting()] == [second.run_id, third.run_id, first.run_id]
        at.button(key=f"queue_remove_{third.run_id}").click().run()
        assert third.cancel_asked()
        assert third.annotations()["deleted"] is True

    def test_pausing_and_going_on(self, app: AppTest) -> None:
        queue_of(1)
        at = open_page(app)
        at.button(key="queue_pause").click().run()
        assert RunQueue(runs_dir()).paused
        at.button(key="queue_resume").click().run()
        assert not RunQueue(runs_dir()).paused

    def test_what_has_gone_meanwhile_is_told(self, app: AppTest) -> None:
        first, _second = queue_of(2)
        at = open_page(app)
        button = at.button(key=f"queue_down_{first.run_id}")
        for entry in QueueFiles(runs_dir()).entries():
            QueueFiles(runs_dir()).remove(entry)
        button.click().run()
        assert not at.exception
        assert "does not wait in the queue any more" in texts(at)


class TestResults:
    def test_empty_it_says_what_to_do(self, app: AppTest) -> None:
        assert "No benchmark has ended yet" in texts(open_page(app))

    def test_benchmarks_are_shown_and_images_are_not(self, app: AppTest) -> None:
        make_image_run("an image of the playground")
        make_failed_run("failed", "synthetic-failure", step=7)
        at = open_page(app)
        labels = [item.label for item in at.expander]
        assert any("Dry run" in label and "Failed" in label for label in labels)
        assert not any("Image generation" in label for label in labels)
        assert "failed at step 7" in texts(at)

    @pytest.mark.usefixtures("no_processes")
    def test_a_failed_one_can_be_run_again(self, app: AppTest) -> None:
        run = make_failed_run("failed", "synthetic-failure", step=7)
        at = open_page(app)
        at.button(key=f"retry-{run.run_id}").click().run()
        assert not at.exception
        [again] = waiting()
        assert again.run_id != run.run_id
        assert again.request().fields == run.request().fields

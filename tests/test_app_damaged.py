"""Run folders that are damaged in all kinds of ways: each page goes on, and the sound run beside them is shown."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import run_detail
from runners.paths import runs_dir
from runners.queue import QueueState, RunQueue
from runners.rundir import RunDir, create_run
from tests.test_app_views import EXPLORER, PLAYGROUND, app, make_failed_run, make_image_run, texts

__all__ = ["app"]  # the fixture

Document = dict[str, Any]


def _each(part: str, **changes: object) -> Callable[[Document], None]:
    return lambda record: [item.update(changes) for item in record[part]] and None


RECORD_DAMAGE: dict[str, Callable[[Document], Any]] = {
    "not a number": _each("metrics", value=float("nan")),
    "infinite": _each("metrics", value=float("inf")),
    "zero": _each("metrics", value=0),
    "text for a number": _each("metrics", value="fast"),
    "overflowing samples": _each("series", values=[1e308] * 7),
    "odd clock": _each("metrics", timed_region=["x"], n=0),
    "odd interval": _each("metrics", interval=[float("nan"), float("inf")]),
    "odd duration": _each("phases", duration_s="long"),
    "odd time": lambda record: record.update(created_utc="yesterday"),
    "odd details": lambda record: record.update(details=[1]),
    "odd seeds": lambda record: record["details"].update(seeds=["x"]),
    "odd device": lambda record: record["device"].update(name=5, memory_bytes="x"),
    "odd conditions": lambda record: record["conditions"].update(steps="many", devices=0),
    "odd warnings": lambda record: record["audit"].update(warnings=[5, {"a": 1}]),
    "no file name": _each("artifacts", path="images/\0.png"),
    "endless file name": _each("artifacts", path="a" * 5000),
    "number for a file name": _each("artifacts", path=5),
    "half a surrogate pair": lambda record: record["spec"].update(prompt="\ud800 half"),
}


def _rewrite(run: RunDir, name: str, change: Callable[[Document], Any]) -> None:
    document = json.loads((run.path / name).read_text(encoding="utf-8"))
    change(document)
    (run.path / name).write_text(json.dumps(document), encoding="utf-8")


def _unfinished(spec: dict[str, object] | None = None, events: str | None = None) -> RunDir:
    run = create_run(runs_dir(), "text-to-image", {"prompt": "x"}, source="playground")
    if spec is not None:
        _rewrite(run, "spec.json", lambda document: document.update(spec))
    if events is not None:
        (run.path / "events.jsonl").write_text(events, encoding="utf-8")
    return run


def _unfinished_and_damaged() -> list[RunDir]:
    cut, without_events = _unfinished(), _unfinished()
    (cut.path / "spec.json").write_text('{"run_id": "', encoding="utf-8")
    (without_events.path / "events.jsonl").mkdir()
    started = '{"kind": "started", "t": "2026-12-01T00:00:00.000Z"}\n'
    return [
        cut,
        without_events,
        _unfinished(spec={"fields": [1]}),
        _unfinished(spec={"fields": {"prompt": "\ud800 half"}, "created_utc": 7}),
        _unfinished(events='{"kind": "started"}\n{"kind": "progress"}\n[1]\n'),
        _unfinished(events=started + '{"kind": "progress", "t": "x", "phase": 5, "step": "a", "steps": [1]}\n'),
    ]


def _damaged_runs() -> list[RunDir]:
    runs = []
    for change in RECORD_DAMAGE.values():
        runs.append(make_image_run("damaged"))
        _rewrite(runs[-1], "record.json", change)
    nested, no_image, error = make_image_run("nested"), make_image_run("no image"), make_failed_run("failed", "unheard")
    (nested.path / "annotations.json").write_text("[" * 100_000, encoding="utf-8")
    (no_image.images_dir / "000.png").write_bytes(b"")
    _rewrite(error, "record.json", lambda record: record["error"].update(params=[1], log_tail=5))
    return [*runs, nested, no_image, error]


def test_no_damage_takes_a_page_down(app: AppTest) -> None:
    make_image_run("a sound cat")
    runs = [*_damaged_runs(), *_unfinished_and_damaged()]
    at = app.run()
    assert not at.exception
    at.switch_page(PLAYGROUND).run()
    assert not at.exception
    assert "a sound cat" in texts(at)
    at.switch_page(EXPLORER).run()
    assert not at.exception
    assert "a sound cat" in list(at.dataframe[0].value["Prompt"])
    for run in runs:
        at.query_params["run"] = run.run_id
        at.run()
        assert not at.exception, run.run_id


def test_a_damaged_run_that_goes_on_can_be_cancelled(app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    app.run()
    monkeypatch.setattr(RunQueue, "ensure_dispatcher", lambda _self: None)  # it would record the runs as lost
    for run in _unfinished_and_damaged():
        working = QueueState(worker="generating", current=run.run_id)
        monkeypatch.setattr(RunQueue, "state", lambda _self, working=working: working)
        at = app.switch_page(PLAYGROUND).run()
        assert not at.exception
        if not run.has_record():
            assert at.button(key=f"cancel-{run.run_id}")


def test_an_image_cut_short_is_told_where_it_would_stand(app: AppTest) -> None:
    run = make_image_run("half a cat")
    path = run.images_dir / "000.png"
    path.write_bytes(run_detail.PNG_SIGNATURE + b"cut")
    at = app.run().switch_page(PLAYGROUND).run()
    assert not at.exception
    assert "hold something that cannot be shown" in texts(at)

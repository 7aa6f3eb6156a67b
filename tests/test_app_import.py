"""Bringing results in and taking them out in the app: the dialog asks, shows and stores; the menu makes files."""

import json
import shutil
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.export_menu import FORMATS, _maker
from data.importers.keep import store
from data.importers.plan import make_plan
from data.importers.reading import Source
from runners.paths import runs_dir
from runners.rundir import list_runs

ENTRY = Path(__file__).resolve().parent.parent / "streamlit_app.py"
SAMPLES = Path(__file__).parent / "samples" / "imports"


@pytest.fixture(autouse=True)
def _fresh_caches() -> None:
    import streamlit as st

    st.cache_data.clear()
    st.cache_resource.clear()


def explorer() -> AppTest:
    at = AppTest.from_file(str(ENTRY), default_timeout=60)
    at.run()
    at.switch_page("app/views/explorer.py").run()
    assert not at.exception
    return at


def dialog(*names: str, **others: bytes) -> AppTest:
    """The dialog's content on a page of its own: AppTest does not run a dialog again by itself, as a browser does."""

    def script() -> None:
        from app import import_dialog

        import_dialog.content()

    at = AppTest.from_function(script, default_timeout=60).run()
    files = [(name, (SAMPLES / name).read_bytes(), "application/octet-stream") for name in names]
    files += [(name, content, "application/octet-stream") for name, content in others.items()]
    at.file_uploader(key="import_files").set_value(files).run()
    assert not at.exception
    return at


def texts(at: AppTest) -> str:
    return " ".join(str(item.value) for kind in (at.markdown, at.caption, at.error, at.warning) for item in kind)


def take_in(name: str, **answers: str) -> None:
    [plan] = make_plan([Source(SAMPLES / name, name)], answers, runs_dir())
    assert store(plan, runs_dir()).problem is None


def test_the_dialog_asks_before_it_stores() -> None:
    at = dialog("trainer-4.55.4-all_results.json")
    assert at.button(key="import_go").disabled and "Needed before" in texts(at)
    at.selectbox(key="import_set_workload").set_value("other").run()
    assert at.button(key="import_go").disabled
    at.selectbox(key="import_set_device").set_value("Gaudi2").run()
    at.text_input(key="import_set_batch_size_per_device").set_value("4").run()
    assert not at.exception and not at.button(key="import_go").disabled
    assert list_runs(runs_dir()) == []
    at.button(key="import_go").click().run()
    assert not at.exception
    [run] = list_runs(runs_dir())
    record = run.record()
    assert (record.device.name, record.conditions.batch_size_per_device) == ("Gaudi2", 4)
    assert at.session_state["import_done"] == "1 run imported."


def test_the_explorer_opens_the_dialog() -> None:
    at = explorer()
    at.button(key="import_open").click().run()
    assert not at.exception and at.file_uploader(key="import_files") and "recognised by their content" in texts(at)


def test_wrong_answers_and_bad_files_are_sentences() -> None:
    at = dialog("trainer-4.55.4-all_results.json")
    at.text_input(key="import_set_devices").set_value("many").run()
    assert "positive number" in texts(at) and not at.exception
    at = dialog("optimum-benchmark-0.6.0-tiny-sd.json", bad=b"\0\1\2" * 50)
    assert not at.exception and "neither text" in texts(at)
    at.button(key="import_go").click().run()
    assert not at.exception and len(list_runs(runs_dir())) == 1, "the good one is taken in all the same"


def test_duplicates_are_seen_in_the_preview() -> None:
    take_in("optimum-benchmark-0.6.0-tiny-sd.json")
    at = dialog("optimum-benchmark-0.6.0-tiny-sd.json")
    assert at.button(key="import_go").disabled
    frames = [frame.value for frame in at.dataframe if "State" in frame.value.columns]
    assert list(frames[0]["State"]) == ["Already here"]


def test_an_mlperf_pair_goes_together() -> None:
    at = dialog("mlperf_log_summary-offline.txt", "mlperf-system.json")
    assert "Adds to" in texts(at)
    at.selectbox(key="import_set_workload").set_value("text-to-image").run()
    at.button(key="import_go").click().run()
    assert not at.exception
    assert list_runs(runs_dir())[0].record().conditions.devices == 8


def test_every_imported_sample_can_be_opened_in_the_explorer() -> None:
    for path in sorted(SAMPLES.iterdir()):
        if path.name == "mlperf-system.json":
            continue
        [plan] = make_plan([Source(path, path.name)], {}, runs_dir())
        answers = {"workload": "other", "device": "Gaudi2"}
        take_in(path.name, **{name: answers[name] for name in plan.asked})
    runs = list_runs(runs_dir())
    assert len(runs) > 20
    at = explorer()
    assert len(at.dataframe[0].value) == len(runs)
    for run in runs[:: max(1, len(runs) // 12)]:
        at.query_params["run"] = run.run_id
        at.run()
        assert not at.exception and not at.warning, [item.value for item in at.warning]
        assert "not measured here" in texts(at)


def test_every_format_is_made_when_it_is_asked_for() -> None:
    take_in("optimum-habana-baselines.json", workload="other")
    ids = [run.run_id for run in list_runs(runs_dir())]
    at = explorer()
    at.toggle(key="export_markdown").set_value(True).run()
    assert not at.exception and "| Device |" in at.code[0].value
    for suffix in FORMATS:
        content = _maker(ids, suffix)()
        assert len(content) > 100
        if suffix == ".json":
            assert len(json.loads(content)["runs"]) == len(ids)
    bundle = runs_dir().parent / "b.zip"
    bundle.write_bytes(_maker(ids, ".zip")())
    shutil.rmtree(runs_dir())
    [plan] = make_plan([Source(bundle, "b.zip")], {}, runs_dir())
    assert len(store(plan, runs_dir()).added) == len(ids)

"""Each page, empty and full, driven through Streamlit's AppTest on real run folders and the real store."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from app import comparison, state
from data.catalogue import BadRow, Catalogue, load_catalogue
from data.comparability import compare
from data.errors import StoreBusy
from runners.bundled_model.vocabulary import EXAMPLE_PROMPTS
from runners.paths import runs_dir
from runners.queue import QueueState, RunQueue
from runners.records import (
    Artifact,
    Audit,
    Conditions,
    DeviceInfo,
    ErrorInfo,
    Phase,
    Record,
    Series,
)
from runners.rundir import RunDir, create_run, list_runs, sha256_of, utc_now
from runners.specs import TextToImageSpec
from runners.stats import rate_metrics

ENTRY = Path(__file__).resolve().parent.parent / "streamlit_app.py"
PLAYGROUND, EXPLORER = "app/views/playground.py", "app/views/explorer.py"
DEVICE = DeviceInfo(kind="cuda", name="NVIDIA H200", memory_bytes=150_000_000_000)

LIKE_THE_ARTICLE = Conditions(
    workload="text-to-image",
    model="stable-diffusion-1",
    weights="architecture",
    width_px=512,
    height_px=512,
    steps=50,
    scheduler="DDIM",
    guidance=7.5,
    batch_size_per_device=8,
    devices=1,
    precision="bf16",
    warmup_rule="first-2-batches-dropped",
    software="diffusers 0.42.1, torch 2.13.0",
    software_year=2026,
)

BUNDLED = dataclasses.replace(
    LIKE_THE_ARTICLE,
    model="likeforlike-bundled",
    weights="bundled",
    width_px=64,
    height_px=64,
    steps=25,
    guidance=3.0,
    batch_size_per_device=1,
    precision="fp32",
    warmup_rule="none",
)


def make_image_run(
    prompt: str, *, conditions: Conditions = LIKE_THE_ARTICLE, batches: int = 7, first_s: float = 3.9
) -> RunDir:
    """A run with one image and a record as the text-to-image workload leaves it; the seconds are made up."""
    run = create_run(runs_dir(), "text-to-image", {"prompt": prompt, "seed": 7}, source="playground")
    run.images_dir.mkdir()
    path = run.images_dir / "000.png"
    Image.new("RGB", (64, 64), "firebrick").save(path)
    seconds = [first_s + 0.02 * number for number in range(batches)]
    size = conditions.batch_size_per_device or 1
    spec = dataclasses.asdict(TextToImageSpec(prompt=prompt, seed=7, steps=conditions.steps, batch_size=size))
    finish(
        run,
        "ok",
        spec=spec,
        conditions=conditions,
        metrics=(
            *rate_metrics("image", "images/s", seconds, size, "denoise+vae"),
            *rate_metrics("image", "images/s", [value + 0.4 for value in seconds], size, "end-to-end"),
        ),
        series=(
            Series(name="denoise_vae_s", unit="s", phase="measured", values=tuple(seconds)),
            Series(name="denoising_s", unit="s", phase="measured", values=tuple(value - 0.5 for value in seconds)),
            Series(name="vae_s", unit="s", phase="measured", values=(0.5,) * batches),
        ),
        artifacts=(Artifact(path="images/000.png", kind="image", sha256=sha256_of(path)),),
        details={"seeds": [7], "safety_checker": False},
    )
    return run


def make_failed_run(status: str, message_id: str, **params: object) -> RunDir:
    """A run that did not end well."""
    run = create_run(runs_dir(), "synthetic", {"steps": 20}, source="cli")
    error = ErrorInfo(
        type="WorkloadFailed",
        message_id=message_id,
        params=params,
        message="in English",
        log_tail="line one of the log\nline two",
    )
    finish(run, status, spec={"steps": 20}, conditions=Conditions(workload="synthetic"), error=error)
    return run


def finish(run: RunDir, status: Any, **values: Any) -> None:
    request = run.request()
    run.write_record(
        Record(
            run_id=run.run_id,
            workload=request.workload,
            status=status,
            device=DEVICE,
            environment={"os": "Linux", "packages": {"torch": "2.13.0"}},
            created_utc=request.created_utc,
            finished_utc=utc_now(),
            phases=(Phase(name="load", duration_s=1.25),),
            audit=Audit(sync_policy="after every batch", warnings=("too-few-samples",)),
            **values,
        )
    )


@pytest.fixture
def app() -> AppTest:
    """The app in a fresh session; caches hold folders of other tests otherwise."""
    import streamlit as st

    st.cache_data.clear()
    return AppTest.from_file(ENTRY, default_timeout=60)


def texts(at: AppTest) -> str:
    """Everything that stands on the page as text."""
    kinds = ("markdown", "caption", "error", "info", "warning", "title", "subheader", "header", "code", "text")
    return unescaped("\n".join(str(element.value) for kind in kinds for element in at.get(kind)))


def figures(at: AppTest) -> list[dict[str, Any]]:
    """The Plotly figures on the page, as the browser gets them."""
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


class TestCompare:
    def test_without_runs_it_shows_the_three_workloads(self, app: AppTest) -> None:
        at = app.run()
        assert not at.exception
        headings = [item.value for item in at.subheader]
        assert headings == ["BERT pretraining", "Image generation", "T5-3B fine-tuning", "Look further"]
        assert len(figures(at)) == 3

    def test_batch_8_against_batch_1_is_said_at_the_bar_and_in_a_sentence(self, app: AppTest) -> None:
        at = app.run()
        [_bert, images, _t5] = figures(at)
        marks = [note["text"] for note in images["layout"]["annotations"]]
        assert any("2.84×" in mark and "batch 8 against 1" in mark for mark in marks)
        assert "in batches of 8, A100 80GB in batches of 1" in texts(at)

    def test_t5_on_first_generation_gaudi_is_not_available_and_not_zero(self, app: AppTest) -> None:
        [_bert, _images, t5] = figures(app.run())
        assert t5["data"][0]["x"] == [None, 19.7, 8.07]
        assert any(note["text"] == "not available" for note in t5["layout"]["annotations"])

    def test_every_number_in_a_bar_comes_from_the_catalogue(self, app: AppTest) -> None:
        published = {item.value for item in load_catalogue().measurements}
        shown = [value for figure in figures(app.run()) for value in figure["data"][0]["x"] if value is not None]
        assert len(shown) == 10
        assert set(shown) <= published

    def test_speed_up_takes_the_ratio_of_the_verdict(self, app: AppTest) -> None:
        app.query_params["bars"] = "speedup"
        at = app.run()
        catalogue = load_catalogue()
        baseline = catalogue.measurement("seed-bert-a100-bs32-throughput")
        expected = [
            1.0 if item.id == baseline.id else compare(item, baseline).ratio
            for item in comparison.published(catalogue, "bert-pretraining")
        ]
        assert figures(at)[0]["data"][0]["x"] == pytest.approx(expected)

    def test_the_baseline_can_be_chosen_and_is_in_the_address(self, app: AppTest) -> None:
        at = app.run()
        at.selectbox(key="bert-pretraining-baseline").select("seed-bert-g1-bs32-throughput").run()
        assert not at.exception
        assert at.query_params["bert-pretraining-baseline"] == "seed-bert-g1-bs32-throughput"
        marks = [note["text"] for note in figures(at)[0]["layout"]["annotations"]]
        assert any("3.04×" in mark for mark in marks)

    def test_an_unknown_baseline_in_the_address_is_passed_over(self, app: AppTest) -> None:
        app.query_params["bert-pretraining-baseline"] = "no-such-row"
        at = app.run()
        assert not at.exception
        assert at.selectbox(key="bert-pretraining-baseline").value == "seed-bert-a100-bs32-throughput"

    def test_per_device_divides_totals_only(self, app: AppTest) -> None:
        app.query_params["per_device"] = "true"
        bert, images, _t5 = figures(app.run())
        assert bert["data"][0]["x"][0] == pytest.approx(520.2 / 8)
        assert images["data"][0]["x"][:3] == [3.25, 0.925, 2.63]

    def test_reasons_and_sources_are_one_click_away(self, app: AppTest) -> None:
        app.session_state["reasons-text-to-image"] = True
        at = app.run()
        assert not at.exception
        shown = texts(at)
        assert "With caveats: Gaudi2 is 2.84 times as fast as A100 80GB." in shown
        assert "prints the same value for a TITAN RTX" in shown
        assert "https://huggingface.co/blog/habana-gaudi-2-benchmark" in shown

    def test_the_fairer_pair_comes_out_of_the_catalogue(self, app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
        catalogue = load_catalogue()
        article = tuple(row for row in catalogue.references if row.tier == "article")
        monkeypatch.setattr(state, "catalogue", lambda: Catalogue(catalogue.devices, catalogue.sources, article))
        assert "so the ratio there is" not in texts(app.run())
        gaudi2 = catalogue.by_id["seed-sd-g2-bs8-latency"]
        at_batch_1 = dataclasses.replace(
            gaudi2,
            id="test-sd-g2-bs1",
            value=1.5,
            canonical_value=1.5,
            tier="same-harness",
            conditions=dataclasses.replace(gaudi2.conditions, batch_size_per_device=1),
        )
        wider = Catalogue(catalogue.devices, catalogue.sources, (*article, at_batch_1))
        monkeypatch.setattr(state, "catalogue", lambda: wider)
        at = app.run()
        assert not at.exception
        assert "At batch 1 Gaudi2 takes 1.5 s per image, so the ratio there is 1.75, not 2.84." in texts(at)
        assert len(figures(at)[1]["data"][0]["x"]) == 3

    def test_bad_rows_of_the_catalogue_are_named_and_the_good_ones_shown(
        self, app: AppTest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        catalogue = load_catalogue()
        some = tuple(item for item in catalogue.references if item.conditions.workload == "text-to-image")
        partial = Catalogue(catalogue.devices, catalogue.sources, some)
        bad = BadRow(file="results.csv", line=7, message_id="row-number", params={"column": "value", "value": "fast"})
        monkeypatch.setattr(state, "catalogue", lambda: partial)
        monkeypatch.setattr(state, "catalogue_problems", lambda: [bad])
        at = app.run()
        assert not at.exception
        assert len(figures(at)) == 1
        assert "results.csv, line 7: value “fast” is not a number above zero." in texts(at)
        assert "No number is known for this workload" in texts(at)

    def test_own_runs_stand_among_them_hatched_and_with_their_verdict(self, app: AppTest) -> None:
        make_image_run("a cat")
        at = app.run()
        [_bert, images, _t5] = figures(at)
        assert images["data"][0]["marker"]["pattern"]["shape"] == ["", "", "", "/"]
        assert images["data"][0]["x"][3] == pytest.approx(own_value())
        marks = [note["text"] for note in images["layout"]["annotations"]]
        assert any("batch 8 against 1" in mark for mark in marks)
        assert not images["layout"].get("shapes")

    def test_an_own_run_that_is_not_comparable_is_a_line_and_not_a_bar(self, app: AppTest) -> None:
        one_step = dataclasses.replace(LIKE_THE_ARTICLE, batch_size_per_device=1, steps=1)
        run = make_image_run("a cat", conditions=one_step, first_s=117.2)
        at = app.run()
        [_bert, images, _t5] = figures(at)
        assert images["data"][0]["x"] == [3.25, 0.925, 2.63]
        [link] = at.get("page_link")
        assert unescaped(link.proto.label) == f"Yours: NVIDIA H200, {own_value():.1f} s/image"
        assert f"run={run.run_id}" in link.proto.query_string
        assert "1 step · Not comparable: Number of steps: NVIDIA H200 1, A100 80GB 50." in texts(at)

    def test_the_newest_three_that_are_not_comparable_leave_room_for_those_that_are(self, app: AppTest) -> None:
        make_image_run("an old cat")
        for steps in (1, 2, 3, 4):
            make_image_run("a cat", conditions=dataclasses.replace(LIKE_THE_ARTICLE, steps=steps))
        at = app.run()
        assert len(figures(at)[1]["data"][0]["x"]) == 4
        assert len(at.get("page_link")) == 3
        assert "1 step ·" not in texts(at)

    @pytest.mark.parametrize("show", ["values", "speedup"])
    def test_a_long_own_bar_is_cut_off_and_its_number_is_the_records(self, app: AppTest, show: str) -> None:
        make_image_run("a cat", first_s=1001.0 if show == "values" else 0.8)
        app.query_params["bars"] = show
        at = app.run()
        images = figures(at)[1]
        lengths, labels = images["data"][0]["x"], images["data"][0]["text"]
        assert lengths[3] == pytest.approx(1.25 * max(lengths[:3]))
        shown = f"{own_value():,.1f} s/image" if show == "values" else f"{2.63 / own_value():.2f}×"
        assert labels[3] == f"<b>{shown}</b>"
        assert len(images["layout"]["shapes"]) == 3
        assert "Bar cut off: it is longer than the axis." in at.get("plotly_chart")[1].proto.alt

    def test_an_own_baseline_keeps_its_bar(self, app: AppTest) -> None:
        run = make_image_run("a small cat", conditions=BUNDLED)
        app.query_params["text-to-image-baseline"] = run.run_id
        at = app.run()
        assert not at.exception
        assert figures(at)[1]["data"][0]["x"][3] == pytest.approx(own_value())

    def test_a_busy_database_leaves_the_published_numbers_and_says_who_holds_it(
        self, app: AppTest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make_image_run("a cat")
        monkeypatch.setattr(state, "store", busy)
        at = app.run()
        assert not at.exception
        assert len(figures(at)) == 3
        assert "Your own runs are not shown here. The database likeforlike.duckdb is open in" in texts(at)
        assert "PID 4711" in texts(at)

    def test_without_a_run_folder_no_database_is_opened(self, app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
        runs_dir().mkdir(parents=True)
        (runs_dir() / "worker.log").touch()
        monkeypatch.setattr(state, "store", busy)
        at = app.run()
        assert not at.exception
        assert "not shown here" not in texts(at)


class TestPlayground:
    def test_empty_it_says_what_to_do(self, app: AppTest) -> None:
        at = app.run().switch_page(PLAYGROUND).run()
        assert not at.exception
        assert "press “Generate”" in texts(at)

    def test_the_gallery_comes_from_the_folders(self, app: AppTest) -> None:
        make_image_run("a cat")
        at = app.run().switch_page(PLAYGROUND).run()
        assert not at.exception
        assert "a cat" in texts(at)
        assert [item.label for item in at.metric] == ["Denoising and VAE", "End to end"]
        assert at.metric[0].value == "0.495 s"

    def test_a_result_says_why_it_cannot_be_compared(self, app: AppTest) -> None:
        make_image_run("a small cat", conditions=BUNDLED, batches=1)
        at = app.run().switch_page(PLAYGROUND).run()
        assert "ran the model likeforlike-bundled" in texts(at)
        assert "an interval needs 6" in texts(at)

    def test_again_with_this_seed_fills_the_form(self, app: AppTest) -> None:
        run = make_image_run("a cat on the moon")
        at = app.run().switch_page(PLAYGROUND).run()
        at.button(key=f"again-result-{run.run_id}-0").click().run()
        assert not at.exception
        assert at.text_area(key="playground_prompt").value == "a cat on the moon"
        assert at.text_input(key="playground_seed").value == "7"
        assert at.number_input(key="playground_steps").value == 50

    def test_an_example_prompt_is_one_click_away(self, app: AppTest) -> None:
        at = app.run().switch_page(PLAYGROUND).run()
        at.button(key="playground_example_3").click().run()
        assert at.text_area(key="playground_prompt").value == EXAMPLE_PROMPTS[3]

    def test_the_form_survives_a_look_at_another_page(self, app: AppTest) -> None:
        at = app.run().switch_page(PLAYGROUND).run()
        at.text_area(key="playground_prompt").set_value("a blue star").run()
        at.number_input(key="playground_steps").set_value(9).run()
        at.switch_page(EXPLORER).run().switch_page(PLAYGROUND).run()
        assert at.text_area(key="playground_prompt").value == "a blue star"
        assert at.number_input(key="playground_steps").value == 9

    def test_words_that_the_bundled_model_does_not_know_are_named(self, app: AppTest) -> None:
        at = app.run().switch_page(PLAYGROUND).run()
        at.text_area(key="playground_prompt").set_value("a quantum cat").run()
        assert "does not know this word: quantum" in texts(at)

    def test_an_endless_word_does_not_fill_the_page(self, app: AppTest) -> None:
        at = app.run().switch_page(PLAYGROUND).run()
        at.text_area(key="playground_prompt").set_value("x" * 10_000).run()
        assert max(len(caption.value) for caption in at.caption) < 200

    def test_a_run_that_goes_on_is_followed(self, app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
        run = create_run(runs_dir(), "text-to-image", {"prompt": "a slow cat"}, source="playground")
        run.append_event("started", pid=1, device=dataclasses.asdict(DEVICE))
        run.append_event("progress", phase="denoise", step=3, steps=25, batch=0, batches=1, images=1)
        monkeypatch.setattr(RunQueue, "state", lambda _self: QueueState(worker="generating", current=run.run_id))
        monkeypatch.setattr(RunQueue, "ensure_dispatcher", lambda _self: None)  # it would record the run as lost
        at = app.run().switch_page(PLAYGROUND).run()
        assert not at.exception
        assert at.get("progress")[0].text == "Denoising, step 3 of 25"
        assert at.button(key=f"cancel-{run.run_id}")


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(app: AppTest) -> None:
    runs_dir().parent.mkdir(parents=True, exist_ok=True)
    runs_dir().write_text("a file where the folder should be")
    at = app.run()
    assert not at.exception
    assert "cannot be written" in unescaped(at.error[0].value)
    assert "LIKEFORLIKE" in unescaped(at.error[0].value)
    assert not at.switch_page(PLAYGROUND).run().button, "no form that would lose what is typed"


class TestBadInput:
    """Each is answered in place, by name and with the way out; the form keeps what was typed."""

    def submit(self, app: AppTest, name: str, value: object) -> AppTest:
        at = app.run().switch_page(PLAYGROUND).run()
        at.get_by_key(f"playground_{name}").set_value(value)
        at.button(key="playground_generate").click().run()
        assert not at.exception
        assert at.get_by_key(f"playground_{name}").value == value
        assert list_runs(runs_dir()) == []
        return at

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [
            ("prompt", "   ", "The prompt is empty"),
            ("prompt", "x" * 10_000, "Prompt has 10000 characters; at most 2000"),
            ("width", 100, "Width must be a multiple of 8; 100 is not. Nearest: 96"),
            ("width", 99_999, "Width must be between 32 and 2048"),
            ("steps", 0, "Steps must be between 1 and 500; 0 is outside"),
            ("steps", 1_000, "Steps must be between 1 and 500; 1000 is outside"),
            ("seed", str(2**64), "Seed must be between 0 and"),
            ("seed", "-1", "Seed must be between 0 and"),
            ("seed", "lucky", "Seed must be a whole number, not “lucky”"),
            ("guidance", 0.0, "Guidance must be between 1 and 50"),
            ("batch_size", 3, "images (1) must be a multiple of batch_size (3)"),
            ("images", 0, "Images must be between 1 and"),
        ],
    )
    def test_limits(self, app: AppTest, name: str, value: object, expected: str) -> None:
        at = self.submit(app, name, value)
        assert expected in unescaped(at.error[0].value)

    def test_a_folder_that_is_no_pipeline(self, app: AppTest, tmp_path: Path) -> None:
        folder = tmp_path / "weights"
        folder.mkdir()
        app.session_state["playground_weights"] = str(folder)
        at = app.run().switch_page(PLAYGROUND).run()
        at.button(key="playground_generate").click().run()
        assert not at.exception
        assert "is empty. Choose the folder that holds model_index.json" in unescaped(at.error[0].value)

    @pytest.mark.parametrize(
        "prompt", ["a 🐱 on a 🌙", "قطة حمراء على خلفية بيضاء", "紅色的圓形", "**bold** $x$ <b>&lt;"]
    )
    def test_any_script_is_taken(self, app: AppTest, prompt: str, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[dict[str, Any]] = []

        def submit(_self: RunQueue, workload: str, fields: dict[str, Any], **_rest: object) -> RunDir:
            asked.append(fields)
            return create_run(runs_dir(), workload, fields)

        monkeypatch.setattr(RunQueue, "submit", submit)
        at = app.run().switch_page(PLAYGROUND).run()
        at.text_area(key="playground_prompt").set_value(prompt)
        at.button(key="playground_generate").click().run()
        assert not at.exception
        assert not at.error
        assert asked[0]["prompt"] == prompt


class TestExplorer:
    def test_empty_it_says_what_to_do(self, app: AppTest) -> None:
        at = app.run().switch_page(EXPLORER).run()
        assert not at.exception
        assert "No runs yet" in texts(at)
        assert at.get("page_link")[0].value == "Open the Playground"

    def test_all_runs_and_their_problems_are_listed(self, app: AppTest) -> None:
        make_image_run("a cat")
        make_failed_run("failed", "synthetic-failure", step=7)
        make_failed_run("cancelled", "cancelled")
        broken = create_run(runs_dir(), "synthetic", {})
        broken.record_path.write_text('{"schema_version": 1, "run')
        future = create_run(runs_dir(), "synthetic", {})
        future.record_path.write_text('{"schema_version": 99}')
        at = app.run().switch_page(EXPLORER).run()
        assert not at.exception
        table = at.dataframe[0].value
        assert list(table["Status"]) == ["– Cancelled", "✗ Failed", "✓ Finished"]
        assert table["Value"].tolist()[2] == pytest.approx(0.495)
        assert "has schema version 99" in texts(at)
        assert at.expander[-1].label == "2 records cannot be read"

    def test_filters_and_search(self, app: AppTest) -> None:
        make_image_run("a cat")
        make_image_run("a dog")
        make_failed_run("failed", "synthetic-failure", step=7)
        at = app.run().switch_page(EXPLORER).run()
        at.text_input(key="explorer_text").set_value("DOG").run()
        assert list(at.dataframe[0].value["Prompt"]) == ["a dog"]
        at.text_input(key="explorer_text").set_value("").run()
        at.multiselect(key="explorer_statuses").select("failed").run()
        assert len(at.dataframe[0].value) == 1
        at.text_input(key="explorer_text").set_value("nothing like it").run()
        assert "No run matches" in texts(at)

    def test_a_link_opens_the_same_filters(self, app: AppTest) -> None:
        make_image_run("a cat")
        make_image_run("a dog", conditions=dataclasses.replace(LIKE_THE_ARTICLE, batch_size_per_device=4))
        make_failed_run("failed", "synthetic-failure", step=7)
        at = app.run()
        at.query_params["workloads"], at.query_params["batch_sizes"] = "text-to-image", "4"
        at.switch_page(EXPLORER).run()
        assert not at.exception
        assert list(at.dataframe[0].value["Prompt"]) == ["a dog"]

    def test_filters_are_in_the_address(self, app: AppTest) -> None:
        make_image_run("a cat")
        make_image_run("a dog", conditions=dataclasses.replace(LIKE_THE_ARTICLE, batch_size_per_device=4))
        at = app.run().switch_page(EXPLORER).run()
        # One value of each: AppTest keeps only the last of several; a browser keeps them all.
        at.multiselect(key="explorer_batch_sizes").set_value(["4"]).run()
        at.text_input(key="explorer_text").set_value("dog").run()
        assert (at.query_params["batch_sizes"], at.query_params["text"]) == ("4", "dog")
        at.multiselect(key="explorer_batch_sizes").set_value([]).run()
        assert "batch_sizes" not in at.query_params

    def test_a_link_with_values_that_are_not_here_filters_nothing(self, app: AppTest) -> None:
        make_image_run("a cat")
        at = app.run()
        at.query_params["workloads"], at.query_params["models"] = "' OR 1=1 --", "nothing"
        at.switch_page(EXPLORER).run()
        assert not at.exception
        assert len(at.dataframe[0].value) == 1

    def test_a_link_shows_two_runs_beside_each_other(self, app: AppTest) -> None:
        run, slower = make_image_run("a cat"), make_image_run("a dog", first_s=7.8)
        at = app.run()
        at.query_params["run"], at.query_params["with"] = run.run_id, slower.run_id
        at.switch_page(EXPLORER).run()
        assert not at.exception
        said = texts(at)
        assert "This run is **1.98×** as fast as the other (95 %: " in said
        assert "Seed 7: the same image, pixel for pixel." in said
        differences = next(table.value for table in at.table if "What differs" in table.value)
        assert list(differences["What differs"]) == ["Prompt"]

    def test_runs_that_cannot_be_compared_get_no_ratio(self, app: AppTest) -> None:
        other_model = dataclasses.replace(LIKE_THE_ARTICLE, model="another-model")
        run, other = make_image_run("a cat"), make_image_run("a cat", conditions=other_model)
        at = app.run()
        at.query_params["run"], at.query_params["with"] = run.run_id, other.run_id
        at.switch_page(EXPLORER).run()
        assert not at.exception
        assert "as fast as the other" not in texts(at)
        assert "No difference in speed" not in texts(at)

    def test_the_other_run_of_a_link_may_be_gone(self, app: AppTest) -> None:
        run = make_image_run("a cat")
        at = app.run()
        at.query_params["run"], at.query_params["with"] = run.run_id, "01890000-0000-7000-8000-000000000000"
        at.switch_page(EXPLORER).run()
        assert not at.exception
        assert "There is no run" in texts(at)

    def test_one_run_in_full_by_its_address(self, app: AppTest) -> None:
        run = make_image_run("it's a *cat*")
        at = app.run()
        at.query_params["run"] = run.run_id
        at.switch_page(EXPLORER).run()
        at.query_params["run"] = run.run_id
        at.run()
        assert not at.exception
        shown = texts(at)
        assert "95 % interval" in shown
        assert "--set 'prompt=it'\"'\"'s a *cat*'" in shown
        assert f"var/runs/{run.run_id}" in shown
        assert len(figures(at)) == 2

    def test_a_failed_run_shows_its_error_and_log(self, app: AppTest) -> None:
        run = make_failed_run("failed", "synthetic-failure", step=7)
        at = app.run().switch_page(EXPLORER).run()
        at.query_params["run"] = run.run_id
        at.run()
        assert not at.exception
        assert "failed at step 7" in unescaped(at.error[0].value)
        assert "line one of the log" in texts(at)

    @pytest.mark.parametrize("run_id", ["no-such-run", "../../etc", "01a22ebd-4075-75f7-a030-bd91dfadf5a3"])
    def test_an_address_that_leads_nowhere(self, app: AppTest, run_id: str) -> None:
        at = app.run().switch_page(EXPLORER).run()
        at.query_params["run"] = run_id
        at.run()
        assert not at.exception
        assert "There is no run folder" in unescaped(at.error[0].value)

    def test_a_busy_database_is_named(self, app: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(state, "store", busy)
        at = app.run().switch_page(EXPLORER).run()
        assert not at.exception
        assert "PID 4711" in unescaped(at.error[0].value)


class TestLanguage:
    def test_the_browser_decides_at_first(self, app: AppTest) -> None:
        app.context = {"locale": "zh-TW"}
        assert app.run().title[0].value == "比較"

    def test_the_address_wins(self, app: AppTest) -> None:
        app.context = {"locale": "zh-TW"}
        app.query_params["lang"] = "en"
        assert app.run().title[0].value == "Compare"

    def test_it_can_be_chosen_and_stays(self, app: AppTest) -> None:
        at = app.run()
        at.selectbox(key="lang").select("zh-Hant").run()
        assert at.title[0].value == "比較"
        assert at.query_params["lang"] == "zh-Hant"
        at.switch_page(EXPLORER).run()
        assert at.title[0].value == "結果"
        assert not at.exception


def own_value() -> float:
    """What the newest run's record says, in seconds an image on the clock of the published numbers."""
    record = list_runs(runs_dir())[-1].record()
    [metric] = [item for item in record.metrics if (item.name, item.timed_region) == ("s_per_image", "denoise+vae")]
    return metric.value


def busy() -> Any:
    raise StoreBusy("store-busy", path="likeforlike.duckdb", pid=4711)


def unescaped(text: str) -> str:
    """The text as a reader sees it."""
    return text.replace("\\", "").replace("\u2060", "")

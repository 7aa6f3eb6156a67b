"""What stands below the Compare page's cards, and the other ways to look at the cards."""

import dataclasses
import json
import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import beyond, match_reference, race, state
from app.amounts import Show, amount, hours
from app.article_notes import NOTES
from app.i18n import LANGUAGE_KEY, LANGUAGES
from app.more import KEY, PARTS
from data.catalogue import load_catalogue
from data.comparability import compare
from data.matching import match
from data.measurements import Measurement, measurements_of
from runners.paths import runs_dir
from runners.preflight_training import check_memory
from runners.queue import RunQueue
from runners.records import DeviceInfo, Metric
from runners.registry import make_spec
from runners.rundir import RunDir, create_run, list_runs
from runners.spec_fields import parse_assignments
from tests.test_app_views import LIKE_THE_ARTICLE, app, figures, make_image_run, texts

__all__ = ["app"]  # the fixture
CATALOGUE = load_catalogue()


def part(app: AppTest, name: str) -> AppTest:
    app.query_params[KEY] = name
    at = app.run()
    assert not at.exception
    return at


def published_values() -> set[float]:
    return {item.value for item in CATALOGUE.measurements if item.value is not None}


@pytest.mark.parametrize("language", list(LANGUAGES))
@pytest.mark.parametrize("name", list(PARTS))
def test_every_part_opens_by_its_link_in_every_language(app: AppTest, name: str, language: str) -> None:
    app.query_params[LANGUAGE_KEY] = language
    part(app, name)


class TestCards:
    def test_rates_and_times_are_reciprocals(self, app: AppTest) -> None:
        at = app.run()
        at.segmented_control(key="bars").set_value("rate").run()
        [_bert, images, _t5] = figures(at)
        assert [round(x, 4) for x in images["data"][0]["x"]] == [round(1 / x, 4) for x in (3.25, 0.925, 2.63)]
        assert "images/s. Longer bars are faster." in texts(at)
        at.segmented_control(key="bars").set_value("seconds").run()
        [bert, images, _t5] = figures(at)
        assert images["data"][0]["x"] == [3.25, 0.925, 2.63]
        assert round(1 / bert["data"][0]["x"][0], 1) == 520.2
        assert "s/sample. Shorter bars are faster." in texts(at)

    def test_on_a_logarithmic_scale_lengths_are_the_same_numbers(self, app: AppTest) -> None:
        app.query_params["log_scale"] = "true"
        [_bert, images, t5] = figures(app.run())
        assert images["layout"]["xaxis"]["type"] == "log"
        assert images["data"][0]["x"] == [3.25, 0.925, 2.63]
        assert t5["data"][0]["x"] == [None, 19.7, 8.07]

    def test_the_fairer_pairs_of_the_images_are_named(self, app: AppTest) -> None:
        at = app.run()
        assert "At batch 1 Gaudi2 takes 1.33 s per image, so the ratio there is 1.98, not 2.84." in texts(at)
        at.pills(key="verdict-text-to-image").set_value("seed-sd-g1-bs8-latency").run()
        assert "At batch 1 Gaudi (1st gen) takes 3.8 s per image, so the ratio there is 0.69, not 0.81." in texts(at)

    def test_a_mark_opens_into_its_sentence_and_source(self, app: AppTest) -> None:
        at = app.run()
        assert at.pills(key="verdict-bert-pretraining").value == "seed-bert-g2-bs32-throughput"
        at.pills(key="verdict-bert-pretraining").set_value("seed-bert-a100-bs64-throughput").run()
        text = texts(at)
        assert "With caveats: A100 80GB is 1.10 times as fast as A100 80GB." in text
        assert "in batches of 64, A100 80GB in batches of 32" in text
        assert "[Habana Gaudi2 vs Nvidia A100 80GB](<https://huggingface.co/blog/habana-gaudi-2-benchmark>)" in text

    def test_time_to_train_is_a_time_to_similar_loss(self, app: AppTest) -> None:
        app.query_params["bars"] = "time-to-train"
        at = app.run()
        assert not at.exception
        [bert] = figures(at)
        assert bert["data"][0]["x"] == pytest.approx([31_980 / 3600, 10_500 / 3600, 5_580 / 3600])
        assert [text[3:-4] for text in bert["data"][0]["text"]] == ["8 h 53 min", "2 h 55 min", "1 h 33 min"]
        assert "How long does training BERT take until its loss is about the same?" in texts(at)
        at.pills(key="verdict-bert-pretraining").set_value("seed-bert-g2-bs64-traintime").run()
        assert "is the time to a similar loss, on a different number of samples" in texts(at)
        assert "5.73 times as fast" in texts(at)

    def test_a_projection_looks_like_none_of_the_measured(self, app: AppTest) -> None:
        from tests.test_app_views import DEVICE, finish

        published = CATALOGUE.measurement("seed-bert-g1-bs32-traintime").conditions
        run = create_run(runs_dir(), "synthetic", {}, source="cli")
        metric = Metric(
            name="projected_time_to_train_s", value=20_000.0, unit="s", n=9, higher_is_better=False, interval=None
        )
        finish(run, "ok", spec={}, conditions=dataclasses.replace(published, devices=1), metrics=(metric,))
        rewritten = json.loads(run.record_path.read_text(encoding="utf-8"))
        run.record_path.write_text(json.dumps({**rewritten, "workload": "bert-pretraining"}), encoding="utf-8")
        app.query_params["bars"] = "time-to-train"
        [bert] = figures(app.run())
        assert bert["data"][0]["marker"]["pattern"]["shape"] == ["", "", "", "."]
        assert any(f"Yours, projected: {DEVICE.name}" in note["text"] for note in bert["layout"]["annotations"])

    def test_the_headline_counts_the_articles_own_ratios(self, app: AppTest) -> None:
        assert "says 1.61, 1.70, 2.44, 2.84 times" in texts(app.run())
        assert "in 2 of 4 pairs" in texts(app.run())


class TestNumbers:
    """Every number in a figure is one of the catalogue or of a record, in one of the forms that are offered."""

    @pytest.mark.parametrize("show", ["values", "rate", "seconds", "time-to-train", "speedup"])
    @pytest.mark.parametrize("per_device", [False, True])
    def test_of_the_cards(self, app: AppTest, show: Show, per_device: bool) -> None:
        make_image_run("a cat", first_s=16.0)  # no bar is so long that it is cut off
        app.query_params["bars"] = show
        if per_device:
            app.query_params["per_device"] = "true"
        at = app.run()
        assert not at.exception
        known = [*CATALOGUE.measurements, *own_measurements()]
        if show == "speedup":
            allowed = {compare(a, b).ratio for a in known for b in known if b.id in BASELINES} | {1.0}
        else:
            allowed = {amount(item, show, per_device=per_device).value for item in known}
        lengths = [x for figure in figures(at) for x in figure["data"][0]["x"] if x is not None]
        assert len(lengths) >= (3 if show == "time-to-train" else 11)
        assert {rounded(x) for x in lengths} <= {rounded(x) for x in allowed if x is not None}

    @pytest.mark.parametrize("name", ["beyond", "memory", "drift"])
    def test_of_the_parts_below(self, app: AppTest, name: str) -> None:
        figure = figures(part(app, name))[-1]
        chosen = CATALOGUE.measurement(beyond.DEFAULT_ROW)
        allowed = {item.canonical_value for item in CATALOGUE.references} | {1.0}
        allowed |= {item.memory_gb for item in CATALOGUE.devices.values()} | {(state.device().memory_bytes or 0) / 1e9}
        allowed |= {compare(item, chosen).ratio for item in CATALOGUE.measurements}
        axis = "y" if name == "drift" else "x"
        drawn = [value for trace in figure["data"] for value in trace[axis]]
        assert len(drawn) >= 3
        assert {rounded(value) for value in drawn} <= {rounded(value) for value in allowed if value is not None}

    def test_no_forbidden_pair_is_shown_with_a_ratio(self, app: AppTest) -> None:
        one_step = dataclasses.replace(LIKE_THE_ARTICLE, steps=1)
        run = make_image_run("a cat", conditions=one_step)
        app.query_params["bars"] = "speedup"
        app.query_params["text-to-image-baseline"] = run.run_id
        at = app.run()
        assert not at.exception
        images = figures(at)[1]
        assert images["data"][0]["x"] == [None, None, None, 1.0]
        marks = [note["text"] for note in images["layout"]["annotations"]]
        assert not any(re.search(r"\d×(?!\d)", mark) for mark in marks)  # 512×512 is no ratio
        assert not any(re.search(r"\d×(?!\d)", label) for label in at.pills(key="verdict-text-to-image").options)
        assert "no speed-up can be stated" in texts(at)


BASELINES = {"seed-bert-a100-bs32-throughput", "seed-sd-a100-bs1-latency", "seed-t5-a100-bs16-throughput"}


def rounded(value: float) -> str:
    return f"{value:.9g}"


def own_measurements() -> list[Measurement]:
    return [item for run in list_runs(runs_dir()) for item in measurements_of(run.record())]


class TestBeyond:
    def test_only_what_can_be_compared_is_shown_and_the_rest_is_counted(self, app: AppTest) -> None:
        at = part(app, "beyond")
        table = at.dataframe[0].value
        assert table["ratio"].notna().all()
        assert set(table["verdict"]) == {"Like for like", "With caveats"}
        assert "cannot be compared with it and are left out" in texts(at)
        assert set(table["value"]) <= published_values()

    def test_every_bar_is_a_ratio_that_a_verdict_allows(self, app: AppTest) -> None:
        chart = figures(part(app, "beyond"))[-1]
        chosen = CATALOGUE.measurement(beyond.DEFAULT_ROW)
        rows = beyond._comparable([m for m in CATALOGUE.measurements if m.value is not None], chosen)
        ratios = {row.verdict.ratio for row in rows if row.verdict} | {1.0}
        assert set(chart["data"][0]["x"]) <= ratios
        assert len(chart["data"][0]["x"]) > 5

    def test_devices_can_be_chosen(self, app: AppTest) -> None:
        at = part(app, "beyond")
        at.multiselect(key=beyond.DEVICES_KEY).set_value(["RTX 4090"]).run()
        assert set(at.dataframe[0].value["device"]) == {"RTX 4090"}

    def test_an_own_run_can_be_the_one_to_compare_with(self, app: AppTest) -> None:
        run = make_image_run("a cat")
        at = part(app, "beyond")
        at.selectbox(key=beyond.ROW_KEY).set_value(run.run_id).run()
        assert not at.exception
        assert not at.dataframe[0].value.empty


class TestNotes:
    def test_every_note_s_arithmetic_is_that_of_the_catalogue(self, app: AppTest) -> None:
        text = texts(part(app, "notes"))
        for expected in (
            "BERT in batches of 32: 1.61, of 64: 1.70; images: 2.84; T5: 2.44",
            "1.98 and 0.69",
            "1 / 1.081 images/s",
            "31,980 s = 520.3 samples/s; printed is 520.2",
            "31,980 s / 5,580 s = 5.73",
            "10.24 million samples instead of 16.64",
            "2.67 s for 50",
            "569 samples/s, 9 % more",
            "0.83 s per image at batch 8",
            "without: 3.2 times",
            "1,835.8 / 1,580.2 = 1.16",
        ):
            assert expected in text, expected

    def test_a_row_that_was_taken_out_takes_its_note_along(self) -> None:
        def nothing(_reference_id: str) -> float:
            raise KeyError

        for note in NOTES:
            with pytest.raises(KeyError):
                note.params(nothing)

    def test_memory_shows_the_sum(self, app: AppTest) -> None:
        at = part(app, "memory")
        assert "2,851,598,336 parameters x 16 bytes = **45.6 GB** (42.5 GiB)" in texts(at)
        chart = figures(at)[-1]
        assert chart["data"][0]["x"][:3] == [32, 80, 96]
        own = state.device().memory_bytes
        assert own and chart["data"][0]["x"][3] == pytest.approx(own / 1e9)
        assert chart["layout"]["shapes"][0]["x0"] == pytest.approx(45.6, abs=0.05)

    def test_the_history_of_a_number_is_in_order(self, app: AppTest) -> None:
        chart = figures(part(app, "drift"))[-1]
        by_name = {trace["name"]: trace for trace in chart["data"]}
        gaudi = by_name["Gaudi (1st gen)"]
        assert gaudi["x"] == sorted(gaudi["x"])
        assert {4.34, 3.25} <= set(gaudi["y"])
        assert any(abs(y - 3.64) < 0.01 for y in gaudi["y"])
        assert set(by_name["A100 80GB"]["y"]) == {2.63}
        assert {"4.37", "3.534", "3.636"} <= set(gaudi["text"])


class TestRace:
    @pytest.fixture
    def asked(self, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
        calls: list[dict[str, Any]] = []

        def submit(_self: RunQueue, workload: str, fields: dict[str, Any], **rest: Any) -> RunDir:
            make_spec(workload, fields)
            calls.append(fields)
            return create_run(_self.runs_dir, workload, fields, source=rest["source"])

        monkeypatch.setattr(RunQueue, "submit", submit)
        monkeypatch.setattr(RunQueue, "ensure_dispatcher", lambda _self: None)
        return calls

    def test_replayed_lanes_follow_the_published_rates(self, app: AppTest, asked: list[dict[str, Any]]) -> None:
        import time

        at = part(app, "race")
        at.button(key="race_go").click().run()
        assert not at.exception
        assert asked[0]["images"] == race.GOAL_IMAGES
        at.segmented_control(key=race.FACTOR_KEY).set_value(2).run()
        # This machine still loads its model, so nobody has begun.
        assert all("0 images" in bar.text or "getting ready" in bar.text for bar in at.get("progress"))
        at.session_state[race.WAITING_KEY] = False
        at.session_state[race.START_KEY], at.session_state[race.PAST_KEY] = time.time() - 7.4, 0.0
        at.run()
        labels = [bar.text for bar in at.get("progress")]
        # 14.8 s of replay: Gaudi2 makes an image in 0.925 s, A100 in 2.63 s, Gaudi in 3.25 s.
        assert any("Gaudi2" in text and "16 images" in text and "done in 14.8 s" in text for text in labels), labels
        assert any("A100" in text and "5 images" in text for text in labels), labels
        assert any("1st gen" in text and "4 images" in text for text in labels), labels
        assert all("replayed" in text or "live" in text for text in labels)
        assert "replayed from published rates, 2×" in texts(at)
        # Another speed counts from now on.
        at.segmented_control(key=race.FACTOR_KEY).set_value(30).run()
        assert 14.8 <= at.session_state[race.PAST_KEY] < 30 * 7.4


def device(kind: str, memory_gb: float | None = None) -> DeviceInfo:
    return DeviceInfo(kind=kind, name=kind, memory_bytes=None if memory_gb is None else int(memory_gb * 1e9))


class TestMatching:
    def test_the_article_s_run_on_a_gaudi_is_the_published_one(self) -> None:
        found = match(CATALOGUE.by_id["seed-sd-g2-bs8-latency"], device("hpu", 96))
        assert make_spec("text-to-image", found.fields)
        assert {"precision": "bf16", "batch_size": 8, "steps": 50, "width": 512}.items() <= found.fields.items()
        assert [message for message, _params in found.unmatched] == ["match-weights"]

    def test_gaudi_and_gaudi2_take_the_same_command(self) -> None:
        row = CATALOGUE.by_id["seed-sd-g2-bs8-latency"]
        commands = {match_reference.command(match(row, device("hpu", memory_gb))) for memory_gb in (32, 96)}
        assert len(commands) == 1
        [command] = commands
        assert command.startswith("python -m runners run text-to-image --set weights=architecture --set precision=bf16")

    def test_the_command_asks_for_what_the_button_asks_for(self) -> None:
        found = match(CATALOGUE.by_id["seed-sd-a100-bs1-latency"], device("cpu"))
        _program, *assignments = match_reference.command(found).split(" --set ")
        assert make_spec("text-to-image", parse_assignments(assignments)) == make_spec("text-to-image", found.fields)

    def test_what_a_cpu_cannot_do_is_said_with_its_substitute(self) -> None:
        found = match(CATALOGUE.by_id["seed-sd-a100-bs1-latency"], device("cpu"))
        assert found.fields["precision"] == "fp32"
        [(_id, params)] = [item for item in found.unmatched if item[0] == "match-precision"]
        assert params == {"precision": "fp16", "substitute": "fp32", "device": "cpu"}

    def test_a_batch_that_does_not_fit_becomes_the_largest_that_does(self) -> None:
        found = match(CATALOGUE.by_id["diffusersdocs-pt2-a100-bs64-sdpa"], device("cuda", 16))
        [(_id, params)] = [item for item in found.unmatched if item[0] == "match-memory"]
        assert params["batch"] == 64 and 1 < params["fitting"] < 64
        assert found.fields["images"] == 8 * params["fitting"]
        assert make_spec("text-to-image", found.fields)
        # What weighs is named before the remark on weights.
        assert [message for message, _params in found.unmatched].index("match-memory") == 0

    def test_training_is_matched_too(self) -> None:
        found = match(CATALOGUE.by_id["seed-bert-g2-bs32-throughput"], device("hpu", 96))
        assert {"model": "bert-base", "batch_size": 32, "sequence_length": 512}.items() <= found.fields.items()
        assert make_spec("bert-pretraining", found.fields)
        assert [message for message, _params in found.unmatched] == ["match-devices"]
        a100 = match(CATALOGUE.by_id["seed-bert-a100-bs32-throughput"], device("cuda", 80))
        [(_id, params)] = [item for item in a100.unmatched if item[0] == "match-mixed"]
        assert params == {"precision": "fp16", "substitute": "fp16-mixed"}
        t5 = match(CATALOGUE.by_id["seed-t5-a100-bs16-throughput"], device("cuda", 80))
        expected = {"model": "t5-3b", "source_length": 1024, "target_length": 128, "gradient_checkpointing": True}
        assert expected.items() <= t5.fields.items()

    def test_a_model_that_does_not_fit_becomes_the_largest_that_does_and_says_so_first(self) -> None:
        found = match(CATALOGUE.by_id["seed-t5-g2-bs1-throughput"], device("cpu", 32))
        message, params = found.unmatched[0]
        assert message == "match-model-memory" and params["model"] == "t5-3b"
        assert found.fields["model"] == params["smaller"] != "t5-3b"
        check_memory(make_spec("t5-finetuning", found.fields), "cpu", 32_000_000_000)

    def test_the_dialog_lists_what_cannot_be_matched_and_starts_the_run(self, app: AppTest) -> None:
        app.session_state["reasons-text-to-image"] = True
        at = app.run()
        at.button(key="match-text-to-image-seed-sd-g2-bs8-latency").click().run()
        assert not at.exception
        text = texts(at)
        assert text.index("What differs from the published run:") < text.index("python -m runners run text-to-image")
        assert "The weights are random" in text

    @pytest.mark.parametrize(
        "reference_id", ["hfblog-sdxl-tpu-v5e4-b4", "seed-hw-mem-g1", "mlperf-inf-sdxl-v40-gaudi2-offline"]
    )
    def test_what_is_not_run_here_is_said(self, reference_id: str) -> None:
        found = match(CATALOGUE.by_id[reference_id], device("cpu"))
        assert not found.fields
        assert found.unmatched

    def test_a_training_that_the_memory_cannot_hold_gets_what_fits(self) -> None:
        small = DeviceInfo(kind="cpu", name="a laptop", memory_bytes=24 * 2**30)
        large = DeviceInfo(kind="hpu", name="GAUDI2", memory_bytes=96 * 10**9)
        bert, t5 = (CATALOGUE.by_id[name] for name in ("seed-bert-g2-bs32-throughput", "seed-t5-g2-bs1-throughput"))
        assert match(t5, large).fields["model"] == "t5-3b"
        assert match(t5, small).fields["model"] == "t5-large"
        assert "match-model-memory" in [message for message, _params in match(t5, small).unmatched]
        assert match(bert, large).fields["batch_size"] == 32
        assert match(bert, small).fields["batch_size"] < 32
        assert [message for message, _params in match(bert, large).unmatched] == ["match-devices"]

    def test_every_reference_gets_an_answer(self) -> None:
        for reference in CATALOGUE.references:
            for kind in ("hpu", "cuda", "cpu"):
                found = match(reference, device(kind, 32))
                assert found.fields or found.unmatched, reference.id
                if found.fields:
                    make_spec(found.workload, found.fields)


def test_a_value_without_meaning_is_never_turned() -> None:
    memory = CATALOGUE.measurement("seed-hw-mem-g1")
    assert amount(memory, "seconds", per_device=False).value == amount(memory, "rate", per_device=False).value == 32


def test_amounts_turn_intervals_too() -> None:
    own = dataclasses.replace(CATALOGUE.measurement("seed-sd-g2-bs8-latency"), value=2.0, interval=(1.9, 2.1))
    assert amount(own, "rate", per_device=False).interval == pytest.approx((1 / 2.1, 1 / 1.9))
    total = dataclasses.replace(CATALOGUE.measurement("seed-bert-g1-bs32-throughput"), interval=(512.0, 528.0))
    assert amount(total, "values", per_device=True).interval == (64.0, 66.0)
    assert amount(total, "seconds", per_device=True).value == pytest.approx(8 / 520.2)
    assert [hours(value) for value in (8.8833, 0.5, 0.0001)] == ["8 h 53 min", "30 min", "0.36 s"]

"""What stands below the Compare page's cards, and the other ways to look at the cards."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app import beyond, race, training_time
from app.article_notes import NOTES
from app.comparison import value
from app.more import KEY, PARTS
from data.catalogue import load_catalogue
from data.matching import match
from runners.queue import RunQueue
from runners.registry import make_spec
from runners.rundir import RunDir, create_run
from tests.test_app_views import app, figures, make_image_run, texts

__all__ = ["app"]  # the fixture
CATALOGUE = load_catalogue()


def part(app: AppTest, name: str) -> AppTest:
    app.query_params[KEY] = name
    at = app.run()
    assert not at.exception
    return at


def published_values() -> set[float]:
    return {item.value for item in CATALOGUE.measurements if item.value is not None}


@pytest.mark.parametrize("name", list(PARTS))
def test_every_part_opens_by_its_link(app: AppTest, name: str) -> None:
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
        text = texts(app.run())
        assert "Gaudi2 is 1.98 times as fast as A100 80GB" in text
        assert "Gaudi (1st gen) is 0.69 times as fast as A100 80GB" in text


class TestBeyond:
    def test_only_what_can_be_compared_is_shown_and_the_rest_is_counted(self, app: AppTest) -> None:
        at = part(app, "beyond")
        table = at.dataframe[0].value
        assert table["Ratio"].notna().all()
        assert set(table["Verdict"]) == {"Like for like", "With caveats"}
        assert "cannot be compared with it and are left out" in texts(at)
        assert set(table["Value"]) <= published_values()

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
        assert set(at.dataframe[0].value["Device"]) == {"RTX 4090"}

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
        assert chart["data"][0]["x"] == [32, 80, 96]

    def test_training_time_is_called_what_it_is(self, app: AppTest) -> None:
        at = part(app, "training-time")
        chart = figures(at)[-1]
        assert [training_time.hours(x * 3600) for x in chart["data"][0]["x"]] == [
            "8 h 53 min",
            "2 h 55 min",
            "1 h 33 min",
        ]
        assert "until the loss was about the same" in texts(at)

    def test_the_history_of_a_number_is_in_order(self, app: AppTest) -> None:
        chart = figures(part(app, "drift"))[-1]
        by_name = {trace["name"]: trace for trace in chart["data"]}
        gaudi = by_name["Gaudi (1st gen)"]
        assert gaudi["x"] == sorted(gaudi["x"])
        assert {4.34, 3.25} <= set(gaudi["y"])
        assert any(abs(y - 3.64) < 0.01 for y in gaudi["y"])
        assert set(by_name["A100 80GB"]["y"]) == {2.63}


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
        at.session_state[race.START_KEY] = time.time() - 7.4
        at.segmented_control(key=race.FACTOR_KEY).set_value(2).run()
        labels = [bar.text for bar in at.get("progress")]
        # 14.8 s of replay: Gaudi2 makes an image in 0.925 s, A100 in 2.63 s, Gaudi in 3.25 s.
        assert any("Gaudi2" in text and "16 images" in text and "done in 14.8 s" in text for text in labels), labels
        assert any("A100" in text and "5 images" in text for text in labels), labels
        assert any("1st gen" in text and "4 images" in text for text in labels), labels
        assert all("replayed" in text or "live" in text for text in labels)


class TestMatching:
    def test_the_article_s_run_on_a_gaudi_is_the_published_one(self) -> None:
        found = match(CATALOGUE.by_id["seed-sd-g2-bs8-latency"], "hpu")
        assert make_spec("text-to-image", found.fields)
        assert {"precision": "bf16", "batch_size": 8, "steps": 50, "width": 512}.items() <= found.fields.items()
        assert [message for message, _params in found.unmatched] == ["match-weights"]

    def test_what_a_cpu_cannot_do_is_said_with_its_substitute(self) -> None:
        found = match(CATALOGUE.by_id["seed-sd-a100-bs1-latency"], "cpu")
        assert found.fields["precision"] == "fp32"
        [(_id, params)] = [item for item in found.unmatched if item[0] == "match-precision"]
        assert params == {"precision": "fp16", "substitute": "fp32", "device": "cpu"}

    @pytest.mark.parametrize(
        "reference_id", ["hfblog-sdxl-tpu-v5e4-b4", "seed-hw-mem-g1", "mlperf-inf-sdxl-v40-gaudi2-offline"]
    )
    def test_what_is_not_run_here_is_said(self, reference_id: str) -> None:
        found = match(CATALOGUE.by_id[reference_id], "cpu")
        assert not found.fields
        assert found.unmatched

    def test_every_reference_gets_an_answer(self) -> None:
        for reference in CATALOGUE.references:
            for kind in ("hpu", "cuda", "cpu"):
                found = match(reference, kind)
                assert found.fields or found.unmatched, reference.id
                if found.fields:
                    make_spec(found.workload, found.fields)


def test_a_value_without_meaning_is_never_turned() -> None:
    memory = CATALOGUE.measurement("seed-hw-mem-g1")
    assert value(memory, per_device=False, show="seconds") == value(memory, per_device=False, show="rate") == 32

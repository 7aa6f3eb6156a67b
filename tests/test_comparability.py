"""Verdicts: the table, the traps of the article, and properties that hold for any two measurements."""

import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.better_pair import better_pair
from data.catalogue import load_catalogue
from data.comparability import FLAG_EFFECTS, RULES, Measurement, Verdict, compare
from data.measurements import METRIC_MEANINGS, measurements_of
from data.messages import FIELD_NAMES, MESSAGES, METRIC_NAMES, render
from runners.records import Audit, Conditions, DeviceInfo, Metric, Record

CATALOGUE = load_catalogue()

IMAGES = Conditions(
    workload="text-to-image",
    model="stable-diffusion-1",
    weights="real",
    width_px=512,
    height_px=512,
    steps=50,
    scheduler="ddim",
    guidance=7.5,
    batch_size_per_device=8,
    devices=1,
    precision="bf16",
    timed_region="denoise+vae",
    warmup_rule="first-2-batches-dropped",
    mode="lazy",
    software="optimum-habana 1.6",
    software_year=2023,
)
TRAINING = Conditions(
    workload="t5-finetuning",
    model="t5-3b",
    weights="real",
    sequence_length=1024,
    target_length=128,
    steps=100,
    batch_size_per_device=1,
    devices=8,
    precision="fp32",
    tf32=False,
    timed_region="training-steps",
    warmup_rule="first-2-steps-dropped",
    gradient_checkpointing=True,
    software_year=2022,
)


def measurement(conditions: Conditions = IMAGES, *, metric: str = "s_per_image", **changes: Any) -> Measurement:
    """A measurement that is fully stated unless a test changes it."""
    values: dict[str, Any] = {
        "id": "a",
        "label": "A",
        "device_id": "a",
        "device_kind": "cuda",
        "value": 2.0,
        "unit": METRIC_MEANINGS[metric].unit if metric in METRIC_MEANINGS else "x",
    }
    return Measurement(metric=metric, conditions=conditions, **{**values, **changes})


def article(a: str, b: str) -> Verdict:
    return compare(CATALOGUE.measurement(a), CATALOGUE.measurement(b))


def severity(verdict: Verdict, field: str) -> str | None:
    return next((finding.severity for finding in verdict.findings if finding.field == field), None)


def message_ids(verdict: Verdict) -> set[str]:
    return {finding.message_id for finding in verdict.findings}


# The article's own comparisons.


def test_stable_diffusion_gaudi2_against_a100_is_batch_8_against_batch_1() -> None:
    verdict = article("seed-sd-g2-bs8-latency", "seed-sd-a100-bs1-latency")
    assert verdict.level == "caveats" and verdict.ratio is not None
    assert round(verdict.ratio, 2) == 2.84
    assert severity(verdict, "batch_size_per_device") == "caveat-strong"
    assert severity(verdict, "precision") == "caveat"
    assert "flag-provenance-a100-sd" in message_ids(verdict)
    assert severity(verdict, "timed_region") == severity(verdict, "warmup_rule") == "caveat"  # not published for A100
    assert severity(verdict, "software_year") == "note"
    assert verdict.findings[0].field == "batch_size_per_device"  # heaviest first


def test_what_was_reconstructed_differently_stays_a_caveat() -> None:
    catalogue = load_catalogue()
    gaudi, gaudi2 = (catalogue.measurement(f"seed-sd-{name}-bs8-latency") for name in ("g1", "g2"))
    other_value = dataclasses.replace(gaudi2, conditions=dataclasses.replace(gaudi2.conditions, guidance=9.0, steps=49))
    assert compare(other_value, gaudi).level == "not-comparable"
    other_source = dataclasses.replace(gaudi2, source_id="intel-gaudi2-performance")
    assert severity(compare(other_source, gaudi), "assumed") == "caveat"
    one_side = dataclasses.replace(gaudi2, assumed_fields=())
    assert severity(compare(one_side, gaudi), "assumed") == "caveat"


def test_stable_diffusion_gaudi2_against_gaudi() -> None:
    verdict = article("seed-sd-g2-bs8-latency", "seed-sd-g1-bs8-latency")
    assert verdict.ratio is not None and round(verdict.ratio, 2) == 3.51
    assert verdict.level == "like-for-like"
    assert {finding.severity for finding in verdict.findings} == {"note"}
    assert "assumed-alike" in message_ids(verdict)
    assert "flag-reciprocal-throughput" in message_ids(verdict)


@pytest.mark.parametrize(
    ("a", "b", "ratio", "level"),
    [
        ("g2-bs32", "g1-bs32", 3.04, "like-for-like"),  # the same script with the same settings
        ("g2-bs64", "g1-bs32", 3.53, "caveats"),
        ("g2-bs64", "g2-bs32", 1.16, "caveats"),
        ("a100-bs32", "g1-bs32", 1.89, "caveats"),
        ("a100-bs64", "g1-bs32", 2.08, "caveats"),
        ("g2-bs32", "a100-bs32", 1.61, "caveats"),
        ("g2-bs64", "a100-bs64", 1.70, "caveats"),
    ],
)
def test_bert_throughput(a: str, b: str, ratio: float, level: str) -> None:
    verdict = article(f"seed-bert-{a}-throughput", f"seed-bert-{b}-throughput")
    assert verdict.level == level and verdict.ratio is not None
    assert round(verdict.ratio, 2) == ratio
    same_batch = a[-4:] == b[-4:]
    assert severity(verdict, "batch_size_per_device") == (None if same_batch else "caveat-strong")
    assert severity(verdict, "devices") is None


def test_bert_training_time_is_time_to_similar_loss() -> None:
    verdict = article("seed-bert-g2-bs64-traintime", "seed-bert-g1-bs32-traintime")
    assert verdict.ratio is not None and round(verdict.ratio, 2) == 5.73  # printed as 5.75
    assert severity(verdict, "steps") == "caveat-strong"
    assert {"differs-steps-similar-loss", "flag-time-to-similar-loss"} <= message_ids(verdict)
    # As a time to train, with other steps, there would be no ratio at all.
    rows = [
        dataclasses.replace(CATALOGUE.measurement(f"seed-bert-{name}-traintime"), metric="time_to_train_s")
        for name in ("g2-bs64", "g1-bs32")
    ]
    assert compare(rows[0], rows[1]).ratio is None
    assert severity(compare(rows[0], rows[1]), "steps") == "forbid"


def test_own_time_to_train_meets_the_published_one_only_at_the_same_steps() -> None:
    published = CATALOGUE.measurement("seed-bert-g1-bs32-traintime")
    own = dataclasses.replace(
        published, metric="projected_time_to_train_s", value=15990.0, origin="projected", assumed_fields=(), flags=()
    )
    verdict = compare(own, published)
    assert verdict.level == "caveats" and verdict.ratio == pytest.approx(2.0)
    assert "projected" in message_ids(verdict)
    fewer = dataclasses.replace(own, conditions=dataclasses.replace(own.conditions, steps=20_000))
    assert compare(fewer, published).level == "not-comparable"


def test_t5_compares_batch_1_with_batch_16_and_an_unknown_tf32() -> None:
    verdict = article("seed-t5-g2-bs1-throughput", "seed-t5-a100-bs16-throughput")
    assert verdict.ratio is not None and round(verdict.ratio, 2) == 2.44
    assert severity(verdict, "batch_size_per_device") == "caveat-strong"
    tf32 = [finding.message_id for finding in verdict.findings if finding.field == "tf32"]
    assert tf32 == ["flag-tf32-not-stated"]
    assert "flag-padding-unknown" in message_ids(verdict)


def test_t5_on_gaudi_is_not_available() -> None:
    verdict = article("seed-t5-g2-bs1-throughput", "seed-t5-g1-throughput")
    assert verdict.level == "not-comparable" and verdict.ratio is None
    assert "value-not-available" in message_ids(verdict)


def test_printed_ratios_and_memory_sizes_yield_no_speed_up() -> None:
    assert article("seed-bert-g2-bs64-speedup", "seed-bert-g1-bs32-speedup").ratio is None
    memory = article("seed-hw-mem-g2", "seed-hw-mem-g1")
    assert memory.ratio is None and message_ids(memory) == {"not-a-speed"}
    mixed = article("seed-bert-g2-bs64-speedup", "seed-bert-g1-bs32-throughput")
    assert severity(mixed, "metric") == "forbid"


def test_0925_images_per_second_is_not_0925_seconds_per_image() -> None:
    seconds = CATALOGUE.measurement("seed-sd-g2-bs8-latency")
    images = dataclasses.replace(seconds, metric="images_per_s", unit="images/s", value=0.925)
    ratio = compare(images, seconds).ratio
    assert ratio is not None and ratio == pytest.approx(0.925 * 0.925)
    same = dataclasses.replace(images, value=1 / 0.925)
    assert compare(same, seconds).ratio == pytest.approx(1.0)


def test_the_bundled_model_never_compares_with_published_numbers() -> None:
    record = Record(
        run_id="01a22eb7-afb8-747e-bbce-83dee826fc2a",
        workload="text-to-image",
        status="ok",
        spec={},
        conditions=dataclasses.replace(
            IMAGES, model="likeforlike-bundled", weights="bundled", width_px=64, height_px=64, timed_region=None
        ),
        device=DeviceInfo(kind="cpu", name="A processor"),
        environment={},
        created_utc="2026-11-30T12:00:00Z",
        finished_utc="2026-11-30T12:00:00Z",
        metrics=(
            Metric(
                name="s_per_image", value=0.5, unit="s/image", n=9, higher_is_better=False, timed_region="end-to-end"
            ),
            Metric(name="load_s", value=2.0, unit="s", n=1, higher_is_better=False),
        ),
        audit=Audit(sync_policy="none"),
    )
    image, load = measurements_of(record)
    assert image.conditions.timed_region == "end-to-end" and image.label == "A processor"
    verdict = compare(image, CATALOGUE.measurement("seed-sd-g2-bs8-latency"))
    assert verdict.level == "not-comparable" and verdict.ratio is None
    assert severity(verdict, "model") == severity(verdict, "resolution") == "forbid"
    assert compare(load, image).ratio is None


def test_better_pair_is_found_in_the_catalogue() -> None:
    a, b = (CATALOGUE.measurement(f"seed-bert-{name}-throughput") for name in ("g2-bs64", "a100-bs32"))
    better = better_pair(a, b, CATALOGUE.measurements)
    assert better is not None and better.verdict.ratio is not None
    assert (better.a.id, better.b.id) == ("seed-bert-g2-bs32-throughput", "seed-bert-a100-bs32-throughput")
    assert round(better.verdict.ratio, 2) == 1.61
    assert render(better.message_id, better.params) == (
        "At batch 32 Gaudi2 gets through 1,580.2 samples/s, so the ratio there is 1.61, not 1.87."
    )


def test_the_fair_pair_for_the_articles_images_is_found_and_named() -> None:
    """The article sets Gaudi2 at batch 8 against A100 at batch 1; documentation of the same software has batch 1."""
    a, b = (CATALOGUE.measurement(f"seed-sd-{name}-latency") for name in ("g2-bs8", "a100-bs1"))
    better = better_pair(a, b, CATALOGUE.measurements)
    assert better is not None and better.b == b
    assert better.a.id == "diffusersdocs-202306-sd15-g2-bs1-latency"
    assert render(better.message_id, better.params) == (
        "At batch 1 Gaudi2 takes 1.33 s per image, so the ratio there is 1.98, not 2.84."
    )
    # Without that row it is the next in time, and without any at batch 1 nothing is made up.
    without = [item for item in CATALOGUE.measurements if item.id != better.a.id]
    second = better_pair(a, b, without)
    assert second is not None and second.a.conditions.batch_size_per_device == 1 and second.a.id != better.a.id
    gaudi2_at_1 = [
        item for item in without if not (item.device_id == "gaudi2" and item.conditions.batch_size_per_device == 1)
    ]
    assert better_pair(a, b, gaudi2_at_1) is None


def test_a_caveat_less_is_not_worth_another_pair() -> None:
    a, b = (CATALOGUE.measurement(f"seed-t5-{name}-throughput") for name in ("g2-bs1", "a100-bs16"))
    assert better_pair(a, b, CATALOGUE.measurements) is None  # no equal batch is published
    a = CATALOGUE.measurement("diffusersdocs-pt2-a100-bs8-sdpa")
    assert better_pair(a, CATALOGUE.measurement("seed-sd-g2-bs8-latency"), CATALOGUE.measurements) is None


def test_a_pair_that_cannot_be_compared_leads_to_one_that_can() -> None:
    a, b = CATALOGUE.measurement("lambda-sd-a10-bs1-half-xf"), CATALOGUE.measurement("diffusersdocs-pt2-a100-bs4-sdpa")
    assert compare(a, b).ratio is None  # 30 steps against 50
    better = better_pair(a, b, CATALOGUE.measurements)
    assert better is not None and better.message_id == "better-pair-first"
    assert better.a.device_id == "a10" and better.verdict.ratio is not None


def test_better_pair_keeps_the_readers_own_measurement() -> None:
    own = measurement(dataclasses.replace(IMAGES, batch_size_per_device=4), device_id="own", id="own")
    reference = CATALOGUE.measurement("seed-sd-a100-bs1-latency")
    other = dataclasses.replace(
        reference, id="bs4", conditions=dataclasses.replace(reference.conditions, batch_size_per_device=4)
    )
    better = better_pair(own, reference, [reference, other])
    assert better is not None and (better.a.id, better.b.id) == ("own", "bs4")


# The table.


@pytest.mark.parametrize(
    ("metric", "change", "field", "expected"),
    [
        ("s_per_image", {"model": "stable-diffusion-2"}, "model", "forbid"),
        ("s_per_image", {"width_px": 768}, "resolution", "forbid"),
        ("s_per_image", {"steps": 30}, "steps", "forbid"),
        ("images_per_s", {"steps": 30}, "steps", "forbid"),
        ("s_per_step", {"steps": 30}, "steps", None),
        ("steps_per_s", {"batch_size_per_device": 1}, "batch_size_per_device", "forbid"),
        ("s_per_image", {"batch_size_per_device": 1}, "batch_size_per_device", "caveat-strong"),
        ("batch_latency_s", {"batch_size_per_device": 1}, "batch_size_per_device", "forbid"),
        ("s_per_image", {"devices": 2}, "devices", "caveat"),
        ("s_per_image", {"precision": "fp16"}, "precision", "caveat"),
        ("s_per_image", {"timed_region": "end-to-end"}, "timed_region", "caveat"),
        ("s_per_image", {"warmup_rule": "none"}, "warmup_rule", "caveat"),
        ("s_per_image", {"guidance": 1.0}, "guidance", "caveat-strong"),
        ("s_per_image", {"guidance": 9.0}, "guidance", None),
        ("s_per_image", {"scheduler": "euler"}, "scheduler", "note"),
        ("s_per_image", {"software_year": 2020}, "software_year", "note"),
        ("s_per_image", {"software": "optimum-habana 1.7.2"}, "software", None),
        ("s_per_image", {"software": "optimum-habana 2.0"}, "software", "note"),
        ("s_per_image", {"weights": "architecture"}, "weights", None),
        ("final_loss", {"weights": "architecture"}, "weights", "forbid"),
        ("s_per_image", {"tf32": True}, "tf32", None),  # nothing is computed in fp32
        ("s_per_image", {"sequence_length": 77}, "sequence_length", None),  # no such thing for images
        ("s_per_image", {"learning_rate": 1e-4}, "learning_rate", None),
        ("s_per_image", {"batch_size_per_device": None}, "batch_size_per_device", "caveat"),
        ("s_per_image", {"steps": None}, "steps", "caveat"),
        ("s_per_image", {"scheduler": None}, "scheduler", "note"),
        ("s_per_image", {"mode": None}, "mode", None),
    ],
)
def test_table_for_images(metric: str, change: dict[str, Any], field: str, expected: str | None) -> None:
    verdict = compare(measurement(metric=metric), measurement(dataclasses.replace(IMAGES, **change), metric=metric))
    assert severity(verdict, field) == expected
    assert (verdict.ratio is None) == (expected == "forbid" or metric == "final_loss")


@pytest.mark.parametrize(
    ("metric", "change", "field", "expected"),
    [
        ("samples_per_s", {"sequence_length": 512}, "sequence_length", "forbid"),
        ("samples_per_s", {"target_length": 64}, "target_length", "forbid"),
        ("samples_per_s", {"steps": 200}, "steps", "note"),  # how long a training went on does not change its speed
        ("time_to_train_s", {"steps": 200}, "steps", "forbid"),
        ("time_to_similar_loss_s", {"steps": 200}, "steps", "caveat-strong"),
        ("samples_per_s", {"tf32": True}, "tf32", "caveat"),
        ("samples_per_s", {"tf32": None}, "tf32", "caveat"),
        ("samples_per_s", {"gradient_checkpointing": False}, "gradient_checkpointing", "caveat"),
        ("samples_per_s", {"width_px": 512}, "resolution", None),
        ("time_to_train_s", {"devices": 1}, "devices", "caveat"),
    ],
)
def test_table_for_training(metric: str, change: dict[str, Any], field: str, expected: str | None) -> None:
    other = dataclasses.replace(TRAINING, **change)
    verdict = compare(measurement(TRAINING, metric=metric), measurement(other, metric=metric))
    assert severity(verdict, field) == expected
    assert (verdict.ratio is None) == (expected == "forbid")


def test_unknown_on_both_sides_is_not_equal() -> None:
    unknown = measurement(dataclasses.replace(IMAGES, batch_size_per_device=None))
    verdict = compare(unknown, unknown)
    assert verdict.level == "caveats"
    assert message_ids(verdict) == {"not-published-both"}


def test_tf32_is_no_question_outside_nvidia() -> None:
    gaudi = measurement(dataclasses.replace(TRAINING, tf32=None), metric="samples_per_s", device_kind="hpu")
    assert compare(gaudi, measurement(TRAINING, metric="samples_per_s")).level == "like-for-like"
    allowed = measurement(dataclasses.replace(TRAINING, tf32=True), metric="samples_per_s")
    assert severity(compare(gaudi, allowed), "tf32") == "caveat"


def test_unequal_device_counts_compare_per_device() -> None:
    one = measurement(dataclasses.replace(TRAINING, devices=1), metric="samples_per_s", value=5.0)
    eight = measurement(TRAINING, metric="samples_per_s", value=20.0)
    verdict = compare(one, eight)
    assert verdict.ratio == pytest.approx(5.0 / (20.0 / 8))
    assert "differs-devices" in message_ids(verdict)
    per_device = measurement(TRAINING, metric="samples_per_s_per_device", value=2.5, scope="per-device")
    assert compare(per_device, eight).ratio == pytest.approx(1.0)


def test_different_tasks_and_failed_runs() -> None:
    other = compare(measurement(), measurement(TRAINING, metric="samples_per_s"))
    assert severity(other, "workload") == "forbid" and len(other.findings) == 1
    failed = compare(measurement(status="failed"), measurement())
    assert failed.ratio is None and "failed-run" in message_ids(failed)


def test_what_a_run_warns_of_is_a_caveat() -> None:
    verdict = compare(measurement(warnings=("too-few-samples",)), measurement())
    assert verdict.level == "caveats" and verdict.ratio == 1.0
    assert [(finding.field, finding.message_id) for finding in verdict.findings] == [("measurement", "too-few-samples")]
    assert "Fewer than 6" in render(verdict.findings[0].message_id, verdict.findings[0].params)


@pytest.mark.parametrize("value", [None, 0.0, -1.0, math.nan, math.inf])
def test_a_value_that_is_no_speed_yields_no_ratio(value: float | None) -> None:
    verdict = compare(measurement(value=value), measurement())
    assert verdict.level == "not-comparable" and verdict.ratio is None


def test_every_sentence_of_a_verdict_exists_and_fills_in() -> None:
    for rule in RULES:
        assert rule.field in FIELD_NAMES
    assert set(FLAG_EFFECTS) <= set(MESSAGES)
    assert set(METRIC_MEANINGS) <= set(METRIC_NAMES)
    assert set(FLAG_EFFECTS) >= {flag for row in CATALOGUE.references for flag in row.flags}
    for a in CATALOGUE.measurements[::5]:
        for b in CATALOGUE.measurements[::7]:
            verdict = compare(a, b)
            for message_id, params in [(verdict.message_id, verdict.params)] + [
                (finding.message_id, finding.params) for finding in verdict.findings
            ]:
                text = render(message_id, params)
                assert "{" not in text and "_" not in text, text


def test_sentences_go_through_the_readers_translation() -> None:
    verdict = compare(measurement(), measurement(dataclasses.replace(IMAGES, timed_region=None)))
    [finding] = verdict.findings
    german = {"The {field} of {label} is not published.": "{field} von {label} fehlt.", "timed region": "Zeitbereich"}
    assert render(finding.message_id, finding.params, lambda text: german.get(text, text)) == "Zeitbereich von A fehlt."


def test_the_interval_of_a_ratio() -> None:
    own = measurement(value=2.0, interval=(1.9, 2.1))
    verdict = compare(own, measurement(value=4.0))
    assert verdict.ratio == 2.0 and verdict.interval is not None
    # A published value counts as exact, so the interval is that of the own one.
    assert verdict.interval == pytest.approx((4.0 / 2.1, 4.0 / 1.9), rel=0.01)
    both = compare(own, measurement(value=4.0, interval=(3.8, 4.2)))
    assert both.interval is not None and both.interval[0] < verdict.interval[0] < 2 < both.interval[1]
    assert compare(measurement(), measurement()).interval is None
    assert compare(own, measurement(interval=(0.0, 4.0))).interval is not None  # the other's says nothing
    # A bound so small that the ratio of the bounds overflows says nothing either; it once made the interval NaN.
    assert compare(measurement(), measurement(value=1.0, interval=(5e-324, 5.0))).interval is None


def test_tasks_that_nobody_described_do_not_compare() -> None:
    fine_tuning = article("oh-fixture-bert-large-mrpc-8x-gaudi3", "oh-fixture-bert-large-mrpc-8x-gaudi2")
    assert fine_tuning.ratio is None and message_ids(fine_tuning) == {"task-other"}


# Properties.

some_conditions = st.builds(
    Conditions,
    workload=st.sampled_from(["text-to-image", "bert-pretraining", "t5-finetuning"]),
    model=st.sampled_from([None, "stable-diffusion-1", "bert-base"]),
    weights=st.sampled_from([None, "real", "architecture"]),
    width_px=st.sampled_from([None, 512, 768]),
    height_px=st.sampled_from([None, 512]),
    sequence_length=st.sampled_from([None, 128, 512]),
    steps=st.sampled_from([None, 50, 65_000]),
    guidance=st.sampled_from([None, 1.0, 7.5]),
    batch_size_per_device=st.sampled_from([None, 1, 8]),
    devices=st.sampled_from([None, 1, 8]),
    precision=st.sampled_from([None, "fp32", "bf16"]),
    tf32=st.sampled_from([None, True, False]),
    timed_region=st.sampled_from([None, "denoise+vae", "end-to-end"]),
    software=st.sampled_from([None, "torch 2.13.0", "torch 1.12"]),
    software_year=st.sampled_from([None, 2022, 2026]),
)
some_measurements = st.builds(
    Measurement,
    id=st.just("x"),
    label=st.just("X"),
    device_id=st.just("x"),
    device_kind=st.sampled_from(["hpu", "cuda", "cpu"]),
    metric=st.sampled_from([*METRIC_MEANINGS, "projected_time_to_train_s", "printed_speedup"]),
    value=st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.floats(0.01, 1e6),
    unit=st.just("u"),
    interval=st.none() | st.tuples(st.floats(-1, 5), st.floats(5, 1e6)),
    scope=st.sampled_from(["total", "per-device"]),
    conditions=some_conditions,
    assumed_fields=st.sampled_from([(), ("steps",), ("width_px", "height_px", "learning_rate")]),
    flags=st.sampled_from([(), ("flag-tf32-not-stated",), ("flag-total-over-devices",)]),
    origin=st.sampled_from(["published", "measured", "projected"]),
    status=st.sampled_from(["ok", "ok", "ok", "failed"]),
    warnings=st.sampled_from([(), ("first-call-included",)]),
)


@settings(max_examples=300, deadline=None)
@given(a=some_measurements, b=some_measurements)
def test_a_verdict_is_symmetric(a: Measurement, b: Measurement) -> None:
    there, back = compare(a, b), compare(b, a)
    assert there.level == back.level
    assert sorted((f.field, f.severity) for f in there.findings) == sorted((f.field, f.severity) for f in back.findings)
    assert (there.ratio is None) == (back.ratio is None)
    if there.ratio is not None and back.ratio is not None:
        assert there.ratio * back.ratio == pytest.approx(1.0)
    assert (there.interval is None) == (back.interval is None)
    if there.interval is not None and back.interval is not None:
        assert there.interval[0] * back.interval[1] == pytest.approx(1.0)


@settings(max_examples=300, deadline=None)
@given(a=some_measurements, b=some_measurements)
def test_no_forbidden_pair_has_a_ratio(a: Measurement, b: Measurement) -> None:
    verdict = compare(a, b)
    forbidden = any(finding.severity == "forbid" for finding in verdict.findings)
    assert forbidden == (verdict.level == "not-comparable")
    if forbidden:
        assert verdict.ratio is None
        assert verdict.params["ratio"] is None and verdict.interval is None


@settings(max_examples=200, deadline=None)
@given(
    conditions=st.sampled_from([IMAGES, TRAINING]),
    metric=st.sampled_from(["images_per_s", "s_per_image", "samples_per_s", "batch_latency_s", "time_to_train_s"]),
    first=st.floats(0.001, 1e6),
    second=st.floats(0.001, 1e6),
)
def test_identical_and_fully_stated_conditions_are_like_for_like(
    conditions: Conditions, metric: str, first: float, second: float
) -> None:
    a, b = measurement(conditions, metric=metric, value=first), measurement(conditions, metric=metric, value=second)
    verdict = compare(a, b)
    assert verdict.level == "like-for-like" and verdict.findings == ()
    assert verdict.ratio is not None
    faster = first > second if METRIC_MEANINGS[metric].higher_is_better else first < second
    assert (verdict.ratio > 1) == faster or verdict.ratio == pytest.approx(1.0)


@settings(max_examples=100, deadline=None)
@given(a=some_measurements, b=some_measurements)
def test_a_verdict_is_plain_json(a: Measurement, b: Measurement) -> None:
    json.dumps(compare(a, b).to_json(), allow_nan=False)

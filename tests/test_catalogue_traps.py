"""The traps of the published numbers beyond the article, each with its right value."""

import dataclasses

import pytest

from data.catalogue import Catalogue, load_catalogue
from data.comparability import better_pair, compare
from data.measurements import Measurement
from data.reference_rows import reference_from
from data.rules import FLAG_EFFECTS
from data.vocabulary import converted

CATALOGUE = load_catalogue()


@pytest.fixture
def catalogue() -> Catalogue:
    return CATALOGUE


def measured(reference_id: str) -> Measurement:
    return CATALOGUE.measurement(reference_id)


def test_all_rows_are_there(catalogue: Catalogue) -> None:
    counts: dict[str, int] = {}
    for row in catalogue.references:
        counts[row.conditions.workload] = counts.get(row.conditions.workload, 0) + 1
    article = [row for row in catalogue.references if row.tier == "article"]
    assert len(article) == 37
    assert len(catalogue.references) == 37 + 488
    beyond = {row.id for row in catalogue.references} - {row.id for row in article}
    others = [catalogue.by_id[row_id].conditions.workload for row_id in beyond]
    assert {name: others.count(name) for name in set(others)} == {
        "text-to-image": 307,
        "bert-pretraining": 96,
        "t5-finetuning": 20,
        "other": 65,
    }


def test_the_fair_pair_of_the_article_s_image_comparison_is_found() -> None:
    a100 = measured("seed-sd-a100-bs1-latency")
    gaudi2 = better_pair(measured("seed-sd-g2-bs8-latency"), a100, CATALOGUE.measurements)
    assert gaudi2 is not None
    assert (gaudi2.a.value, gaudi2.b.id) == (1.33, "seed-sd-a100-bs1-latency")
    assert gaudi2.verdict.ratio == pytest.approx(1.98, abs=0.005)
    gaudi1 = better_pair(measured("seed-sd-g1-bs8-latency"), a100, CATALOGUE.measurements)
    assert gaudi1 is not None
    assert gaudi1.verdict.ratio == pytest.approx(0.69, abs=0.005), "at one image at a time it is the slower one"


def test_seconds_per_image_at_batch_8_are_the_reciprocal_of_the_published_rate(catalogue: Catalogue) -> None:
    for rate_id, seconds in (
        ("diffusersdocs-202306-sd15-g2-bs8-throughput", 0.925),
        ("diffusersdocs-202306-sd15-g1-bs8-throughput", 3.25),
    ):
        row = catalogue.by_id[rate_id]
        assert row.unit == "images/s"
        assert row.canonical_value == pytest.approx(seconds, rel=0.002)


def test_0_925_images_per_second_is_not_0_925_seconds(catalogue: Catalogue) -> None:
    earlier = catalogue.by_id["diffusersdocs-202304-sd15-g2-bs8-throughput"]
    assert (earlier.value, earlier.unit) == (0.925, "images/s")
    assert earlier.canonical_value == pytest.approx(1.081, abs=0.001)
    article = catalogue.by_id["seed-sd-g2-bs8-latency"]
    assert (article.value, article.unit, article.canonical_value) == (0.925, "s/img", 0.925)


def test_an_a100_with_newer_attention_is_about_as_fast_as_gaudi2_at_batch_8() -> None:
    verdict = compare(measured("seed-sd-g2-bs8-latency"), measured("diffusersdocs-pt2-a100-bs8-sdpacompile"))
    assert verdict.level == "caveats"
    assert verdict.ratio == pytest.approx(0.828 / 0.925, abs=0.001)
    assert "timed_region" in {finding.field for finding in verdict.findings}


def test_copies_among_the_gaudi3_baselines_yield_no_ratio(catalogue: Catalogue) -> None:
    copies = [row for row in catalogue.references if "flag-copied-placeholder" in row.flags]
    assert len(copies) >= 3
    for row in copies:
        twin = catalogue.by_id[row.id.replace("gaudi3", "gaudi2")]
        assert row.value == twin.value
    charted = [row for row in copies if row.canonical_metric]
    assert charted
    for row in charted:
        verdict = compare(measured(row.id), measured("seed-sd-g2-bs8-latency"))
        assert (verdict.level, verdict.ratio) == ("not-comparable", None)
    real = measured("oh-fixture-sd14-bf16-gaudi3")
    assert "flag-copied-placeholder" not in real.flags
    assert compare(real, measured("oh-fixture-sd14-bf16-gaudi2")).ratio == pytest.approx(2.168 / 1.086, rel=1e-3)


def test_another_number_of_steps_or_another_resolution_is_never_scaled(catalogue: Catalogue) -> None:
    article = measured("seed-sd-a100-bs1-latency")
    for row in catalogue.references:
        conditions = row.conditions
        if row.canonical_metric != "s_per_image" or row.tier == "article":
            continue
        other = conditions.steps not in (None, 50) or conditions.width_px not in (None, 512)
        if other or conditions.model != "stable-diffusion-1":
            assert compare(measured(row.id), article).ratio is None, row.id


@pytest.mark.parametrize(
    ("value", "unit", "conditions", "expected"),
    [
        (25.0, "it/s", {"batch_size": 1, "steps": 50}, 2.0),
        (25.0, "it/s", {"batch_size": 8, "steps": 50}, 0.25),
        (25.0, "it/s", {"batch_size": 8}, None),
        (25.0, "it/s", {"steps": 50}, None),
        (7.4, "s/batch", {"batch_size": 8}, 0.925),
        (7.4, "s/batch", {}, None),
        (3058.27, "ms/batch", {"batch_size": 1}, 3.05827),
        (1.081, "images/s", {}, 0.92507),
    ],
)
def test_conversions(value: float, unit: str, conditions: dict[str, int], expected: float | None) -> None:
    found = converted(value, unit, "s/image", **conditions)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found[0] == pytest.approx(expected, rel=1e-4)


def test_a_rate_of_steps_without_their_number_is_no_time_per_image(catalogue: Catalogue) -> None:
    rates = [row for row in catalogue.references if row.unit == "it/s"]
    assert {row.canonical_metric for row in rates} == {"s_per_image", "steps_per_s"}
    for row in rates:
        assert (row.canonical_metric == "s_per_image") == (row.conditions.steps is not None), row.id
        assert row.conditions.timed_region == "unet-loop"


def test_a_value_that_cannot_be_converted_is_no_row() -> None:
    row = CATALOGUE.by_id["diffusersdocs-pt2-a100-bs8-vanilla"]
    unknown = dataclasses.replace(row.conditions, batch_size_per_device=None)
    from data import reference_rows

    with pytest.raises(ValueError, match="cannot be converted"):
        reference_rows._check(dataclasses.replace(row, conditions=unknown))
    assert reference_from is not None


def test_totals_and_single_devices_meet_per_device() -> None:
    total, single = measured("seed-bert-a100-bs32-throughput"), measured("milabench-a100-2024-bert-fp16")
    verdict = compare(single, total)
    assert verdict.ratio == pytest.approx(263.73 / (981.6 / 8), rel=1e-6)
    assert "devices" in {finding.field for finding in verdict.findings}


def test_the_blog_s_own_hours_imply_another_throughput(catalogue: Catalogue) -> None:
    row = catalogue.by_id["hfblog-bert-g1-100k"]
    assert row.canonical_value is not None
    assert 100_000 * 256 / row.canonical_value == pytest.approx(569, abs=0.5)


def test_every_flag_that_is_used_has_an_effect(catalogue: Catalogue) -> None:
    assert {flag for row in catalogue.references for flag in row.flags} <= set(FLAG_EFFECTS)


def test_no_forbidden_pair_has_a_ratio() -> None:
    some = CATALOGUE.measurements[::7]
    for a in some:
        for b in some:
            verdict, back = compare(a, b), compare(b, a)
            assert verdict.level == back.level
            assert (verdict.level == "not-comparable") <= (verdict.ratio is None)
            if verdict.ratio is not None:
                assert back.ratio == pytest.approx(1 / verdict.ratio)

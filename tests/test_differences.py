"""Two runs beside each other: what differs, the ratio, the similarity of images."""

import dataclasses

import numpy as np
import pytest

from data.comparability import compare
from data.differences import differing, sample_seconds, similarity, speed_ratio
from data.measurements import measurements_of
from runners.execute import execute
from runners.records import Conditions, Record, Series
from runners.rundir import create_run
from runners.stats import rate_metrics


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    return execute(
        create_run(tmp_path_factory.mktemp("runs"), "synthetic", {"steps": 10, "step_ms": 1.0, "batch_size": 4})
    )


def with_steps(record: Record, seconds: list[float]) -> Record:
    series = Series(name="step_s", unit="s", phase="measured", values=tuple(seconds))
    return dataclasses.replace(record, series=(series,))


def test_only_what_differs_is_told(record: Record) -> None:
    other = dataclasses.replace(
        record,
        spec={**record.spec, "seed": 7},
        environment={**record.environment, "packages": {**record.environment["packages"], "torch": "9.9"}},
    )
    assert [(item.group, item.name, item.value_b) for item in differing(record, other)] == [
        ("spec", "seed", 7),
        ("environment", "packages.torch", "9.9"),
    ]
    assert differing(record, record) == []


def test_a_setting_is_not_told_again_as_a_condition(record: Record) -> None:
    changed = dataclasses.replace(record.conditions, steps=99)
    other = dataclasses.replace(record, spec={**record.spec, "steps": 99}, conditions=changed)
    assert [(item.group, item.name) for item in differing(record, other)] == [("spec", "steps")]


def test_times_are_per_sample(record: Record) -> None:
    assert sample_seconds(with_steps(record, [4.0, 8.0])) == [1.0, 2.0]
    assert sample_seconds(dataclasses.replace(record, series=())) == []


def test_the_ratio_says_how_many_times_as_fast(record: Record) -> None:
    fast, slow = with_steps(record, [1.0, 1.01] * 20), with_steps(record, [1.9, 1.92] * 20)
    estimate = speed_ratio(fast, slow)
    assert estimate is not None and estimate.interval is not None
    assert estimate.ratio == pytest.approx(1.9, rel=0.01)
    assert estimate.interval[0] < 1.9 < estimate.interval[1] and estimate.differs
    same = speed_ratio(fast, fast)
    assert same is not None and not same.differs
    assert speed_ratio(fast, dataclasses.replace(record, series=())) is None


@pytest.mark.parametrize("devices", [1, 4])
def test_the_samples_ratio_is_the_verdict_s(record: Record, devices: int) -> None:
    """Both per device, also where the devices are not equally many."""

    def made(count: int, seconds: list[float]) -> Record:
        conditions = Conditions(
            workload="bert-pretraining",
            model="bert-base",
            batch_size_per_device=8,
            devices=count,
            timed_region="training-steps",
        )
        metrics = tuple(rate_metrics("sample", "samples/s", seconds, 8 * count, "training-steps"))
        return dataclasses.replace(with_steps(record, seconds), conditions=conditions, metrics=metrics)

    own, other = made(devices, [1.0] * 10), made(1, [2.0] * 10)
    (verdict,) = [
        compare(a, b)
        for a, b in zip(measurements_of(own), measurements_of(other), strict=True)
        if a.metric == "samples_per_s"
    ]
    estimate = speed_ratio(own, other)
    assert estimate is not None
    assert estimate.ratio == pytest.approx(verdict.ratio) == pytest.approx(2.0)


class TestSimilarity:
    image = np.random.default_rng(0).integers(0, 256, (32, 32, 3)).astype(np.uint8)

    def test_equal_images(self) -> None:
        found = similarity(self.image, self.image)
        assert found is not None
        assert (found.psnr_db, found.ssim) == (float("inf"), pytest.approx(1.0))

    def test_psnr_of_a_known_error(self) -> None:
        flat = np.full((16, 16, 3), 100, np.uint8)
        found = similarity(flat, flat + np.uint8(10))  # mean squared error 100: 10 log10(255 ** 2 / 100)
        assert found is not None
        assert found.psnr_db == pytest.approx(28.1308, abs=1e-4)
        # Of flat images only the term of the means is left: (2 a b + c1) / (a^2 + b^2 + c1).
        assert found.ssim == pytest.approx((2 * 100 * 110 + 6.5025) / (100**2 + 110**2 + 6.5025))

    def test_noise_is_not_alike(self) -> None:
        other = np.random.default_rng(1).integers(0, 256, (32, 32, 3)).astype(np.uint8)
        found = similarity(self.image, other)
        assert found is not None
        assert found.ssim < 0.1 and found.psnr_db < 10

    def test_other_sizes_cannot_be_compared(self) -> None:
        assert similarity(self.image, self.image[:16]) is None


def test_it_is_symmetric(record: Record) -> None:
    a, b = with_steps(record, [1.0, 1.1] * 10), with_steps(record, [2.0, 2.3] * 10)
    there, back = speed_ratio(a, b), speed_ratio(b, a)
    assert there is not None and back is not None
    assert there.ratio == pytest.approx(1 / back.ratio)

"""Training the bundled model, at sizes that take seconds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from runners.bundled_model import architecture  # noqa: E402
from runners.bundled_model.architecture import build_vae  # noqa: E402
from runners.bundled_model.muon import orthogonalise  # noqa: E402
from runners.bundled_model.scenes import render, sample_scene  # noqa: E402
from runners.bundled_model.schedule import Schedule  # noqa: E402
from runners.bundled_model.tokenizer import load_tokenizer, write_tokenizer  # noqa: E402
from runners.bundled_model.training import seed_step, to_pixels  # noqa: E402
from runners.bundled_model.unet_stage import (  # noqa: E402
    DenoisingLoss,
    Pool,
    load_pool,
    make_pool,
    save_pool,
    unet_trainer,
)
from runners.bundled_model.vae_stage import normalise_latents, vae_loss  # noqa: E402

SHORT = Schedule(steps=12, peak=2e-3, warm_up=2, ema_decay=0.9, muon_peak=3e-3, save_every=3)


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(architecture.UNET_CONFIG, "block_out_channels", (32, 32, 32))
    monkeypatch.setitem(architecture.VAE_CONFIG, "block_out_channels", (8, 8, 16))


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    write_tokenizer(tmp_path / "tokenizer")
    torch.manual_seed(0)
    return make_pool(build_vae(), load_tokenizer(tmp_path / "tokenizer"), 24, 0, "cpu")


def _train(folder: Path, pool: Pool, stops: tuple[int, ...]) -> dict[str, Any]:
    """Train to the end of the schedule, interrupted after each of `stops`; return all weights and their average."""
    for stop in (*stops, SHORT.steps):
        trainer, unet, text_encoder = unet_trainer(SHORT, folder / "unet.pt", "cpu", 0)
        trainer.fit(DenoisingLoss(unet, text_encoder, pool, batch=4), stop_after=stop)
    weights = {f"unet.{name}": tensor for name, tensor in unet.state_dict().items()}
    weights |= {f"text.{name}": tensor for name, tensor in text_encoder.state_dict().items()}
    return weights | {f"average.{index}": tensor for index, tensor in enumerate(trainer.average)}


def test_a_resumed_run_makes_the_same_weights_as_an_uninterrupted_one(tmp_path: Path, pool: Pool) -> None:
    whole = _train(tmp_path / "whole", pool, ())
    resumed = _train(tmp_path / "resumed", pool, (4, 9))
    assert whole.keys() == resumed.keys()
    for name, tensor in whole.items():
        assert torch.equal(tensor, resumed[name]), name


def test_a_few_steps_reduce_the_denoising_loss(tmp_path: Path, pool: Pool) -> None:
    schedule = Schedule(steps=40, peak=3e-3, warm_up=2, muon_peak=3e-3)
    trainer, unet, text_encoder = unet_trainer(schedule, tmp_path / "unet.pt", "cpu", 0)
    loss = DenoisingLoss(unet, text_encoder, pool, batch=8)

    def measured() -> float:
        with torch.no_grad():
            return sum(float(loss(0, seed_step(99, step))) for step in range(6))

    before = measured()
    trainer.fit(loss)
    assert measured() < 0.9 * before


def test_a_few_steps_reduce_the_loss_of_the_vae() -> None:
    torch.manual_seed(0)
    vae, rng = build_vae(), random.Random(0)
    pixels = to_pixels([render(sample_scene(rng)) for _ in range(8)], "cpu")
    optimizer = torch.optim.AdamW(vae.parameters(), 3e-3)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = vae_loss(vae, pixels)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.9 * losses[0]


def test_normalised_latents_have_mean_0_and_deviation_1_and_decode_the_same() -> None:
    torch.manual_seed(0)
    vae, rng = build_vae().eval(), random.Random(0)
    pixels = to_pixels([render(sample_scene(rng)) for _ in range(60)], "cpu")
    with torch.inference_mode():
        before = vae.decode(vae.encode(pixels).latent_dist.mean).sample
    normalise_latents(vae, seed=0, count=100)
    with torch.inference_mode():
        latents = vae.encode(pixels).latent_dist.mean
        after = vae.decode(latents).sample
    assert latents.mean().abs() < 0.2
    assert abs(float(latents.std()) - 1) < 0.2
    assert torch.allclose(before, after, atol=1e-4)


def test_a_pool_survives_the_disk(tmp_path: Path, pool: Pool) -> None:
    save_pool(pool, tmp_path / "pool.safetensors")
    loaded = load_pool(tmp_path / "pool.safetensors")
    assert torch.equal(loaded.tokens, pool.tokens)
    assert torch.allclose(loaded.latents, pool.latents, atol=1e-2)


def test_the_learning_rate_rises_stays_and_falls() -> None:
    schedule = Schedule(steps=100, peak=1.0, warm_up=10, decay_share=0.2)
    rates = [schedule.share_of_peak(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[10:80] == [1.0] * 70
    assert rates[99] == pytest.approx(0.05)


@pytest.mark.parametrize("shape", [(24, 90), (90, 24), (40, 40)])
def test_orthogonalised_matrices_have_singular_values_near_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    values = torch.linalg.svdvals(orthogonalise(torch.randn(shape)))
    assert 0.6 < float(values.median()) < 1.3
    assert float(values.max()) < 1.4

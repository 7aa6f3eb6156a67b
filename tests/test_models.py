"""Folders of weights, looked at before anything is loaded."""

import json
from pathlib import Path

import pytest

from runners.errors import WeightsError
from runners.models import cached_hub_ids, check_pipeline_folder, check_weights, is_hub_id, list_models, weights_kind

INDEX = {
    "_class_name": "StableDiffusionPipeline",
    "unet": ["diffusers", "UNet2DConditionModel"],
    "vae": ["diffusers", "AutoencoderKL"],
    "text_encoder": ["transformers", "CLIPTextModel"],
    "tokenizer": ["transformers", "CLIPTokenizer"],
    "scheduler": ["diffusers", "PNDMScheduler"],
    "safety_checker": ["stable_diffusion", "StableDiffusionSafetyChecker"],
    "feature_extractor": ["transformers", "CLIPImageProcessor"],
    "image_encoder": [None, None],
    "requires_safety_checker": True,
}


def pipeline_folder(folder: Path, weights: str = "model.safetensors", index: object = INDEX) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model_index.json").write_text(json.dumps(index))
    for part in ("unet", "vae", "text_encoder"):
        (folder / part).mkdir(exist_ok=True)
        (folder / part / "config.json").write_text("{}")
        (folder / part / weights).write_bytes(b"")
    return folder


def message_id(folder: Path) -> str:
    with pytest.raises(WeightsError) as caught:
        check_weights(str(folder))
    assert str(folder) in str(caught.value)
    return caught.value.message_id


def test_a_whole_folder_passes(tmp_path: Path) -> None:
    check_pipeline_folder(pipeline_folder(tmp_path / "model"))


def test_the_bundled_model_passes() -> None:
    check_weights("bundled")


def test_missing_empty_and_other_folders(tmp_path: Path) -> None:
    assert message_id(tmp_path / "missing" / "one") == "weights-missing"
    (tmp_path / "empty").mkdir()
    assert message_id(tmp_path / "empty") == "weights-empty"
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"")
    assert message_id(tmp_path / "photos") == "weights-not-a-pipeline"


def test_pickles_are_refused(tmp_path: Path) -> None:
    assert message_id(pipeline_folder(tmp_path / "pipeline", "diffusion_pytorch_model.bin")) == "weights-pickled"
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "v1-5-pruned.ckpt").write_bytes(b"")
    assert message_id(tmp_path / "checkpoint") == "weights-pickled"


@pytest.mark.parametrize(
    "index",
    [
        [],
        {},
        {**INDEX, "_class_name": "FluxPipeline"},
        {**INDEX, "unet": ["my_code", "Evil"]},
        {**INDEX, "unet": ["evil", "UNet2DConditionModel"]},
        {**INDEX, "scheduler": ["evil", "DDIMScheduler"]},
        {**INDEX, "scheduler": ["diffusers", "Evil"]},
        {**INDEX, "feature_extractor": ["evil", "CLIPImageProcessor"]},
        {**INDEX, "invented": ["evil", "Thing"]},
        {key: value for key, value in INDEX.items() if key != "scheduler"},
        {**INDEX, "tokenizer": [None, None]},
        {key: value for key, value in INDEX.items() if key != "vae"},
    ],
)
def test_other_pipelines_and_classes_are_refused(tmp_path: Path, index: object) -> None:
    assert message_id(pipeline_folder(tmp_path / "model", index=index)) == "weights-not-a-pipeline"


@pytest.mark.parametrize("text", ['{"_class_na', "[" * 200_000])
def test_a_damaged_index_is_named(tmp_path: Path, text: str) -> None:
    folder = pipeline_folder(tmp_path / "model")
    (folder / "model_index.json").write_text(text)
    assert message_id(folder) == "weights-not-a-pipeline"


def test_a_part_without_weights_or_config_is_named(tmp_path: Path) -> None:
    folder = pipeline_folder(tmp_path / "model")
    (folder / "vae" / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match="vae has no safetensors"):
        check_pipeline_folder(folder)
    (folder / "vae" / "config.json").unlink()
    with pytest.raises(WeightsError, match=r"vae/config\.json"):
        check_pipeline_folder(folder)


@pytest.mark.parametrize("name", ["owner/model", "CompVis/stable-diffusion-v1-4", "a/b.c_d-e"])
def test_hub_ids(name: str) -> None:
    assert is_hub_id(name)
    assert weights_kind(name) == "hub"


@pytest.mark.parametrize("name", ["", "/", "a/", "../b", "a/b/c", "a b/c", "a/..", "~/x", "http://x/y"])
def test_what_is_no_hub_id(name: str) -> None:
    assert not is_hub_id(name)


def test_models_in_the_hub_cache_come_before_those_to_be_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    snapshots = "models--stable-diffusion-v1-5--stable-diffusion-v1-5/snapshots/abc"
    pipeline_folder(tmp_path / snapshots)
    pipeline_folder(tmp_path / "models--x--pickled/snapshots/abc", "model.bin")
    assert cached_hub_ids() == ["stable-diffusion-v1-5/stable-diffusion-v1-5"]
    kinds = [(choice.kind, choice.id) for choice in list_models()]
    assert kinds == [
        ("bundled", "bundled"),
        ("cached", "stable-diffusion-v1-5/stable-diffusion-v1-5"),
        ("architecture", "architecture"),
        ("hub", "CompVis/stable-diffusion-v1-4"),
    ]

"""The bundled model as it ships: its folder, its tokenizer, and what it draws."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from runners.bundled_model import vocabulary  # noqa: E402
from runners.bundled_model.captions import caption  # noqa: E402
from runners.bundled_model.evaluate import evaluate, generate, score, wilson  # noqa: E402
from runners.bundled_model.judge import Judge, Sight  # noqa: E402
from runners.bundled_model.pipeline import BUNDLED, load_pipeline, save_untrained  # noqa: E402
from runners.bundled_model.scenes import Item, Scene, any_scene, render, sample_scene  # noqa: E402
from runners.bundled_model.tokenizer import write_tokenizer  # noqa: E402

# Well below what the model card reports, so that 64 images fail only for a real loss of quality.
QUICK_FLOORS = {"object": 0.86, "colour": 0.86, "background": 0.95, "pair": 0.27}


@pytest.fixture(scope="module")
def pipeline() -> Any:
    return load_pipeline(BUNDLED)


def test_the_folder_is_small_and_holds_only_safetensors() -> None:
    files = [path for path in BUNDLED.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 30 * 2**20
    assert {path.suffix for path in files} <= {".safetensors", ".json", ".txt", ".md"}
    index = json.loads((BUNDLED / "model_index.json").read_text())
    assert index["safety_checker"] == [None, None]
    assert not any("_name_or_path" in path.read_text() for path in BUNDLED.rglob("*.json"))


def test_the_committed_tokenizer_is_the_one_that_the_vocabulary_makes(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (BUNDLED / "tokenizer" / path.name).read_bytes(), path.name


def _texts() -> list[str]:
    rng = random.Random(0)
    strange = ["", "a dragon", "🐉 مرحبا", "  Two   spaces,and;punctuation!?", "naïve café 12345", "A RED FISH", "it's"]
    return [caption(sample_scene(rng), rng) for _ in range(50)] + list(vocabulary.EXAMPLE_PROMPTS) + strange


def test_both_tokenizer_formats_give_the_same_ids(pipeline: Any) -> None:
    from tokenizers import Tokenizer
    from transformers import CLIPTokenizer

    folder = BUNDLED / "tokenizer"
    fast = Tokenizer.from_file(str(folder / "tokenizer.json"))
    merges = [tuple(line.split()) for line in (folder / "merges.txt").read_text("utf-8").splitlines()[1:]]
    slow = CLIPTokenizer(vocab=json.loads((folder / "vocab.json").read_text("utf-8")), merges=merges)
    for text in _texts():
        assert pipeline.tokenizer(text).input_ids == fast.encode(text).ids == slow(text).input_ids, text


def test_each_known_word_is_one_token(pipeline: Any) -> None:
    for word in vocabulary.known_words():
        assert len(pipeline.tokenizer.tokenize(word)) == 1, word


@pytest.mark.gaudi
def test_the_gaudi_set_of_libraries_reads_the_same(pipeline: Any) -> None:
    """transformers 4.55 and diffusers 0.35 in an environment of their own, where there is one."""
    python = os.environ.get("LIKEFORLIKE_GAUDI_PYTHON")
    if not python:
        pytest.skip("LIKEFORLIKE_GAUDI_PYTHON names no interpreter with the Gaudi set of libraries")
    code = (
        "import json, sys, torch; from diffusers import StableDiffusionPipeline\n"
        "folder, texts = sys.argv[1], json.loads(sys.argv[2])\n"
        "pipe = StableDiffusionPipeline.from_pretrained(folder, torch_dtype=torch.float32, local_files_only=True)\n"
        "ids = [pipe.tokenizer(text).input_ids for text in texts]\n"
        "sums = [float(sum(p.double().abs().sum() for p in m.parameters())) for m in (pipe.unet, pipe.text_encoder)]\n"
        "print(json.dumps([ids, sums]))"
    )
    texts = _texts()
    done = subprocess.run([python, "-c", code, str(BUNDLED), json.dumps(texts)], capture_output=True, check=True)
    ids, sums = json.loads(done.stdout.splitlines()[-1])
    assert ids == [pipeline.tokenizer(text).input_ids for text in texts]
    ours = [sum(float(p.double().abs().sum()) for p in m.parameters()) for m in (pipeline.unet, pipeline.text_encoder)]
    assert sums == pytest.approx(ours)


def test_text_encoder_weights_have_the_names_that_both_versions_read() -> None:
    from safetensors import safe_open

    with safe_open(BUNDLED / "text_encoder" / "model.safetensors", "pt") as weights:
        assert all(name.startswith("text_model.") for name in weights.keys())  # noqa: SIM118


def test_components_load_in_single_precision_unless_asked_otherwise(pipeline: Any) -> None:
    from diffusers import StableDiffusionPipeline

    plain = StableDiffusionPipeline.from_pretrained(str(BUNDLED), local_files_only=True)
    for name in ("unet", "vae", "text_encoder"):
        assert getattr(plain, name).dtype == torch.float32


def test_a_red_circle_on_white_is_red_in_the_middle_and_white_at_the_rim(pipeline: Any) -> None:
    prompts = ["a red circle on a white background"] * 2
    for image in generate(pipeline, prompts, vocabulary.DEFAULT_STEPS, vocabulary.DEFAULT_GUIDANCE, seed=0):
        pixels = torch.tensor(list(image.getdata())).view(64, 64, 3).float()
        red, green, blue = pixels[27:37, 27:37].flatten(0, 1).median(dim=0).values.tolist()
        assert red > 150
        assert max(green, blue) < 110
        assert pixels[:3].min() > 180
        assert pixels[-3:].min() > 180


def test_a_word_that_it_does_not_know_does_no_harm(pipeline: Any) -> None:
    prompts = ["a majestic blue star on a yellow background", "blue star, zorgblat, yellow background"]
    images = generate(pipeline, prompts, vocabulary.DEFAULT_STEPS, vocabulary.DEFAULT_GUIDANCE, seed=1)
    for sight in Judge.load().look(images):
        assert (sight.colours[0], sight.background) == ("blue", "yellow")


@pytest.mark.parametrize("prompt", ["", "🐉" * 40, "a red fish " * 900])
def test_any_prompt_gives_an_image(pipeline: Any, prompt: str) -> None:
    (image,) = generate(pipeline, [prompt], 2, 3.0, seed=0)
    assert image.size == (64, 64)


@pytest.mark.timeout(600)
def test_the_quick_evaluation_is_above_its_floors() -> None:
    report = evaluate(BUNDLED, 64, vocabulary.DEFAULT_STEPS, vocabulary.DEFAULT_GUIDANCE, floor=False)
    for name, floor in QUICK_FLOORS.items():
        assert report["generated"][name]["share"] >= floor, report["generated"]
        assert report["ceiling_vae_reconstructions"][name]["share"] >= 0.9, name


def test_random_weights_are_judged_to_be_nothing(tmp_path: Path) -> None:
    """The evaluation must be able to fail."""
    save_untrained(tmp_path)
    report = evaluate(tmp_path, 16, 2, 3.0, floor=False)
    assert report["generated"]["object"]["share"] <= 0.3
    assert report["generated"]["pair"]["share"] == 0
    assert not any(report["reached"].values())


def test_the_judge_is_right_about_fresh_drawings() -> None:
    rng = random.Random(123)
    scenes = [any_scene(rng, pair=rng.random() < 0.4) for _ in range(600)]
    rates = score(scenes, Judge.load().look([render(scene) for scene in scenes]))
    for name in ("object", "colour", "background", "pair"):
        assert rates[name].share >= 0.985, (name, rates[name])


def test_score_counts_each_thing_by_itself() -> None:
    single = Scene((Item("fish", "red"),), "blue")
    pair = Scene((Item("cat", "pink"), Item("sun", "red")), "white", "row")
    sights = [
        Sight("single", ("fish",), ("orange",), "blue"),
        Sight("row", ("sun", "cat"), ("pink", "red"), "white"),
    ]
    rates = {name: (rate.right, rate.of) for name, rate in score([single, pair], sights).items()}
    assert rates == {
        **{"object": (1, 1), "colour": (0, 1), "background": (2, 2)},
        **{"pair": (0, 1), "pair_colours": (1, 1), "pair_exact": (0, 1)},
    }


def test_wilson_interval() -> None:
    assert wilson(90, 100) == pytest.approx((0.8256, 0.9448), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(10, 10)[1] == pytest.approx(1.0)

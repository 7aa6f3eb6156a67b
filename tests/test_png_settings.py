"""Settings out of PNG files: ours as our own writer makes them, others' by hand in their documented shapes."""

import io
import json
import random
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from runners.errors import SpecError
from runners.images import parameters_text, save_png
from runners.png_settings import read_png_settings
from runners.registry import make_spec

A1111 = """a red fox, (masterpiece:1.2)
in the snow, <lora:foxes:0.8>
Negative prompt: blurry, text
watermark
Steps: 28, Sampler: DPM++ 2M, Schedule type: Karras, CFG scale: 6.5, Seed: 4294967295, Size: 512x768, \
Model hash: abcdef0123, Model: dreamy_v1, Clip skip: 2, Lora hashes: "foxes: 123, other: 456", Version: v1.9.4"""

COMFY = {
    "3": {
        "class_type": "KSampler",
        "inputs": {
            "seed": 156680208700286,
            "steps": 20,
            "cfg": 8.0,
            "sampler_name": "euler",
            "scheduler": "normal",
            "denoise": 1.0,
            "model": ["10", 0],
            "positive": ["6", 0],
            "negative": ["7", 0],
            "latent_image": ["5", 0],
        },
    },
    "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "v1-5-pruned.safetensors"}},
    "10": {"class_type": "LoraLoader", "inputs": {"lora_name": "x.safetensors", "model": ["4", 0], "clip": ["4", 1]}},
    "5": {"class_type": "EmptyLatentImage", "inputs": {"width": 512, "height": 640, "batch_size": 1}},
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a glass bottle", "clip": ["4", 1]}},
    "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "text, watermark", "clip": ["4", 1]}},
}

INVOKE = {
    "app_version": "5.6.0",
    "generation_mode": "txt2img",
    "positive_prompt": "a lighthouse",
    "negative_prompt": "",
    "width": 512,
    "height": 512,
    "seed": 7,
    "rand_device": "cpu",
    "cfg_scale": 7.5,
    "steps": 30,
    "scheduler": "ddim",
    "model": {"key": "k", "name": "stable-diffusion-v1-5", "base": "sd-1"},
    "loras": [{"model": {"name": "ink"}, "weight": 0.5}],
}

FOOOCUS = {
    "prompt": "a boat",
    "negative_prompt": "bad",
    "steps": 30,
    "guidance_scale": 4,
    "seed": "12",
    "sampler": "dpmpp_2m_sde_gpu",
    "resolution": "(896, 1152)",
    "base_model": "juggernaut",
}


def png(**texts: str) -> bytes:
    info = PngInfo()
    for name, text in texts.items():
        info.add_itxt(name, text)
    target = io.BytesIO()
    Image.new("RGB", (8, 8)).save(target, format="PNG", pnginfo=info)
    return target.getvalue()


@pytest.mark.parametrize(
    ("prompt", "negative"),
    [
        ("a red circle", ""),
        ('say "hi", Steps: 5, Seed: 9', 'no: colons, "quotes"'),
        ("two\nlines", "and\nthree\nmore"),
        ("🐱 貓 قطة", "🌙"),
    ],
)
def test_our_own_files_give_everything_back(tmp_path: Path, prompt: str, negative: str) -> None:
    text = parameters_text(
        prompt=prompt,
        negative_prompt=negative,
        steps=12,
        scheduler="PNDM",
        guidance=4.5,
        seed=2**62,
        width_px=64,
        height_px=96,
        model="bundled",
        extra={"Device": "CPU, some", "LikeForLike": "1"},
    )
    save_png(Image.new("RGB", (64, 96)), tmp_path / "a.png", text, {})
    found = read_png_settings((tmp_path / "a.png").read_bytes())
    assert found.fields == {
        "prompt": prompt,
        **({"negative_prompt": negative} if negative else {}),
        "steps": 12,
        "scheduler": "PNDM",
        "guidance": 4.5,
        "seed": 2**62,
        "width": 64,
        "height": 96,
        "weights": "bundled",
    }
    assert make_spec("text-to-image", found.fields)


def test_automatic1111() -> None:
    found = read_png_settings(png(parameters=A1111))
    assert found.origin == "AUTOMATIC1111"
    assert found.fields == {
        "prompt": "a red fox, (masterpiece:1.2)\nin the snow, <lora:foxes:0.8>",
        "negative_prompt": "blurry, text\nwatermark",
        "steps": 28,
        "scheduler": "DPM++ 2M",
        "guidance": 6.5,
        "seed": 4294967295,
        "width": 512,
        "height": 768,
    }
    left_out = dict(found.left_out)
    assert left_out["weights"] == "dreamy_v1"
    assert left_out["Schedule type"] == "Karras"
    assert left_out["Clip skip"] == "2"
    assert left_out["Lora hashes"] == "foxes: 123, other: 456"
    assert left_out["RNG"] == "GPU", "their starting noise is another one for the same seed"
    assert "Version" not in left_out


def test_an_unknown_sampler_is_left_out() -> None:
    found = read_png_settings(png(parameters="x\nSteps: 20, Sampler: Euler a, CFG scale: 7, Seed: 1, Size: 512x512"))
    assert "scheduler" not in found.fields
    assert ("scheduler", "Euler a") in found.left_out


@pytest.mark.parametrize(
    ("pair", "name"),
    [("Steps: 100000", "steps"), ("Size: 513x512", "width"), ("Seed: -1", "seed"), ("CFG scale: nan", "guidance")],
)
def test_what_no_specification_takes_is_left_out(pair: str, name: str) -> None:
    pairs = {"Steps": "20", "CFG scale": "7", "Seed": "1", "Size": "512x512"}
    key, _, value = pair.partition(": ")
    text = ", ".join(f"{k}: {v}" for k, v in {**pairs, key: value}.items())
    found = read_png_settings(png(parameters=f"x\n{text}"))
    assert name not in found.fields
    assert name in dict(found.left_out)


def test_comfyui() -> None:
    found = read_png_settings(png(prompt=json.dumps(COMFY), workflow="{}"))
    assert found.origin == "ComfyUI"
    assert found.fields == {
        "prompt": "a glass bottle",
        "negative_prompt": "text, watermark",
        "steps": 20,
        "guidance": 8.0,
        "seed": 156680208700286,
        "scheduler": "Euler",
        "width": 512,
        "height": 640,
    }
    assert ("weights", "v1-5-pruned.safetensors") in found.left_out
    assert ("node", "LoraLoader") in found.left_out


def test_a_graph_in_circles_ends() -> None:
    graph = json.loads(json.dumps(COMFY))
    graph["6"] = {"class_type": "ConditioningCombine", "inputs": {"a": ["7b", 0], "b": ["6", 0]}}
    graph["7b"] = {"class_type": "ConditioningCombine", "inputs": {"a": ["6", 0]}}
    found = read_png_settings(png(prompt=json.dumps(graph)))
    assert "prompt" not in found.fields
    assert found.fields["steps"] == 20


def test_invokeai() -> None:
    found = read_png_settings(png(invokeai_metadata=json.dumps(INVOKE), invokeai_graph="{}"))
    assert found.origin == "InvokeAI"
    assert found.fields["prompt"] == "a lighthouse"
    assert (found.fields["scheduler"], found.fields["guidance"], found.fields["seed"]) == ("DDIM", 7.5, 7)
    assert "loras" in dict(found.left_out)
    assert ("weights", "stable-diffusion-v1-5") in found.left_out


def test_fooocus() -> None:
    found = read_png_settings(png(parameters=json.dumps(FOOOCUS)))
    assert found.origin == "Fooocus"
    assert (found.fields["width"], found.fields["height"], found.fields["seed"]) == (896, 1152, 12)
    assert ("scheduler", "dpmpp_2m_sde_gpu") in found.left_out


@pytest.mark.parametrize("model", ["../../etc/passwd", "/home/me/model", "a/../b", "C:\\models\\x", "x" * 500])
def test_a_path_in_a_file_is_never_taken_as_weights(model: str) -> None:
    found = read_png_settings(png(parameters=f"x\nSteps: 20, Seed: 1, CFG scale: 7, Model: {model}"))
    assert "weights" not in found.fields


@pytest.mark.parametrize(
    ("content", "message_id"),
    [
        (b"", "png-not-a-png"),
        (b"\xff\xd8\xff\xe0 a JPEG", "png-not-a-png"),
        (b"\x89PNG\r\n\x1a\n", "png-damaged"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "png-damaged"),
        (png(), "png-without-settings"),
        (png(Software="Photoshop"), "png-without-settings"),
        (png(prompt="not json"), "png-without-settings"),
        (png(prompt="[" * 100_000), "png-without-settings"),
        (png(prompt='{"1": {"class_type": "KSampler"}}'), "png-without-settings"),
        (png(invokeai_metadata="[1, 2]"), "png-without-settings"),
        (png(parameters="   "), "png-without-settings"),
        (bytes(60_000_000), "png-too-large"),
    ],
    ids=range(12),
)
def test_other_files_are_refused_with_the_reason(content: bytes, message_id: str) -> None:
    with pytest.raises(SpecError) as refusal:
        read_png_settings(content)
    assert refusal.value.message_id == message_id


def test_a_text_that_unpacks_to_a_bomb_is_refused() -> None:
    bomb = b"parameters\x00\x00" + zlib.compress(b"a" * 200_000_000, 9)
    chunk = len(bomb).to_bytes(4, "big") + b"zTXt" + bomb + zlib.crc32(b"zTXt" + bomb).to_bytes(4, "big")
    whole = png()
    with pytest.raises(SpecError) as refusal:
        read_png_settings(whole[:33] + chunk + whole[33:])
    assert refusal.value.message_id in ("png-damaged", "png-without-settings")


def test_mutated_files_raise_nothing_else() -> None:
    rng = random.Random(0)
    originals = [
        png(parameters=A1111),
        png(prompt=json.dumps(COMFY)),
        png(invokeai_metadata=json.dumps(INVOKE)),
        png(parameters=json.dumps(FOOOCUS)),
    ]
    read = 0
    for _ in range(400):
        content = bytearray(rng.choice(originals))
        for _ in range(rng.randint(1, 8)):
            content[rng.randrange(8, len(content))] = rng.randrange(256)
        if rng.random() < 0.3:
            del content[rng.randrange(8, len(content)) :]
        try:
            found = read_png_settings(bytes(content))
        except SpecError:
            continue
        make_spec("text-to-image", {"prompt": "-", **_short_texts(found.fields)})
        read += 1
    assert read > 0


def test_mutated_texts_raise_nothing_else() -> None:
    rng = random.Random(1)
    texts = [("parameters", A1111), ("prompt", json.dumps(COMFY)), ("invokeai_metadata", json.dumps(INVOKE))]
    for _ in range(400):
        name, text = rng.choice(texts)
        letters = list(text)
        for _ in range(rng.randint(1, 10)):
            letters[rng.randrange(len(letters))] = rng.choice('{}[]":,0\n a\u20ac')
        try:
            found = read_png_settings(png(**{name: "".join(letters)}))
        except SpecError:
            continue
        make_spec("text-to-image", {"prompt": "-", **_short_texts(found.fields)})


def _short_texts(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != "prompt"}

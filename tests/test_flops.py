"""FLOPs by formula against what torch counts on the real classes, and the table of peaks."""

import dataclasses
from typing import Any

import pytest

from data.catalogue import load_catalogue
from runners import flops, flops_images
from runners.flops import flops_per_sample, image_configs
from runners.peaks import PEAKS_PATH, peaks_of, read_peaks
from runners.preflight_training import BERT_CONFIGS, T5_CONFIGS
from runners.records import Conditions
from runners.registry import make_spec
from runners.workloads import bert_pretraining, t5_finetuning

IMAGE = Conditions(
    workload="text-to-image",
    model="stable-diffusion-1",
    width_px=512,
    height_px=512,
    steps=50,
    guidance=7.5,
    scheduler="DDIM",
    batch_size_per_device=8,
    timed_region="denoise+vae",
)
TINY_UNET: dict[str, Any] = {
    "sample_size": 16,
    "in_channels": 4,
    "out_channels": 4,
    "layers_per_block": 2,
    "block_out_channels": (32, 64, 64),
    "down_block_types": ("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
    "cross_attention_dim": 48,
    "attention_head_dim": 4,
    "norm_num_groups": 16,
}


def counted(call: Any) -> int:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        call()
    return int(counter.get_total_flops())


def counted_unet(config: dict[str, Any], height: int, width: int, tokens: int, device: str = "cpu") -> int:
    import torch
    from diffusers import UNet2DConditionModel
    from diffusers.models.attention_processor import AttnProcessor

    with torch.device(device), torch.no_grad():
        model = UNet2DConditionModel(**config)
        model.set_attn_processor(AttnProcessor())  # torch's counter does not see the CPU's fused attention
        latents = torch.zeros(1, config["in_channels"], height, width)
        text = torch.zeros(1, tokens, config["cross_attention_dim"])
        return counted(lambda: model(latents, torch.tensor(1), encoder_hidden_states=text))


def counted_decoder(config: dict[str, Any], height: int, width: int, device: str = "cpu") -> int:
    import torch
    from diffusers import AutoencoderKL
    from diffusers.models.attention_processor import AttnProcessor

    with torch.device(device), torch.no_grad():
        model = AutoencoderKL(**config)
        model.set_attn_processor(AttnProcessor())
        return counted(lambda: model.decode(torch.zeros(1, config["latent_channels"], height, width)))


def counted_text(config: dict[str, Any], device: str = "cpu") -> int:
    import torch
    from transformers import CLIPTextConfig, CLIPTextModel

    with torch.device(device), torch.no_grad():
        model = CLIPTextModel(CLIPTextConfig(**config))
        model.set_attn_implementation("eager")
        ids = torch.zeros(1, config["max_position_embeddings"], dtype=torch.long)
        return counted(lambda: model(ids))


@pytest.mark.parametrize(("height", "width"), [(16, 16), (16, 24), (12, 20)])
def test_a_tiny_unet_s_formula_is_what_torch_counts(height: int, width: int) -> None:
    ours = flops_images.unet(TINY_UNET, height, width, 10)
    assert ours == pytest.approx(counted_unet(TINY_UNET, height, width, 10), rel=0.02)


def test_a_unet_at_an_odd_size_too() -> None:
    """Sizes that halve with a remainder come back to what they were on the way down."""
    ours = flops_images.unet(TINY_UNET, 18, 14, 10)
    assert ours == pytest.approx(counted_unet(TINY_UNET, 18, 14, 10), rel=0.02)


def test_the_bundled_model_s_formula_is_what_torch_counts() -> None:
    configs = image_configs("likeforlike-bundled")
    assert configs is not None
    unet, vae, text = (dict(configs[part]) for part in ("unet", "vae", "text_encoder"))
    plain = {name: value for name, value in unet.items() if not name.startswith("_")}
    decoder = {name: value for name, value in vae.items() if not name.startswith("_")}
    assert flops_images.unet(unet, 16, 16, 32) == pytest.approx(counted_unet(plain, 16, 16, 32), rel=0.02)
    assert flops_images.vae_decoder(vae, 16, 16) == pytest.approx(counted_decoder(decoder, 16, 16), rel=0.02)
    kept = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings")
    small = {name: text[name] for name in (*kept, "vocab_size", "bos_token_id", "eos_token_id")}
    assert flops_images.text_encoder(text) == pytest.approx(counted_text(small), rel=0.02)


def test_stable_diffusion_1_at_the_published_size() -> None:
    """The published architecture on the meta device: nothing is computed, so it takes seconds."""
    configs = image_configs("stable-diffusion-1")
    assert configs is not None
    unet = counted_unet(dict(configs["unet"]), 64, 64, 77, device="meta")
    decoder = counted_decoder(dict(configs["vae"]), 64, 64, device="meta")
    text = counted_text(dict(configs["text_encoder"]), device="meta")
    assert flops_images.unet(configs["unet"], 64, 64, 77) == pytest.approx(unet, rel=0.02)
    assert flops_images.vae_decoder(configs["vae"], 64, 64) == pytest.approx(decoder, rel=0.02)
    assert flops_images.text_encoder(configs["text_encoder"]) == pytest.approx(text, rel=0.02)
    assert flops_per_sample(IMAGE) == pytest.approx(2 * 50 * unet + decoder, rel=0.02)
    end_to_end = dataclasses.replace(IMAGE, timed_region="end-to-end")
    assert flops_per_sample(end_to_end) == pytest.approx(2 * 50 * unet + decoder + 2 * text / 8, rel=0.02)


def test_what_changes_the_work_of_an_image() -> None:
    whole = flops_per_sample(IMAGE)
    assert whole is not None
    configs = image_configs("stable-diffusion-1")
    assert configs is not None
    call = flops_images.unet(configs["unet"], 64, 64, 77)
    unguided = flops_per_sample(dataclasses.replace(IMAGE, guidance=1.0))
    assert unguided == pytest.approx(whole - 50 * call)
    assert flops_per_sample(dataclasses.replace(IMAGE, scheduler="PNDM")) == pytest.approx(whole + 2 * call)
    loop = flops_per_sample(dataclasses.replace(IMAGE, timed_region="unet-loop"))
    assert loop == pytest.approx(100 * call)
    assert flops_per_sample(dataclasses.replace(IMAGE, steps=None)) is None
    assert flops_per_sample(dataclasses.replace(IMAGE, model="custom")) is None


def test_forward_and_training() -> None:
    bert, t5 = BERT_CONFIGS["bert-base"], T5_CONFIGS["t5-3b"]
    assert flops.bert_training(bert, 512) == 3 * flops.bert_forward(bert, 512)
    assert flops.t5_training(t5, 1024, 128, checkpointing=False) == 3 * flops.t5_forward(t5, 1024, 128)
    conditions = Conditions(workload="bert-pretraining", model="bert-base", sequence_length=512)
    again = flops_per_sample(dataclasses.replace(conditions, gradient_checkpointing=True))
    head = 2 * 512 * (768**2 + 768 * 32_000)
    assert again == 4 * (flops.bert_forward(bert, 512) - head) + 3 * head


@pytest.mark.parametrize("length", [16, 64])
def test_a_bert_training_step_is_what_torch_counts(length: int) -> None:
    import torch

    model, _ = bert_pretraining._model(make_spec("bert-pretraining", {"model": "bert-tiny"}))
    model.set_attn_implementation("eager")
    ids = torch.randint(5, 100, (1, length))
    torch_counts = counted(lambda: model(input_ids=ids, labels=ids).loss.backward())
    assert flops.bert_training(BERT_CONFIGS["bert-tiny"], length) == pytest.approx(torch_counts, rel=0.02)


@pytest.mark.parametrize(("source", "target"), [(32, 8), (64, 16)])
def test_a_t5_training_step_is_what_torch_counts(source: int, target: int) -> None:
    import torch

    model, _ = t5_finetuning._model(make_spec("t5-finetuning", {"model": "t5-tiny"}))
    ids, labels = torch.randint(5, 100, (1, source)), torch.randint(5, 100, (1, target))
    torch_counts = counted(lambda: model(input_ids=ids, labels=labels).loss.backward())
    ours = flops.t5_training(T5_CONFIGS["t5-tiny"], source, target, checkpointing=False)
    assert ours == pytest.approx(torch_counts, rel=0.02)


def test_bert_and_t5_at_the_published_size() -> None:
    import torch
    from transformers import BertConfig, BertForMaskedLM, T5Config, T5ForConditionalGeneration

    with torch.device("meta"):
        bert = BertForMaskedLM(BertConfig(**BERT_CONFIGS["bert-base"]))
        bert.set_attn_implementation("eager")
        ids = torch.zeros(1, 512, dtype=torch.long)
        torch_counts = counted(lambda: bert(input_ids=ids))
        t5 = T5ForConditionalGeneration(T5Config(**T5_CONFIGS["t5-3b"], decoder_start_token_id=0))
        source, target = torch.zeros(1, 1024, dtype=torch.long), torch.zeros(1, 128, dtype=torch.long)
        torch_counts_t5 = counted(lambda: t5(input_ids=source, decoder_input_ids=target))
    assert flops.bert_forward(BERT_CONFIGS["bert-base"], 512) == pytest.approx(torch_counts, rel=0.02)
    assert flops.t5_forward(T5_CONFIGS["t5-3b"], 1024, 128) == pytest.approx(torch_counts_t5, rel=0.02)


def test_every_peak_names_a_device_and_a_source_of_the_catalogue() -> None:
    catalogue = load_catalogue()
    rows = read_peaks(PEAKS_PATH)
    assert len({peaks.device_id for _, peaks in rows}) >= 10
    for name, peaks in rows:
        assert peaks.device_id in catalogue.devices, name
        assert peaks.source_id in catalogue.sources, name
        assert all(0 < value < 1e5 for value in peaks.tflops.values())
        assert name == name.casefold()


def test_dense_peaks_not_those_with_sparsity() -> None:
    """NVIDIA's half precision is twice its tf32 and 16 times the fp32 of the A100; a sparse number would break that."""
    for _, peaks in read_peaks(PEAKS_PATH):
        if {"tf32", "bf16"} <= peaks.tflops.keys() and peaks.device_id[:2] in ("a1", "h1", "h2", "b2", "gb", "gh"):
            assert peaks.tflops["bf16"] == pytest.approx(2 * peaks.tflops["tf32"], rel=0.01)
    a100 = peaks_of("NVIDIA A100-SXM4-80GB")
    assert a100 is not None
    assert a100.at("bf16") == 312


@pytest.mark.parametrize(
    ("name", "device_id"),
    [
        ("GAUDI2", "gaudi2"),
        ("HL-225H", "gaudi2"),
        ("Gaudi3", "gaudi3"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"),
        ("NVIDIA A100 80GB PCIe", "a100-80gb-pcie"),
        ("A100 80GB", "a100-80gb-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA GH200 480GB", "gh200"),
        ("AMD Instinct MI300X", "mi300x"),
        ("NVIDIA A10", None),
        ("NVIDIA RTX A1000", None),
        ("Gaudi (1st gen)", None),
        ("AMD EPYC 7763", None),
    ],
)
def test_a_device_s_name(name: str, device_id: str | None) -> None:
    found = peaks_of(name)
    assert (found.device_id if found else None) == device_id


def test_fp32_gets_the_benefit_of_the_doubt() -> None:
    a100 = peaks_of("A100 80GB")
    assert a100 is not None
    assert (a100.at("fp32"), a100.at("fp32", tf32=True), a100.at("fp32", tf32=False)) == (156, 156, 19.5)
    assert a100.at("fp16-mixed") == 312
    assert a100.at(None) is None

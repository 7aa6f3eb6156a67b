"""Text to image with Stable Diffusion 1.x, on two clocks.

What is timed, for each batch:

    end to end     prompt in, PIL images out: text encoder, denoising, VAE, conversion
    denoise + VAE  the region of the published numbers: starts when the prompt is encoded and the latents are on the
                   device, ends when the decoded images are; the safety checker is off

Both regions begin and end with the host waiting for the device, and nothing waits inside. The stages (text encoder,
denoising, VAE) are told apart by marks on the device's own clock; where a mark would make the host wait, one more
batch is run for them after the measured ones.

The starting noise is drawn on the CPU, image i from a generator with seed + i, so that a seed gives the same latents
on every device and at every batch size. The record keeps their hashes.
"""

import gc
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners import environment
from runners.energy import Meter
from runners.errors import DoesNotFit, WorkloadFailed
from runners.execute import Outcome, RunContext, kept_images
from runners.images import parameters_text, save_png
from runners.measure import RegionClock
from runners.models import weights_kind
from runners.preflight import check_text_to_image
from runners.records import Audit
from runners.specs import TextToImageSpec, resolve_text_to_image
from runners.stats import MINIMUM_FOR_INTERVAL, rate_metrics
from runners.steady import Pacing, remarks
from runners.workloads.sd_pipelines import LoadedPipeline, load_pipeline, make_scheduler
from runners.workloads.sd_preview import PreviewWriter
from runners.workloads.text_to_image_record import LIBRARIES, Batch, conditions, details, phases, series_of

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image


def run(spec: TextToImageSpec, context: RunContext) -> Outcome:
    """Generates the images of a specification, warm-up batches first.

    Raises:
        Cancelled: Somebody asked the run to stop.
        DoesNotFit, DeviceUnavailable: Preflight refused it.
        WeightsError: The weights cannot be used.
        WorkloadFailed: The result is not finite.
    """
    spec = resolve_text_to_image(spec)
    precision = spec.precision or context.device.precisions()[0]
    already_loaded = _cache_key(spec, context, precision) in context.models
    _make_room(spec, context, precision)
    context.device.reset_peak_memory()
    loaded = _load(spec, context, precision)
    generation = Generation(spec, context, loaded, precision)
    batches, pacing = _all_batches(spec, generation)
    stage_pass = generation.stage_pass() if context.device.marks_wait and not spec.previews else None
    measured = batches[len(pacing.warmup) :]
    metrics = [
        *rate_metrics("image", "images/s", [b.denoise_vae_s for b in measured], spec.batch_size, "denoise+vae"),
        *rate_metrics("image", "images/s", [b.end_to_end_s for b in measured], spec.batch_size, "end-to-end"),
    ]
    warnings = _warnings(spec, context, already_loaded, pacing, generation)
    return Outcome(
        conditions=conditions(spec, loaded, precision, pacing.rule("batches")),
        phases=tuple(phases(batches, len(pacing.warmup), None if already_loaded else loaded.load_s)),
        series=tuple(series_of(batches, len(pacing.warmup), stage_pass)),
        metrics=tuple(metrics),
        artifacts=kept_images(context.run_dir),
        audit=Audit(sync_policy=context.device.sync_policy, warnings=tuple(warnings)),
        details=details(spec, context, loaded, generation.latents_sha256, precision, pacing),
    )


def _all_batches(spec: TextToImageSpec, generation: "Generation") -> tuple[list[Batch], Pacing]:
    """Batches until the specification's rule has enough, and that rule with what it saw (the published clock)."""
    count = spec.images // spec.batch_size
    pacing = Pacing(spec.warmup_batches, count - spec.warmup_batches, adaptive=spec.stopping == "adaptive")
    batches: list[Batch] = []
    energy = generation.context.energy or Meter("none")
    energy.follow(pacing)
    while not pacing.over:
        batches.append(generation.batch(len(batches)))
        pacing.take(batches[-1].denoise_vae_s)
        energy.follow(pacing)
    return batches, pacing


def load_ahead(spec: TextToImageSpec, context: RunContext) -> Outcome:
    """Loads the model of a specification and generates nothing.

    Raises:
        DoesNotFit, DeviceUnavailable: Preflight refused it.
        WeightsError: The weights cannot be used.
    """
    spec = resolve_text_to_image(spec)
    precision = spec.precision or context.device.precisions()[0]
    _make_room(spec, context, precision)
    loaded = _load(spec, context, precision)
    audit = Audit(sync_policy=context.device.sync_policy)
    return Outcome(conditions=conditions(spec, loaded, precision, "none"), audit=audit)


def initial_latents(seeds: list[int], channels: int, height: int, width: int) -> "torch.Tensor":
    """Standard normal noise, one CPU generator per image.

    Args:
        seeds: One per image.
        channels: Latent channels.
        height: Latent rows.
        width: Latent columns.

    Returns:
        float32 tensor of shape (len(seeds), channels, height, width) on the CPU.
    """
    import torch

    noise = [
        torch.randn((channels, height, width), generator=torch.Generator("cpu").manual_seed(seed)) for seed in seeds
    ]
    return torch.stack(noise)


class Generation:
    """The batches of one run: everything that stays the same between them, and the two clocks."""

    def __init__(self, spec: TextToImageSpec, context: RunContext, loaded: LoadedPipeline, precision: str) -> None:
        """Makes the scheduler and the preview writer; nothing is computed yet."""
        self.spec = spec
        self.context = context
        self.loaded = loaded
        self.precision = precision
        self.pipe = loaded.pipe
        self.pipe.scheduler = make_scheduler(spec.scheduler, loaded.scheduler_config, context.device)
        self.latents_sha256: list[str] = []
        # With random weights there is nothing to see; on Gaudi the callback is given the initial noise, not the image.
        previews = spec.previews and loaded.weights != "architecture" and context.device.kind != "hpu"
        self.preview = PreviewWriter(context.run_dir, self.pipe, enabled=previews)
        self.prompt_truncated = self._prompt_is_longer_than_the_encoder()

    def batch(self, number: int) -> Batch:
        """Generates, times and saves batch `number`."""
        self.context.check_cancelled()
        first = number * self.spec.batch_size
        seeds = [self.spec.seed + first + index for index in range(self.spec.batch_size)]
        made = self._timed(self._noise(seeds), number, stages=not self.context.device.marks_wait)
        for index, (image, seed) in enumerate(zip(made.images, seeds, strict=True)):
            self._save(image, first + index, seed, made)
        # Saved: a run of a thousand images must not keep them all in memory.
        made.images.clear()
        return made

    def stage_pass(self) -> Batch:
        """One more batch, not counted, whose marks make the host wait."""
        seeds = [self.spec.seed + index for index in range(self.spec.batch_size)]
        return self._timed(self._noise(seeds, keep_hash=False), 0, stages=True)

    def _noise(self, seeds: list[int], *, keep_hash: bool = True) -> "torch.Tensor":
        factor = self.pipe.vae_scale_factor
        noise = initial_latents(
            seeds,
            self.pipe.unet.config.in_channels,
            _required(self.spec.height) // factor,
            _required(self.spec.width) // factor,
        )
        if keep_hash:
            self.latents_sha256 += [hashlib.sha256(one.numpy().tobytes()).hexdigest() for one in noise]
        return noise.to(self.context.device.kind, self.pipe.unet.dtype)

    def _timed(self, noise: "torch.Tensor", number: int, *, stages: bool) -> Batch:
        import torch

        end_to_end = RegionClock(self.context.device, stages=False)
        region = RegionClock(self.context.device, stages=stages)
        with torch.no_grad():
            end_to_end.start()
            embeddings = self._encode(len(noise))
            text_encoder_s = end_to_end.stop()
            region.start()
            latents = self._denoise(noise, embeddings, number)
            region.mark("denoising_s")
            pixels = self.pipe.vae.decode(latents / self.pipe.vae.config.scaling_factor, return_dict=False)[0]
            region.mark("vae_s")
            denoise_vae_s = region.stop()
            self._check_finite(pixels)
            images = self.pipe.image_processor.postprocess(pixels, output_type="pil")
            end_to_end_s = end_to_end.stop()
        # The text encoder lies between two edges that wait anyway, so its time is always exact.
        times = {"text_encoder_s": text_encoder_s, **region.stage_seconds()}
        return Batch(images=images, end_to_end_s=end_to_end_s, denoise_vae_s=denoise_vae_s, stages=times)

    def _encode(self, count: int) -> "tuple[torch.Tensor, torch.Tensor | None]":
        return self.pipe.encode_prompt(  # type: ignore[no-any-return]
            self.spec.prompt,
            self.context.device.kind,
            count,
            self._guided(),
            self.spec.negative_prompt or None,
        )

    def _denoise(
        self, noise: "torch.Tensor", embeddings: "tuple[torch.Tensor, torch.Tensor | None]", number: int
    ) -> "torch.Tensor":
        options: dict[str, Any] = {"batch_size": len(noise)} if self.context.device.kind == "hpu" else {}
        latents: torch.Tensor = self.pipe(
            prompt_embeds=embeddings[0],
            negative_prompt_embeds=embeddings[1] if self._guided() else None,
            latents=noise,
            num_inference_steps=self.spec.steps,
            guidance_scale=self.spec.guidance,
            height=self.spec.height,
            width=self.spec.width,
            output_type="latent",
            callback_on_step_end=lambda pipe, step, timestep, values: self._step_ended(step, values, number),
            callback_on_step_end_tensor_inputs=["latents"],
            **options,
        ).images
        return latents

    def _step_ended(self, step: int, values: "dict[str, torch.Tensor]", number: int) -> "dict[str, torch.Tensor]":
        self.context.check_cancelled()
        steps = len(self.pipe.scheduler.timesteps)
        self.context.progress(
            "denoise",
            step=step + 1,
            steps=steps,
            batch=number,
            batches=self.spec.images // self.spec.batch_size,
            image=number * self.spec.batch_size,
            images=self.spec.images,
        )
        if step + 1 < steps:
            self.preview.write(values["latents"])
        # An empty answer changes nothing. optimum-habana hands out the initial noise here and would take it back.
        return {}

    def _guided(self) -> bool:
        return (self.spec.guidance or 1.0) > 1.0

    def _check_finite(self, pixels: "torch.Tensor") -> None:
        import torch

        # aminmax reads every pixel once, inside the end-to-end clock: some microseconds, and no broken image passes.
        if not torch.isfinite(torch.stack(torch.aminmax(pixels))).all():
            raise WorkloadFailed("output-not-finite", stage="the VAE's output")

    def _prompt_is_longer_than_the_encoder(self) -> bool:
        tokenizer = self.pipe.tokenizer
        ids = tokenizer(self.spec.prompt, truncation=False, verbose=False).input_ids
        return bool(len(ids) > tokenizer.model_max_length)

    def _save(self, image: "Image", index: int, seed: int, made: Batch) -> None:
        spec = self.spec
        device = self.context.device.info()
        text = parameters_text(
            prompt=spec.prompt,
            negative_prompt=spec.negative_prompt,
            steps=_required(spec.steps),
            scheduler=spec.scheduler,
            guidance=spec.guidance or 1.0,
            seed=seed,
            width_px=image.width,
            height_px=image.height,
            model=spec.weights,
            extra={
                "Precision": self.precision,
                "Device": device.name,
                "Time": f"{made.end_to_end_s:.3f} s for {spec.batch_size}",
                "Software": environment.software(LIBRARIES),
                "Version": "LikeForLike",
            },
        )
        details = {"run_id": self.context.run_dir.run_id, "index": index, "latents_sha256": self.latents_sha256[index]}
        save_png(image, self.context.run_dir.images_dir / f"{index:03d}.png", text, details)


def _required(value: int | None) -> int:
    if value is None:
        raise ValueError("the specification was not resolved")
    return value


def _cache_key(spec: TextToImageSpec, context: RunContext, precision: str) -> str:
    # A folder that was trained further in place is another model, so its files' times are part of the key.
    folder = Path(spec.weights).expanduser() if weights_kind(spec.weights) == "folder" else None
    times = [] if folder is None else sorted(path.stat().st_mtime_ns for path in folder.glob("*/*"))
    return f"{context.device.kind} {precision} {spec.weights} {times}"


def _make_room(spec: TextToImageSpec, context: RunContext, precision: str) -> None:
    """Checks that the run fits; another model that is still loaded makes way for it."""
    loaded = _cache_key(spec, context, precision) in context.models
    try:
        check_text_to_image(spec, context.device, precision, already_loaded=loaded)
    except DoesNotFit:
        if loaded or not context.models:
            raise
        _forget_models(context)
        check_text_to_image(spec, context.device, precision, already_loaded=False)


def _forget_models(context: RunContext) -> None:
    context.models.clear()
    # The modules of a pipeline refer to one another: only the cycle collector frees them.
    gc.collect()
    context.device.empty_cache()


def _load(spec: TextToImageSpec, context: RunContext, precision: str) -> LoadedPipeline:
    """The pipeline from the worker's memory, or loaded now in place of the one that was there."""
    key = _cache_key(spec, context, precision)
    if key not in context.models:
        _forget_models(context)
        context.models[key] = load_pipeline(
            spec.weights, context.device, precision, lambda phase, done, total: _loading(context, phase, done, total)
        )
    loaded: LoadedPipeline = context.models[key]
    return loaded


def _loading(context: RunContext, phase: str, done_bytes: int, total_bytes: int) -> None:
    context.check_cancelled()
    context.progress(phase, step=done_bytes, steps=total_bytes)


def _warnings(
    spec: TextToImageSpec, context: RunContext, already_loaded: bool, pacing: Pacing, generation: Generation
) -> list[str]:
    """Ids of messages in `runners.messages`."""
    found = []
    if not already_loaded and spec.warmup_batches == 0:
        found.append("first-call-included")
    if len(pacing.measured) < MINIMUM_FOR_INTERVAL:
        found.append("too-few-samples")
    found += [*pacing.remarks(), *remarks(pacing.measured)]
    if generation.prompt_truncated:
        found.append("prompt-truncated")
    if context.device.marks_wait and spec.previews:
        found.append("stage-times-not-taken")
    if generation.preview.enabled:
        found.append("previews-in-timed-region")
    return found

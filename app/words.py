"""The words that the app shows for names that records, specifications and verdicts use."""

from app.i18n import N_, _

WORKLOADS = {
    "text-to-image": N_("Image generation"),
    "bert-pretraining": N_("BERT pretraining"),
    "t5-finetuning": N_("T5-3B fine-tuning"),
    "calibration": N_("Calibration"),
    "synthetic": N_("Dry run"),
}

STATUSES = {
    "ok": N_("Finished"),
    "failed": N_("Failed"),
    "cancelled": N_("Cancelled"),
    "timeout": N_("Timed out"),
    "lost": N_("Lost"),
    "queued": N_("Waiting"),
    "running": N_("Running"),
}

STATUS_HELP = {
    "failed": N_("The run ended with an error; its message and the end of its log are kept."),
    "cancelled": N_("Somebody stopped the run."),
    "timeout": N_("The run was stopped at its time limit."),
    "lost": N_("The run's process disappeared without leaving a result, for example in a power cut."),
}

VERDICTS = {
    "like-for-like": N_("Like for like"),
    "caveats": N_("With caveats"),
    "not-comparable": N_("Not comparable"),
    "baseline": N_("Baseline"),
}

FIELDS = {
    "prompt": N_("Prompt"),
    "negative_prompt": N_("Negative prompt"),
    "weights": N_("Model"),
    "steps": N_("Steps"),
    "guidance": N_("Guidance"),
    "seed": N_("Seed"),
    "scheduler": N_("Scheduler"),
    "width": N_("Width"),
    "height": N_("Height"),
    "images": N_("Images"),
    "batch_size": N_("Batch size"),
    "precision": N_("Precision"),
    "warmup_batches": N_("Warm-up batches"),
    "previews": N_("Previews"),
    "device": N_("Device"),
    "model": N_("Model"),
    "data": N_("Data"),
    "sequence_length": N_("Sequence length"),
    "source_length": N_("Length of a text"),
    "target_length": N_("Length of a summary"),
    "warmup_steps": N_("Warm-up steps"),
    "gradient_checkpointing": N_("Gradient checkpointing"),
    "learning_rate": N_("Learning rate"),
    "step_ms": N_("Time of a step"),
    "seconds": N_("Time for each size"),
    "fail_at_step": N_("Fail at step"),
}

METRICS = {
    "s_per_image": N_("Time per image"),
    "images_per_s": N_("Images per second"),
    "s_per_sample": N_("Time per sample"),
    "samples_per_s": N_("Samples per second"),
    "samples_per_s_per_device": N_("Samples per second and device"),
    "s_per_step": N_("Time per step"),
    "steps_per_s": N_("Steps per second"),
    "batch_latency_s": N_("Time per batch"),
    "time_to_train_s": N_("Training time"),
    "time_to_similar_loss_s": N_("Time to a similar loss"),
    "final_loss": N_("Final loss"),
    "j_per_image": N_("Energy per image"),
    "j_per_sample": N_("Energy per sample"),
    "matmul_fp32_tflops": N_("Matrix product in fp32"),
    "matmul_tf32_tflops": N_("Matrix product in tf32"),
    "matmul_fp16_tflops": N_("Matrix product in fp16"),
    "matmul_bf16_tflops": N_("Matrix product in bf16"),
}

# What one sample of a series is; the stages of a batch are among them.
SERIES = {
    "denoise_vae_s": N_("Denoising and VAE, per batch"),
    "end_to_end_s": N_("End to end, per batch"),
    "text_encoder_s": N_("Text encoder"),
    "denoising_s": N_("Denoising"),
    "vae_s": N_("VAE (image decoder)"),
    "step_s": N_("Step"),
    "loss": N_("Loss"),
    "learning_rate": N_("Learning rate"),
    "gradient_norm": N_("Gradient norm"),
}

CLOCKS = {
    "denoise+vae": N_("Denoising and VAE"),
    "end-to-end": N_("End to end"),
    "unet-loop": N_("Denoising only"),
    "training-steps": N_("Training steps"),
}

CLOCK_HELP = {
    "denoise+vae": N_(
        "From the first denoising step to the decoded image: what published Gaudi numbers time. "
        "Reading the prompt and making the file are outside."
    ),
    "end-to-end": N_("From the prompt to the finished picture: what a person waits for once the model is loaded."),
}

PHASES = {
    "load": N_("Loading the model"),
    "first-call": N_("First batch after loading"),
    "warm-up": N_("Warm-up"),
    "measured": N_("All batches"),
}

# What a run is at.
PROGRESS = {
    "download": N_("Downloading the model"),
    "load": N_("Loading the model"),
    "denoise": N_("Denoising"),
    "measured": N_("Measuring"),
}


def word(words: dict[str, str], name: str) -> str:
    """The word for a name in the reader's language; a name that has none is shown as it is."""
    return _(words[name]) if name in words else name

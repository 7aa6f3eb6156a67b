"""Every sentence that the runners say to a person, by id.

Below `app/` errors carry an id and parameters, never a finished sentence: several readers in several languages share
one process, so only the app knows the language. English is the source text and the fallback of the command line.
"""

from collections.abc import Mapping


def N_(text: str) -> str:  # noqa: N802 - gettext's customary name for "extract, do not translate yet"
    """Marks a text for extraction into the message catalogue and returns it as it is."""
    return text


MESSAGES: dict[str, str] = {
    "usage": N_("The command cannot be read: {text}. See --help."),
    "unknown-workload": N_("There is no workload named “{name}”. Nearest: {nearest}. Workloads: {known}."),
    "unknown-preset": N_("{workload} has no preset named “{name}”. Nearest: {nearest}. Presets: {known}."),
    "unknown-field": N_("{workload} has no field named “{name}”. Nearest: {nearest}. Fields: {known}."),
    "unknown-value": N_("“{value}” is not a value of {field}. Nearest: {nearest}. Values: {known}."),
    "not-field-equals-value": N_("“{text}” is not of the form FIELD=VALUE."),
    "not-a-number": N_("{field} must be a whole number, not “{value}”."),
    "not-a-decimal": N_("{field} must be a number, not “{value}”."),
    "not-a-boolean": N_("{field} must be true or false, not “{value}”."),
    "out-of-range": N_("{field} must be between {minimum} and {maximum}; {value} is outside."),
    "not-a-multiple": N_("{field} must be a multiple of {multiple}; {value} is not. Nearest: {nearest}."),
    "prompt-empty": N_("The prompt is empty. Write what the image should show."),
    "text-too-long": N_("{field} has {length} characters; at most {maximum} are taken. Shorten it."),
    "images-not-multiple": N_(
        "images ({images}) must be a multiple of batch_size ({batch_size}), so that no padding is counted as work."
    ),
    "warmup-too-long": N_(
        "warmup_batches ({warmup_batches}) leaves no batch to measure: {images} images make {batches} batches. "
        "Ask for more images or fewer warm-up batches."
    ),
    "too-few-devices": N_(
        "This run wants {wanted} devices; this machine has {here} of the kind {kind}. Set devices to {here} or less."
    ),
    "devices-ended": N_(
        "The processes of the devices ended without a result (exit status {returncode}); the log's end says why."
    ),
    "sweep-without-batch": N_("{workload} has no batch size, so there is nothing to sweep."),
    "adaptive-needs-warmup": N_(
        "stopping=adaptive needs {field} of {minimum} or more, since 10 samples without a trend end the warm-up; "
        "{field} is {value}."
    ),
    "spec-unreadable": N_("The specification {path} cannot be read: {reason}."),
    "spec-too-large": N_("The specification {path} has {size_bytes} bytes; at most {maximum_bytes} are read."),
    "record-unreadable": N_(
        "The record {path} cannot be read: {reason}. The run's other files are untouched; "
        "delete the record to mark the run as lost."
    ),
    "record-from-future": N_(
        "The record {path} has schema version {version}; this program reads up to {supported}. Update LikeForLike."
    ),
    "run-folder-missing": N_("There is no run folder {path}."),
    "device-unknown": N_("There is no device named “{name}”. Devices: {known}."),
    "device-unavailable": N_("The device {name} is not available on this machine: {reason}."),
    "device-busy": N_(
        "{device} is in use by {holder}. Wait until it has finished, or stop it; then start this run again."
    ),
    "precision-unsupported": N_("{device} does not run {precision}: {reason}. Use {alternatives}."),
    "does-not-fit": N_(
        "This run needs about {needed_gib} GiB (weights {weights_gib}, images of one batch {activations_gib}); "
        "{available_gib} GiB are free on {device}. Use weights=bundled, or a device with more memory."
    ),
    "does-not-fit-batch": N_(
        "This run needs about {needed_gib} GiB (weights {weights_gib}, images of one batch {activations_gib}); "
        "{available_gib} GiB are free on {device}. batch_size={fitting} fits."
    ),
    "first-call-included": N_("The first batch after loading is among the measured ones; it is often slower."),
    "impossible-not-positive": N_("Impossible: {metric} is {value}, and nothing takes no time."),
    "impossible-reciprocal": N_(
        "Impossible: {seconds:.4g} s per {what} times {rate:.4g} per second is {product:.4g} and must be 1."
    ),
    "impossible-batch": N_(
        "Impossible: {steps:.4g} steps per second with {batch} samples each are {product:.4g} samples per second, "
        "not {samples:.4g}."
    ),
    "impossible-memory": N_("Impossible: {used_gib:.1f} GiB were used of a device that has {available_gib:.1f}."),
    "impossible-flops": N_(
        "Impossible: {rate:.4g} samples per second on {devices} devices at {gflop:.4g} GFLOP each are {tflops:.4g} "
        "TFLOP/s per device; its peak is {peak:.4g}."
    ),
    "impossible-bandwidth": N_(
        "Impossible: a batch in {batch_s:.4g} s reads at least {gigabytes:.4g} GB of weights, that is {reached:.4g} "
        "GB/s; the device's memory gives {bandwidth:.4g}."
    ),
    "impossible-energy": N_(
        "Impossible: {joules:.4g} J in {seconds:.4g} s are {mean_w:.4g} W for each of {devices} devices, which draw "
        "{idle_w:.4g} W when idle."
    ),
    "impossible-power": N_(
        "Impossible: {joules:.4g} J in {seconds:.4g} s are {mean_w:.4g} W for each of {devices} devices, which may "
        "draw {limit_w:.4g} W."
    ),
    "impossible-scaling": N_(
        "Impossible without a reason: {value:.4g} {unit} on {devices} devices are {share:.3g} times {devices} times "
        "the {one:.4g} of one ({other})."
    ),
    "impossible-copy": N_(
        "Impossible: {value} {unit} is to the last digit the value of another device, {other_device} ({other})."
    ),
    "energy-no-library": N_("Energy is not available: there is no counter of {device} that LikeForLike can read."),
    "energy-no-rapl": N_("Energy is not available: this machine shows no RAPL counter in {path}."),
    "energy-rapl-forbidden": N_(
        "Energy is not available: only the administrator may read {path}. To allow it: sudo chmod a+r {path}"
    ),
    "energy-no-package": N_(
        "Energy is not available: the Python package {package}, which reads the counter of {device}, is not installed."
    ),
    "energy-device-unknown": N_(
        "Energy is not available: {counter} shows several devices, and which of them is device {index} is not certain."
    ),
    "energy-failed": N_("Energy is not available: {counter} answered: {reason}"),
    "energy-several-devices": N_("Energy is not available: of runs on several devices it is not added up yet."),
    "energy-too-short": N_(
        "Energy is not available: the measured part took {seconds:.2g} s, and counters need at least {shortest} s."
    ),
    "calibration-empty": N_("In {seconds} s for each size nothing could be measured; give it more time."),
    "sync-missing": N_("The host did not wait for the device: what was timed is how fast work was queued."),
    "throttled": N_("The processor was throttled by heat during the run."),
    "swapped": N_("Memory was swapped to disk during the run."),
    "background-heavy": N_("Other processes used more than a quarter of this machine's cores during the run."),
    "background-much": N_("Other processes used more than a tenth of this machine's cores during the run."),
    "background-some": N_("Other processes used more than 3 % of this machine's cores during the run."),
    "memory-pressure": N_("Processes had to wait for memory in more than 1 % of the run."),
    "interval-wide": N_("The 95 % interval is wider than 2 % to either side."),
    "throttling-not-readable": N_("Whether the processor was throttled cannot be read on this system."),
    "background-not-readable": N_("What else used this machine's cores cannot be read on this system."),
    "not-steady": N_("The times still rose or fell by 3 % or more while they were measured."),
    "level-shift": N_(
        "The times changed to another level in the middle of the measurement and stayed there: throttling, or other "
        "work on this machine."
    ),
    "two-modes": N_("The times fall into two groups; their mean describes neither."),
    "spikes": N_("Single slow samples took more than 1 % of the time."),
    "not-warm": N_("The warm-up ended at its limit while the times still showed a trend."),
    "target-not-reached": N_("Measuring ended at its limit before the mean was known to 2 %."),
    "too-few-samples": N_("Fewer than 6 measured batches: no interval can be given."),
    "prompt-truncated": N_("The prompt is longer than the text encoder reads; its end had no effect."),
    "stage-times-not-taken": N_(
        "Stage times would have made this device wait inside the timed region; none are given."
    ),
    "previews-in-timed-region": N_("Previews were written while the clock ran; switch them off to measure."),
    "weights-missing": N_(
        "There is no folder {path}. Give bundled, architecture, a folder that holds model_index.json, or a hub id."
    ),
    "weights-empty": N_("The weights folder {path} is empty. Choose the folder that holds model_index.json."),
    "weights-not-a-pipeline": N_(
        "{path} is not a Stable Diffusion pipeline folder: {reason}. Choose the folder that holds model_index.json."
    ),
    "weights-pickled": N_(
        "{path} has only pickled weights ({files}), which can run code when they are loaded. "
        "Convert them to safetensors, or download the safetensors version."
    ),
    "weights-not-finite": N_(
        "The weights in {path} contain values that are not finite (NaN or infinity), first in {tensor}. "
        "The file is damaged or was saved by a failed training; download it again or choose other weights."
    ),
    "weights-damaged": N_("The weights in {path} cannot be loaded: {reason}. Download them again or choose others."),
    "hub-unreachable": N_(
        "{model} could not be fetched from the hub: {reason}. Check the network, or give a local pipeline folder, "
        "or use weights=architecture (same arithmetic, no download) or weights=bundled."
    ),
    "output-not-finite": N_(
        "The model produced values that are not finite at {stage}; the image would be black or noise. "
        "Try precision=fp32, or other weights."
    ),
    "runs-dir-unwritable": N_(
        "The folder {path} cannot be written: {reason}. Results could not be kept. Give another folder "
        "(LIKEFORLIKE_VAR, or --runs-dir in a shell), or change its permissions."
    ),
    "timeout": N_("The run was stopped after its time limit of {timeout_s} s."),
    "cancelled": N_("The run was cancelled."),
    "lost": N_(
        "The run's process and whatever started it were ended from outside, by a kill, a crash or a restart of the "
        "machine. Start it again."
    ),
    "not-text": N_("{field} contains characters that are not valid text (half of a surrogate pair or raw bytes)."),
    "leases-unusable": N_("The folder of device locks {path} cannot be used: {reason}. Set LIKEFORLIKE_LEASES."),
    "child-died": N_("The run's process ended without a result ({how}). The end of its log is kept with the record."),
    "out-of-memory": N_("Memory ran out on {device} at batch size {batch_size}. Use a smaller batch or resolution."),
    "png-too-large": N_("The file has {size_bytes} bytes; at most {maximum_bytes} are read."),
    "png-not-a-png": N_(
        "This is no PNG file. Settings are kept in PNG files only; a copy in another format has lost them."
    ),
    "png-damaged": N_("The PNG file is damaged ({reason}). Take the original file, not a preview or a screenshot."),
    "png-without-settings": N_(
        "The file says nothing about how its image was made (texts in it: {found}). Programs and web sites that change "
        "an image remove its settings; take the file as it was first saved."
    ),
    "training-does-not-fit": N_(
        "{parameters:,} parameters need {state_gib} GiB for weights, gradients and Adam's moments, before "
        "{activations_gib} GiB of activations; {device} has {available_gib} GiB. "
        "The largest that fits here: model={smaller}."
    ),
    "training-does-not-fit-batch": N_(
        "{state_gib} GiB for weights, gradients and Adam's moments of {parameters:,} parameters and "
        "{activations_gib} GiB of activations exceed the {available_gib} GiB of {device}. "
        "batch_size={fitting} fits."
    ),
    "loss-not-finite": N_("The loss is not finite from step {step} on. Lower learning_rate, or use precision=fp32."),
    "first-step-included": N_("The first step is among the measured ones; it is often slower."),
    "trainer-disagrees": N_(
        "The trainer's own samples per second differ by more than 2 % from ours over the same steps; both are kept."
    ),
    "data-no-folder": N_("There is no folder {path}. Give synthetic, or a folder of .txt, .jsonl or .parquet files."),
    "data-no-files": N_("The folder {path} has no file that is read here ({known})."),
    "data-too-little": N_(
        "The texts in {path} are too short: {needed} tokens are needed at least, {found} were found."
    ),
    "data-not-text": N_("{path}, line {line} is not UTF-8 text. Save the file as UTF-8, or give another."),
    "data-not-json": N_("{path}, line {line} is no JSON object: {reason}."),
    "data-no-field": N_("{path}, line {line} has no text in the field “{field}”. Fields there: {known}."),
    "data-not-parquet": N_("{path} cannot be read as Parquet: {reason}."),
    "disk-full": N_(
        "The disk is full ({path}). Free some space, then start the run again; what it had made so far is kept."
    ),
    "not-starting": N_("The run's process did not begin within {timeout_s} s. It was stopped; see the end of its log."),
    "no-record": N_("The run ended without a result. Its folder was changed meanwhile, or the disk was full."),
    "dispatcher-ended": N_("The dispatcher was asked to end while this run went on. Start it again."),
    "not-waiting": N_("The run {run_id} does not wait in the queue any more."),
    "queue-busy": N_("{count} runs are before this one. Leave --no-wait out to wait in line."),
    "unexpected": N_("{type}: {text}"),
    "worker-not-answering": N_("The generation worker did not answer within {timeout_s} s. It was stopped; try again."),
    "worker-died": N_("The generation worker stopped ({how}). It is started again with the next image."),
    "worker-protocol": N_("The generation worker speaks another protocol version ({theirs}, not {ours}). Restart it."),
    "synthetic-failure": N_("The synthetic run failed at step {step}, as it was asked to."),
}


def render(message_id: str, params: Mapping[str, object]) -> str:
    """The English sentence of a message.

    Args:
        message_id: A key of `MESSAGES`; an unknown one (from a newer record) is shown with its parameters.
        params: The values for the placeholders.
    """
    template = MESSAGES.get(message_id)
    if template is None:
        return f"{message_id}: {dict(params)}"
    try:
        return template.format(**params)
    except (KeyError, IndexError, ValueError):
        # A record written by another version may lack a parameter: show what there is, not a traceback.
        return f"{template} {dict(params)}"

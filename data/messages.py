"""Every sentence that the data layer says to a person, by id.

Verdicts, errors and notices carry an id and parameters, never a finished sentence: the app passes its own `translate`
to `render`. English is the source text and what the command line prints.
"""

from collections.abc import Callable, Mapping

from runners import messages as runners_messages
from runners.messages import N_

MESSAGES: dict[str, str] = {
    # The verdict as a whole.
    "verdict-like-for-like": N_("Like for like: {label_a} is {ratio:.2f} times as fast as {label_b}."),
    "verdict-caveats": N_("With caveats: {label_a} is {ratio:.2f} times as fast as {label_b}."),
    "verdict-no-ratio": N_(
        "{label_a} and {label_b} can be set side by side; this is not a speed, so there is no ratio."
    ),
    "verdict-not-comparable": N_("Not comparable: no speed-up can be stated between {label_a} and {label_b}."),
    # What differs.
    "differs-workload": N_("These are different tasks: {value_a} and {value_b}."),
    "differs-metric": N_("These are different quantities: {metric_a} and {metric_b}."),
    "differs-model": N_("{label_a} ran the model {value_a}, {label_b} the model {value_b}."),
    "differs-resolution": N_("{label_a} ran at {value_a} pixels, {label_b} at {value_b}: another resolution."),
    "differs-sequence": N_("The {field} is {value_a} for {label_a} and {value_b} for {label_b}."),
    "differs-steps": N_("Number of steps: {label_a} {value_a}, {label_b} {value_b}."),
    "differs-steps-similar-loss": N_(
        "{label_a} took {value_a} training steps, {label_b} {value_b}: this is the time to a similar loss, "
        "on a different number of samples, and not the speed of the hardware."
    ),
    "differs-batch": N_(
        "{label_a} worked in batches of {value_a}, {label_b} in batches of {value_b}: "
        "a larger batch uses a device better."
    ),
    "differs-devices": N_(
        "{label_a} used {value_a} devices, {label_b} {value_b}. The ratio is per device; "
        "more devices also pay for exchanging gradients."
    ),
    "differs-devices-unscaled": N_(
        "{label_a} used {value_a} devices, {label_b} {value_b}. The times are compared as they are, without scaling."
    ),
    "differs-precision": N_("{label_a} computed in {value_a}, {label_b} in {value_b}."),
    "differs-timed-region": N_("The clock covered {value_a} for {label_a} and {value_b} for {label_b}."),
    "differs-guidance": N_(
        "Classifier-free guidance was {value_a} for {label_a} and {value_b} for {label_b}: "
        "it doubles the work of a step."
    ),
    "differs-field": N_("{field}: {value_a} for {label_a}, {value_b} for {label_b}."),
    "differs-year": N_("The software is of {value_a} for {label_a} and of {value_b} for {label_b}."),
    # What is not known.
    "not-published": N_("The {field} of {label} is not published."),
    "not-published-both": N_("The {field} is not published for either; that it was equal is not known."),
    "assumed": N_(
        "For {label} the source does not state: {fields}. The values are reconstructed from the scripts used."
    ),
    "assumed-alike": N_(
        "The source does not state: {fields}. For both sides the values are reconstructed alike, from the same source."
    ),
    "projected": N_("{label} is a projection, not a measurement."),
    "value-not-available": N_("{label} has no value: not available."),
    "value-not-usable": N_("The value of {label} ({value}) is not a usable speed."),
    "not-a-speed": N_("{metric} is not a measured speed, so no speed-up follows from it."),
    "failed-run": N_("The run of {label} did not end well ({status})."),
    # Flags of reference rows.
    "flag-provenance-a100-sd": N_(
        "The origin of A100's 2.63 s is not proven: the page that the article links prints the same value for a "
        "TITAN RTX. It is plausible for an A100 without optimised attention."
    ),
    "flag-not-remeasured": N_(
        "This value dates from the first version of 2022 and was not measured again when the Gaudi values were "
        "improved in 2023."
    ),
    "flag-reciprocal-throughput": N_(
        "The article calls this a latency; it is the time of a batch divided by the batch size, that is 1 / throughput."
    ),
    "flag-total-over-devices": N_("The published value is the sum over all devices."),
    "match-no-workload": N_("LikeForLike does not run {workload}."),
    "match-no-model": N_("LikeForLike does not run the model of this number, {model}."),
    "match-devices": N_("It ran on {devices} devices; here it runs on one, and is compared per device."),
    "match-precision": N_("{device} does not run {precision} here: {substitute} is used, which is slower."),
    "match-mixed": N_("It ran in {precision}; here everything is in {substitute}."),
    "match-scheduler": N_("The scheduler {scheduler} is not offered: DDIM is used, which costs the same per step."),
    "match-weights": N_("The weights are random (no download, the same arithmetic); the images mean nothing."),
    "match-not-published": N_("The {field} is not published; this machine's own is used."),
    "flag-copied-placeholder": N_(
        "This value is the same to the last digit as that of another device: a placeholder, not a measurement."
    ),
    "flag-threshold": N_(
        "The value is the threshold of a regression test, which a run may miss by 5 %, not a best run."
    ),
    "flag-secondary-source": N_("The value was read where others repeat it, not at its origin."),
    "flag-crowd-sourced": N_("The value was sent in by a user and was not checked by anyone."),
    "flag-computed-from-log": N_("The time was computed from the published logs of the runs."),
    "flag-vendor-measured": N_("The vendor measured it outside of an official round."),
    "flag-total-inferred": N_(
        "That the value is the sum over 8 devices is not stated; the public run log and the arithmetic show it."
    ),
    "flag-time-to-similar-loss": N_(
        "This is the time to a similar loss, read off the loss curve (rounded to minutes), not the time of a fixed job."
    ),
    "flag-tf32-not-stated": N_(
        "Whether TF32 was allowed on A100 is not stated. It was most likely off (the default), which makes this A100 "
        "value a very conservative baseline."
    ),
    "flag-padding-unknown": N_(
        "Gaudi pads each sample to the full length; whether the A100 run did the same is not published."
    ),
    "flag-does-not-fit": N_(
        "The model does not fit into the memory of this device, so there is no value (never zero)."
    ),
    "flag-printed-ratio": N_("This ratio is printed in the article; it is a claim and not a measurement."),
    "flag-recomputes-otherwise": N_("The printed 5.75 recomputes to 5.73 from the printed times."),
    "flag-mixes-fewer-samples": N_(
        "The factor mixes faster hardware (3.53) with training on 1.625 times fewer samples."
    ),
    "flag-unequal-batch": N_("The two values behind this ratio were taken at different batch sizes."),
    "flag-other-model-claim": N_(
        "This claim of the vendor is for BERT-large with sequences of 128, not for the article's BERT-base with 512; "
        "the article's own ratio is 1.70."
    ),
    "flag-rounded-headline": N_("The headline is rounded: the article's own ratios are 1.61, 1.70, 2.44 and 2.84."),
    "flag-baseline-differs": N_(
        "The baseline of this table is A100; the article's other tables use first-generation Gaudi."
    ),
    # The store.
    "runs-dir-unreadable": N_(
        "The run folders {path} cannot be listed: {reason}. Give another folder with --runs-dir or LIKEFORLIKE_VAR."
    ),
    "store-damaged": N_(
        "The database {path} failed: {reason}. No run is lost; `python -m data rebuild` makes it anew."
    ),
    "store-busy": N_(
        "The database {path} is open in another process (PID {pid}). Use that one, or stop it and try again."
    ),
    "store-unwritable": N_("The database {path} cannot be opened: {reason}. Give another file with --db."),
    "store-foreign": N_("{path} is not a database of LikeForLike; it was left as it is. Give another file with --db."),
    "store-rebuilt-missing": N_("There was no database at {path}; it was made anew from the run folders."),
    "store-rebuilt-broken": N_(
        "The database {path} could not be read. It was moved to {moved} and made anew from the run folders; "
        "no run is lost."
    ),
    "store-rebuilt-version": N_("The database {path} was of another version and was made anew from the run folders."),
    # The catalogue.
    "catalogue-invalid": N_("The reference catalogue has {count} bad rows. First: {first}"),
    "catalogue-row": N_("{file}, line {line}: {reason}."),
    "unknown-measurement": N_("There is no run and no reference with the id “{id}”. Nearest: {nearest}."),
    "no-measurement": N_("The run {id} has no metric that can be compared."),
    # Queries.
    "query-empty": N_("The query is empty. Write one SELECT statement."),
    "query-not-text": N_("The query is not UTF-8 text: character {position} is not valid."),
    "query-failed-oddly": N_("The query's process ended without an answer ({how}): {reason}"),
    "query-one-statement": N_("The query has {count} statements; write exactly one."),
    "query-only-select": N_("Only SELECT is allowed here, not {kind}. The copy that is queried cannot be changed."),
    "query-failed": N_("The query failed: {reason}"),
    "query-timeout": N_("The query was stopped after {limit_s} s. Ask for less, for example with WHERE or LIMIT."),
    "query-too-large": N_("The result is larger than {limit_mib} MiB. Ask for less, for example with LIMIT."),
    "query-died": N_("The query's process was stopped ({how}), most likely for using too much memory. Ask for less."),
    "output-failed": N_("The result could not be written: {reason}."),
    "query-too-long": N_("The query has {length} characters; at most {maximum} are taken."),
}

FIELD_NAMES: dict[str, str] = {
    "workload": N_("task"),
    "metric": N_("quantity"),
    "value": N_("value"),
    "origin": N_("origin"),
    "status": N_("status"),
    "flag": N_("remark on the source"),
    "measurement": N_("how it was measured"),
    "assumed": N_("reconstructed conditions"),
    "model": N_("model"),
    "weights": N_("weights"),
    "resolution": N_("resolution"),
    "sequence_length": N_("sequence length"),
    "target_length": N_("target length"),
    "steps": N_("number of steps"),
    "epochs": N_("number of epochs"),
    "scheduler": N_("scheduler"),
    "guidance": N_("guidance"),
    "batch_size_per_device": N_("batch size per device"),
    "devices": N_("number of devices"),
    "precision": N_("precision"),
    "tf32": N_("TF32 setting"),
    "timed_region": N_("timed region"),
    "warmup_rule": N_("warm-up rule"),
    "gradient_checkpointing": N_("gradient checkpointing"),
    "optimizer": N_("optimizer"),
    "learning_rate": N_("learning rate"),
    "mode": N_("execution mode"),
    "software": N_("software"),
    "software_year": N_("year of the software"),
}


METRIC_NAMES: dict[str, str] = {
    "images_per_s": N_("images per second"),
    "images_per_s_per_device": N_("images per second and device"),
    "s_per_image": N_("seconds per image"),
    "samples_per_s": N_("samples per second"),
    "samples_per_s_per_device": N_("samples per second and device"),
    "s_per_sample": N_("seconds per sample"),
    "steps_per_s": N_("steps per second"),
    "steps_per_s_per_device": N_("steps per second and device"),
    "s_per_step": N_("seconds per step"),
    "batch_latency_s": N_("seconds per batch"),
    "time_to_train_s": N_("time to train"),
    "projected_time_to_train_s": N_("projected time to train"),
    "time_to_similar_loss_s": N_("time to similar loss"),
    "final_loss": N_("final loss"),
    "printed_speedup": N_("printed speed-up"),
    "device_memory_gb": N_("device memory"),
    "devices_per_server": N_("devices per server"),
}
"""Metrics as words; one that is not listed is shown by its own name."""


def _same(text: str) -> str:
    return text


def render(message_id: str, params: Mapping[str, object], translate: Callable[[str], str] = _same) -> str:
    """The sentence of a message.

    Args:
        message_id: A key of `MESSAGES`, or of the runners'; an unknown one (of a newer version) is shown as it is.
        params: The values for the placeholders. `field`, `fields` and `metric` hold ids and are shown by their names.
        translate: gettext of the reader; the default gives English.
    """
    template = MESSAGES.get(message_id) or runners_messages.MESSAGES.get(message_id)
    if template is None:
        return f"{message_id}: {dict(params)}"
    words: dict[str, object] = dict(params)
    if isinstance(field := words.get("field"), str):
        words["field"] = translate(FIELD_NAMES.get(field, field))
    for key in ("metric", "metric_a", "metric_b"):
        if isinstance(metric := words.get(key), str):
            words[key] = translate(METRIC_NAMES.get(metric, metric))
    if isinstance(fields := words.get("fields"), list | tuple):
        words["fields"] = ", ".join(translate(FIELD_NAMES.get(str(item), str(item))) for item in fields)
    try:
        return translate(template).format(**words)
    except (KeyError, IndexError, ValueError):
        # Written by another version: show what there is, not a traceback.
        return f"{template} {dict(params)}"

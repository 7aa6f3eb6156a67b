"""Every sentence that the data layer says to a person, by id.

Verdicts, errors and notices carry an id and parameters, never a finished sentence: the app passes its own `translate`
to `render`. English is the source text and what the command line prints.
"""

from collections.abc import Callable, Mapping

from data.catalogue_messages import CATALOGUE_MESSAGES
from data.import_messages import IMPORT_MESSAGES
from data.verdict_messages import VERDICT_MESSAGES
from runners import messages as runners_messages
from runners.messages import N_

MESSAGES: dict[str, str] = {
    **VERDICT_MESSAGES,
    **CATALOGUE_MESSAGES,
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
    "query-memory": N_("The query was stopped: it took more than {limit_mib} MiB of memory. Ask for less."),
    "output-failed": N_("The result could not be written: {reason}."),
    "query-too-long": N_("The query has {length} characters; at most {maximum} are taken."),
    **IMPORT_MESSAGES,
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
    "j_per_image": N_("joules per image"),
    "j_per_sample": N_("joules per sample"),
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

"""What is said about files that are taken in or handed out; a part of `data.messages.MESSAGES`."""

from runners.messages import N_

IMPORT_MESSAGES: dict[str, str] = {
    # Files that are not read.
    "import-not-a-file": N_("{file} is missing, or is not a file."),
    "import-unreadable": N_("{file} cannot be read: {reason}."),
    "import-empty": N_("{file} is empty."),
    "import-binary": N_(
        "{file} is neither text nor one of the binary formats that are read here (bundles, TensorBoard events, PNG)."
    ),
    "import-not-text": N_("{file}, line {line}: the bytes there are not {encoding} text. Save the file as UTF-8."),
    "import-line-too-long": N_("{file}, line {line} is longer than any line of these formats; the file is damaged."),
    "import-not-json": N_(
        "{file} is not whole JSON: {reason} at line {line}, column {column}. It may have been cut short."
    ),
    "import-too-large": N_("{file} has {size_mib} MiB; JSON files of up to {limit_mib} MiB are read."),
    "import-unknown-format": N_(
        "{file} has none of the formats that are read here: LikeForLike bundles, results of transformers' Trainer, "
        "TensorBoard events, optimum-benchmark, optimum-habana baselines, MLPerf logs, codecarbon, diffusers "
        "benchmarks, PNGs of Stable Diffusion web interfaces."
    ),
    "import-unknown-json": N_("{file} is JSON, but not of a kind that is read here. Which program wrote it?"),
    "import-bare-record": N_(
        "{file} is a record of LikeForLike without the rest of its folder. Export the run as a bundle and import that."
    ),
    "import-loadgen-detail": N_(
        "{file} is LoadGen's detailed log. Give the mlperf_log_summary.txt that lies beside it."
    ),
    "import-companion-alone": N_(
        "{file} describes a system and holds no result. Give it together with its mlperf_log_summary.txt."
    ),
    "import-companion-ambiguous": N_(
        "{file} is a second system description. Give each mlperf_log_summary.txt with its own, one at a time."
    ),
    "import-mlperf-accuracy": N_("{file} is of the mode {mode}, which measures no speed. Give the performance run's."),
    # Files that break somewhere.
    "import-cut-short": N_("{file} is cut short: {missing} is missing."),
    "import-odd": N_("{file}: {what} is not as the program that writes such files writes it."),
    "import-unit": N_("{file}: {what} is in “{unit}”, which is not a unit expected there."),
    "import-no-numbers": N_("{file} holds no measurement that can be used."),
    "import-implausible": N_("{file}: {what} is {value}, which cannot be true. Is it in another unit?"),
    "import-rates-disagree": N_(
        "{file}: two of its rates contradict each other ({samples} and {steps}). One of them has another unit."
    ),
    "import-energy-disagrees": N_("{file}, line {line}: the total energy is not the sum of its parts."),
    "import-row-cells": N_("{file}, line {line}: {cells} cells where the header has {columns} columns."),
    "import-row-empty": N_("{file}, line {line}: duration or energy is missing or zero."),
    "import-cell": N_("{file}, line {line}: {what} is “{value}”, which cannot be used."),
    "import-line-damaged": N_("{file}, line {line}: this log line is damaged or cut short."),
    "import-event-damaged": N_(
        "{file}: event {event} is damaged or cut short (its checksum does not fit). Nothing was taken in."
    ),
    "import-too-many-samples": N_(
        "{file} has {count} values of one quantity; at most {maximum} are taken. Log less often, or thin it out."
    ),
    "import-too-many-runs": N_("{file} holds {count} runs; at most {maximum} are taken from one file. Split it."),
    "import-too-many-lines": N_("{file} has more than {maximum} lines, which no such summary has."),
    "import-too-many-tags": N_("{file} has more than {maximum} tags. Which of them matter?"),
    "import-repeated-run": N_("{file} holds the same run twice ({title}). Remove one."),
    "import-unfinished-here": N_("The run {run_id} is here already and has not ended. Wait for it, then import again."),
    "import-unwritable": N_("The folder {path} cannot be written: {reason}."),
    "import-png": N_("{file} cannot be taken in. {reason}"),
    # Answers.
    "import-asked": N_(
        "{file} does not say: {names}. Add each with --set NAME=VALUE; if nobody knows, give “not published”."
    ),
    "import-answer-name": N_("“{name}” is nothing that can be set. Nearest: {nearest}. Fields: {known}."),
    "import-answer-value": N_("“{value}” is not a value of {field}. Nearest: {nearest}. Values: {known}."),
    "import-answer-number": N_("{field} has to be a positive number, not “{value}”."),
    "import-answer-time": N_("“{value}” is not a date. Write it as 2026-11-30 or 2026-11-30T12:00:00Z."),
    "import-answer-long": N_("{field} may have {maximum} characters."),
    "import-answer-conflict": N_(
        "{file} says that the {field} is “{said}”; “{answered}” was given. Only what a file does not say can be set."
    ),
    "import-batch-disagrees": N_(
        "{file} shows {total} samples in each step over all devices; batch size {batch} on {devices} devices does not "
        "divide it."
    ),
    # Warnings of imported runs: no parameters.
    "import-no-time": N_("The file says how the image was made and not how long it took."),
    "import-not-finite": N_("The file holds values that are not finite (NaN or infinity), as training diverges to."),
    "import-step-time-from-log": N_(
        "Step times are differences of the log's clock: evaluation and saving between two entries are inside."
    ),
    "import-baseline-floor": N_("This is the value below which a test fails, not a best result."),
    "import-identical-devices": N_(
        "Another generation has the same values to the last digit: most likely a copy, and not a measurement."
    ),
    "import-mlperf-invalid": N_("LoadGen called this result invalid."),
    "import-mlperf-unfinished": N_("The run did not reach its target."),
    "import-memory-impossible": N_("The file's memory values are beyond any machine's; they were left out."),
    "import-bytes-called-mb": N_("The file gives the device's memory in bytes and calls them MB; it was converted."),
    "import-repeated-steps": N_("The file repeats the steps of earlier images, so its step times were left out."),
    "import-energy-whole-machine": N_(
        "The energy is that of the whole machine, and may be estimated where there is no counter."
    ),
    "import-local-time": N_("The file's times have no zone; they were read as UTC."),
    "import-cell-left-out": N_("A memory cell of the file was no number; it was left out."),
    # Bundles.
    "bundle-damaged": N_("{file} is a damaged zip file: {reason}. Transfer it again."),
    "bundle-foreign": N_("{file} is a zip file, but not a bundle of LikeForLike: {manifest} is missing or foreign."),
    "bundle-from-future": N_(
        "{file} is a bundle of version {version}; this program reads up to {supported}. Use a newer LikeForLike."
    ),
    "bundle-unsafe": N_(
        "{file} holds “{entry}”, which is no file of a run folder (or there twice). Bundles with such names are "
        "refused as a whole."
    ),
    "bundle-too-large": N_("{file}: {entry} unpacks to more than a bundle may hold; the whole file was refused."),
    "bundle-incomplete": N_("{file} lacks {entry}. Export it again."),
    "bundle-checksum": N_("{file}: {entry} is not what was exported (its checksum does not fit). Transfer it again."),
    "bundle-record": N_("{file}: {entry} cannot be read: {reason}."),
    "bundle-empty": N_("{file} holds no runs."),
    "bundle-conflict": N_(
        "{file} holds the run {run_id}, which is here with other content. Nothing was taken in; delete or move the one "
        "that is here if you want the other."
    ),
    # Handing out.
    "export-nothing": N_("No run matches, so there is nothing to export."),
    "export-format": N_("“{suffix}” is no format that can be written. Known: {known}."),
    "export-unwritable": N_("{path} cannot be written: {reason}."),
    "export-grade": N_("Grade {grade}"),
    "export-title": N_("Runs of LikeForLike"),
    "export-made": N_("{count} runs, written {time} UTC."),
    "export-device": N_("Device"),
    "export-metric": N_("Quantity"),
    "export-value": N_("Value"),
    "export-not-published": N_("not published"),
    "export-higher": N_("Longer is better."),
    "export-lower": N_("Shorter is better."),
    "export-more": N_("{count} more are in the table below only."),
    "export-step": N_("steps"),
    "export-shared": N_("All of them: {conditions}."),
    "export-against-first": N_("Compared with the first, {device}"),
    "export-images": N_("Images"),
    "export-interval-note": N_(
        "Values in brackets are 95 % intervals; n is the number of samples. What a source does not say is “not "
        "published”."
    ),
}

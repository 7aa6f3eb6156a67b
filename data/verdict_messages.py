"""The sentences of verdicts: what differs, what is not known, remarks on sources, fairer pairs."""

from runners.messages import N_

VERDICT_MESSAGES: dict[str, str] = {
    # The verdict as a whole.
    "verdict-like-for-like": N_("Like for like: {label_a} is {ratio:.2f} times as fast as {label_b}."),
    "verdict-caveats": N_("With caveats: {label_a} is {ratio:.2f} times as fast as {label_b}."),
    "verdict-no-ratio": N_(
        "{label_a} and {label_b} can be set side by side; this is not a speed, so there is no ratio."
    ),
    "verdict-not-comparable": N_("Not comparable: no speed-up can be stated between {label_a} and {label_b}."),
    # What differs.
    "impossible-numbers": N_("The numbers of {label} cannot be true; the run's page has the arithmetic."),
    "differs-workload": N_("These are different tasks: {value_a} and {value_b}."),
    "task-other": N_("The catalogue does not describe these tasks closely enough to say that they are the same."),
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
    "differs-batch-step": N_(
        "{label_a} worked in batches of {value_a}, {label_b} in batches of {value_b}: a step does more then."
    ),
    "differs-batch-latency": N_(
        "{label_a} worked in batches of {value_a}, {label_b} in batches of {value_b}: a larger one takes longer."
    ),
    "differs-devices": N_(
        "Number of devices: {label_a} {value_a}, {label_b} {value_b}. The ratio is per device; "
        "more devices also pay for exchanging gradients."
    ),
    "differs-devices-unscaled": N_(
        "Number of devices: {label_a} {value_a}, {label_b} {value_b}. The times are compared as they are, not scaled."
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
    "flag-superseded": N_("This value is of the article's first version and was replaced in 2023."),
    "flag-two-batch-sizes": N_("The source gives one value for batches of 4 and of 8; it is filed under 8."),
    "flag-same-value-as-a100": N_(
        "The article prints the same 2.63 s for A100 80GB; this page, which it links, prints it for a TITAN RTX."
    ),
    "flag-unit-coincidence": N_(
        "0.925 images per second: the article's later 0.925 is seconds per image, and only the digits agree."
    ),
    "flag-copied-placeholder": N_(
        "This value is the same to the last digit as that of another device: a placeholder, not a measurement."
    ),
    "flag-threshold": N_(
        "The value is the threshold of a regression test, which a run may miss by 5 %, not a best run."
    ),
    "flag-time-to-target": N_(
        "This is the time to a target quality, computed from the submitted logs, and not the time of a fixed job."
    ),
    "flag-vendor-measured": N_("The vendor measured it outside of an official round."),
    "flag-variable-length": N_(
        "Sequences are packed or sorted by length here, so that the average is shorter than the length stated."
    ),
    "flag-doubtful-throughput": N_("The throughput that this submitter logged does not fit the times of its own runs."),
    "flag-synthetic-data": N_("The data are synthetic and one device worked alone, so no gradients were exchanged."),
    "flag-crowd-sourced": N_("The value was sent in by a user and was not checked by anyone."),
    "flag-secondary-source": N_("The value was read where others repeat it, not at its origin."),
    # A fairer pair.
    "better-rate": N_(
        "At batch {batch} {label} gets through {value} {unit}, so the ratio there is {ratio:.2f}, not {instead:.2f}."
    ),
    "better-time": N_(
        "At batch {batch} {label} takes {value} {unit}, so the ratio there is {ratio:.2f}, not {instead:.2f}."
    ),
    "better-time-per-image": N_(
        "At batch {batch} {label} takes {value} s per image, so the ratio there is {ratio:.2f}, not {instead:.2f}."
    ),
    "better-both": N_(
        "At batch {batch} for both, {label_a} against {label_b} has a ratio of {ratio:.2f}, not {instead:.2f}."
    ),
    "better-pair": N_("A fairer pair is {a} and {b}; the ratio there is {ratio:.2f}, not {instead:.2f}."),
    "better-pair-first": N_("These two cannot be compared, but {a} and {b} can; the ratio there is {ratio:.2f}."),
    # A local run like a published one.
    "match-no-workload": N_("LikeForLike does not run {workload}."),
    "match-no-model": N_("LikeForLike does not run the model of this number, {model}."),
    "match-devices": N_("It ran on {devices} devices; here it runs on one, and is compared per device."),
    "match-precision": N_("{device} does not run {precision} here: {substitute} is used, which is slower."),
    "match-model-memory": N_(
        "{model} needs about {needed_gib} GiB, this device has {available_gib} GiB: {smaller} is run instead, so the "
        "speeds cannot be compared."
    ),
    "match-memory": N_(
        "Batches of {batch} need about {needed_gib} GiB, this device has {available_gib} GiB: batches of {fitting} are "
        "used, which use a device less well."
    ),
    "match-mixed": N_("It ran in {precision}; here everything is in {substitute}."),
    "match-scheduler": N_("The scheduler {scheduler} is not offered: DDIM is used, which costs the same per step."),
    "match-weights": N_("The weights are random (no download, the same arithmetic); only the speed means anything."),
    "match-not-published": N_("The {field} is not published; this machine's own is used."),
}

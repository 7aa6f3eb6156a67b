"""What one run shows wherever it is shown: its clocks, stages, standing among published numbers, errors, images."""

import statistics
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from app import charts, comparison, state
from app.components import (
    VERDICT_COLOURS,
    VERDICT_ICONS,
    error_text,
    escape,
    heading,
    reasons,
    sendable,
    verdict_badge,
    verdict_details,
)
from app.i18n import _, ngettext, translate_message
from app.words import CLOCK_HELP, CLOCKS, METRICS, SERIES, STATUSES, word
from data.comparability import Verdict, compare
from data.measurements import Measurement
from runners.calibrate import WORKLOAD as CALIBRATION
from runners.plausibility import PREFIX as IMPOSSIBLE
from runners.plausibility import params_of
from runners.records import Metric, Record
from runners.registry import WORKLOADS as REGISTRY

COMPARABLE_PRESET = "architecture"
ENERGIES = ("j_per_image", "j_per_sample")
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
TRAINING_STEPS = "training-steps"
STAGES = ("text_encoder_s", "denoising_s", "vae_s")


def clocks(record: Record) -> None:
    """Every time of the record as a figure, each with the clock it was taken by, its samples and interval."""
    if record.workload == CALIBRATION:
        return
    timed = [metric for metric in record.metrics if metric.name not in ENERGIES]
    shown = [metric for metric in timed if not metric.higher_is_better] or timed
    for name in dict.fromkeys(metric.name for metric in shown):
        st.markdown(f"**{word(METRICS, name)}**")
        with st.grid("auto", min_column_width=180):
            for metric in (item for item in shown if item.name == name):
                with st.container(border=True):
                    _figure(metric)


def headline(record: Record) -> str:
    """The one figure by which a run is named in a list, or an empty text."""
    own = comparison.charted_measurement(record)
    if own is None or own.value is None:
        return ""
    return f"{charts.format_number(own.value)} {own.unit}"


def status_word(record: Record) -> str:
    """How a run ended, in a word."""
    return word(STATUSES, record.status)


def sample_note(metric: Metric) -> str:
    """How many samples stand behind a figure, and their interval where there are enough."""
    if metric.timed_region == TRAINING_STEPS:
        note = ngettext("Mean of {count} step", "Mean of {count} steps", metric.n).format(count=metric.n)
    else:
        note = ngettext("Mean of {count} batch", "Mean of {count} batches", metric.n).format(count=metric.n)
    if metric.interval is None:
        return note + _("; an interval needs 6")
    return note + _("; 95 % interval {interval}").format(interval=charts.format_interval(*metric.interval))


def _figure(metric: Metric) -> None:
    clock = metric.timed_region
    # "Time per image" has said the second half of s/image.
    unit = "s" if metric.name.startswith("s_per_") else metric.unit
    st.metric(
        word(CLOCKS, clock) if clock else word(METRICS, metric.name),
        f"{charts.format_number(metric.value)} {unit}",
        help=word(CLOCK_HELP, clock) if clock in CLOCK_HELP else None,
    )
    st.caption(sample_note(metric))


def stage_times(record: Record) -> None:
    """How the time of a batch divides, where the stages were timed."""
    seconds: dict[str, float] = {}
    for series in record.series:
        if series.name in STAGES and series.phase in ("measured", "stage-pass") and series.values:
            seconds[word(SERIES, series.name)] = statistics.fmean(series.values)
    if not seconds:
        return
    heading(_("Where the time of a batch goes"))
    st.plotly_chart(
        charts.stages(seconds, unit="s"),
        key=f"stages-{record.run_id}",
        config=charts.CONFIG,
        alt="; ".join(f"{name}: {charts.format_number(value)} s" for name, value in seconds.items()),
    )


def standing(record: Record) -> None:
    """Where a result stands beside the published numbers of its workload, or why it cannot be compared."""
    own = comparison.charted_measurement(record)
    if own is None:
        return
    published = comparison.published(state.catalogue(), record.workload)
    verdicts = [(item, compare(own, item)) for item in published if item.value is not None]
    heading(_("Beside the published numbers"))
    comparable = [(item, verdict) for item, verdict in verdicts if verdict.ratio is not None]
    if comparable:
        st.caption(_("How many times as fast this run is. Each line opens into the reasons."))
        for item, verdict in comparable:
            _standing_line(item, verdict)
    elif verdicts:
        _not_comparable(verdicts, record.workload)


GRADE_COLOURS = {"A": "green", "B": "blue", "C": "orange", "D": "red"}


def warnings(record: Record) -> None:
    """The run's grade with its reasons, and what else the runner remarked about its own measurement."""
    if record.audit.grade in GRADE_COLOURS:
        meanings = {
            "A": _("Nothing was found that could have changed the numbers."),
            "B": _("Something small, or something that could not be checked."),
            "C": _("The numbers may be off by more than their intervals say."),
            "D": _("The numbers should not be relied on."),
        }
        label = _("Grade {grade}").format(grade=record.audit.grade)
        st.badge(
            label,
            color=GRADE_COLOURS[record.audit.grade],  # type: ignore[arg-type]
            icon=":material/grade:",
            help=meanings[record.audit.grade],
        )
        st.caption(meanings[record.audit.grade])
    for message_id in dict.fromkeys((*record.audit.reasons, *record.audit.warnings)):
        sentence = translate_message(message_id, params_of(record.audit, message_id))
        icon = ":material/report:" if message_id.startswith(IMPOSSIBLE) else ":material/info:"
        st.caption(f"{icon} {escape(sentence)}")


def error_details(record: Record) -> None:
    """Why a run did not end well, and the end of its log."""
    if record.error is None:
        return
    sentence = escape(error_text(record.error.message_id, record.error.params))
    if record.status == "cancelled":
        st.info(sentence, icon=":material/cancel:")
    else:
        st.error(sentence, icon=":material/error:")
    if record.error.log_tail:
        with st.expander(_("End of the log"), icon=":material/receipt_long:"):
            st.code(sendable(str(record.error.log_tail)), language=None, wrap_lines=True)


def image_paths(record: Record, run_path: Path) -> list[Path]:
    """The images that are really there; a path that leads out of the run's folder is passed over."""
    folder = run_path.resolve()
    names = [str(item.path) for item in record.artifacts if item.kind == "image"]
    return [folder / name for name in names if _is_image(folder, name)]


def _is_image(folder: Path, name: str) -> bool:
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder) or not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(PNG_SIGNATURE)) == PNG_SIGNATURE
    except (OSError, ValueError):
        return False  # A name that no file can have, or a file that cannot be read.


def seed_of(record: Record, index: int) -> int:
    """The seed of one of a run's images; 0 where the record says none."""
    seeds = record.details.get("seeds")
    try:
        if isinstance(seeds, list) and index < len(seeds):
            return int(seeds[index])
        return int(record.spec.get("seed", 0)) + index
    except (TypeError, ValueError, OverflowError):
        return 0


def image_alt(record: Record, index: int) -> str:
    """An image in words: what was asked for."""
    prompt = sendable(str(record.spec.get("prompt", "")))
    return _("Generated image {number}: {prompt}").format(number=index + 1, prompt=prompt)


def _standing_line(item: Measurement, verdict: Verdict) -> None:
    icon, colour = VERDICT_ICONS[verdict.level], VERDICT_COLOURS[verdict.level]
    ratio = charts.format_ratio(verdict.ratio or 0.0)
    with st.expander(f":{colour}[{icon} **{ratio}**] {escape(comparison.name(item))}"):
        verdict_details(verdict)


def _not_comparable(verdicts: Sequence[tuple[Measurement, Verdict]], workload: str) -> None:
    item, verdict = min(verdicts, key=lambda pair: len(pair[1].findings))
    forbidding = [finding for finding in verdict.findings if finding.severity == "forbid"]
    verdict_badge(verdict.level)
    st.markdown("\n".join(f"- {escape(translate_message(each.message_id, each.params))}" for each in forbidding))
    presets = REGISTRY[workload].presets if workload in REGISTRY else {}
    if COMPARABLE_PRESET in presets:
        st.caption(
            _("For a number that can be compared, take this preset: {preset}.").format(
                preset=_(presets[COMPARABLE_PRESET].title)
            )
        )
    with st.expander(_("All reasons, for {other}").format(other=comparison.name(item)), icon=":material/rule:"):
        reasons(verdict)

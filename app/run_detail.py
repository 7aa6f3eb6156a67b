"""What one run shows wherever it is shown: its clocks, stages, standing among published numbers, errors, images."""

import statistics
from collections.abc import Sequence
from pathlib import Path

import streamlit as st

from app import charts, comparison, state
from app.components import escape, verdict_badge, verdict_details, verdict_sentences
from app.i18n import _, ngettext, translate_message
from app.words import CLOCK_HELP, CLOCKS, METRICS, SERIES, word
from data.comparability import Verdict, compare
from data.measurements import Measurement
from runners.records import Metric, Record

STAGES = ("text_encoder_s", "denoising_s", "vae_s")


def clocks(record: Record) -> None:
    """Every time of the record as a figure, each with the clock it was taken by."""
    shown = [metric for metric in record.metrics if not metric.higher_is_better] or list(record.metrics)
    with st.grid("auto", min_column_width=150):
        for metric in shown:
            clock = metric.timed_region
            label = word(METRICS, metric.name)
            st.metric(
                f"{label}, {word(CLOCKS, clock)}" if clock else label,
                f"{charts.format_number(metric.value)} {metric.unit.split('/')[0] if metric.name.startswith('s_per_') else metric.unit}",
                help=word(CLOCK_HELP, clock) if clock in CLOCK_HELP else None,
                border=True,
            )
    st.caption(sample_note(shown))


def sample_note(metrics: Sequence[Metric]) -> str:
    """How many samples stand behind the figures, and their interval where there are enough."""
    if not metrics:
        return _("Nothing was measured.")
    first = metrics[0]
    note = ngettext("Mean of {count} batch.", "Mean of {count} batches.", first.n).format(count=first.n)
    if first.interval is None:
        return note + " " + _("An interval is shown from 6 on.")
    low, high = (charts.format_number(bound) for bound in first.interval)
    return note + " " + _("95 % interval: {low} to {high} {unit}.").format(low=low, high=high, unit=first.unit)


def stage_times(record: Record) -> None:
    """How the time of a batch divides, where the stages were timed."""
    seconds: dict[str, float] = {}
    for series in record.series:
        if series.name in STAGES and series.phase in ("measured", "stage-pass") and series.values:
            seconds[word(SERIES, series.name)] = statistics.fmean(series.values)
    if not seconds:
        return
    st.markdown(_("**Where the time of a batch goes**"))
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
    published = comparison.published(state.catalogue().measurements, record.workload)
    verdicts = [(item, compare(own, item)) for item in published if item.value is not None]
    st.markdown(_("**Beside the published numbers**"))
    comparable = [(item, verdict) for item, verdict in verdicts if verdict.ratio is not None]
    if comparable:
        for item, verdict in comparable:
            _standing_line(item, verdict)
    elif verdicts:
        _not_comparable(verdicts)


def warnings(record: Record) -> None:
    """What the runner remarked about its own measurement."""
    for message_id in record.audit.warnings:
        st.caption(f":material/info: {escape(translate_message(message_id, {}))}")


def error_details(record: Record) -> None:
    """Why a run did not end well, and the end of its log."""
    if record.error is None:
        return
    sentence = escape(translate_message(record.error.message_id, record.error.params))
    if record.status == "cancelled":
        st.info(sentence, icon=":material/cancel:")
    else:
        st.error(sentence, icon=":material/error:")
    if record.error.log_tail:
        with st.expander(_("End of the log"), icon=":material/receipt_long:"):
            st.code(record.error.log_tail, language=None, wrap_lines=True)


def image_paths(record: Record, run_path: Path) -> list[Path]:
    """The images that are really there; a path that leads out of the run's folder is passed over."""
    folder = run_path.resolve()
    paths = [(folder / item.path).resolve() for item in record.artifacts if item.kind == "image"]
    return [path for path in paths if path.is_relative_to(folder) and path.is_file()]


def seed_of(record: Record, index: int) -> int:
    """The seed of one of a run's images."""
    seeds = record.details.get("seeds")
    if isinstance(seeds, list) and index < len(seeds):
        return int(seeds[index])
    return int(record.spec.get("seed", 0)) + index


def image_alt(record: Record, index: int) -> str:
    """An image in words: what was asked for."""
    return _("Generated image {number}: {prompt}").format(number=index + 1, prompt=record.spec.get("prompt", ""))


def _standing_line(item: Measurement, verdict: Verdict) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        verdict_badge(verdict.level)
        st.markdown(
            f"**{charts.format_ratio(verdict.ratio or 0.0)}** · {escape(comparison.name(item))}", width="content"
        )
    with st.expander(_("Why this verdict"), icon=":material/rule:"):
        verdict_details(verdict)


def _not_comparable(verdicts: Sequence[tuple[Measurement, Verdict]]) -> None:
    item, verdict = verdicts[0]
    forbidding = [finding for finding in verdict.findings if finding.severity == "forbid"]
    verdict_badge(verdict.level)
    st.markdown("\n".join(f"- {escape(translate_message(each.message_id, each.params))}" for each in forbidding))
    st.caption(
        _("For a number that can be compared, generate with “{model}” at 512×512 pixels and 50 steps.").format(
            model=_("Stable Diffusion 1.x, random weights (timing only)")
        )
    )
    with st.expander(_("All reasons, for {other}").format(other=comparison.name(item)), icon=":material/rule:"):
        st.markdown("\n".join(f"- {escape(sentence)}" for sentence in verdict_sentences(verdict)[1:]))

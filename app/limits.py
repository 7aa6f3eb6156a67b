"""How close a run came to its device's measured limit, and what it drew: on the run's page."""

from collections.abc import Mapping, Sequence

import streamlit as st

from app import charts, comparison, state
from app.components import error_message, escape, heading
from app.i18n import _, translate_message
from app.words import CLOCKS, word
from data.plausibility import breaches_among
from runners.calibrate import COPY, KEPT_IN, MATMUL, PRECISIONS, WORKLOAD, Calibration, Share, calibration_of, shares
from runners.errors import RunnersError
from runners.flops import flops_per_sample
from runners.paths import runs_dir
from runners.records import Record

TASKS = ("text-to-image", "bert-pretraining", "t5-finetuning")
DOUBTFUL = ("C", "D")
OVER = 1.02


def show(record: Record) -> None:
    """The share of the local limit and the energy of a run; of a calibration, what it found."""
    if record.workload == WORKLOAD:
        _calibrated(record)
    if record.workload not in TASKS or record.status != "ok":
        return
    _among_others(record)
    if record.origin == "measured":
        _shares(record)
    _energy(record)


def _among_others(record: Record) -> None:
    """What only shows beside other numbers: a value copied from another device."""
    own = comparison.charted_measurement(record)
    if own is None:
        return
    for found in breaches_among([own], state.catalogue().measurements).values():
        for breach in found:
            st.caption(f":material/report: {escape(translate_message(breach.message_id, breach.params))}")


def _shares(record: Record) -> None:
    heading(_("How close to this device's limit"))
    calibration = calibration_of(record, runs_dir())
    if calibration is None:
        if _is_here(record):
            st.caption(
                _("Not known: this device has not been calibrated. That takes about 20 seconds for each precision.")
            )
            _calibrate_button(record)
        else:
            st.caption(_("Not known: this device is not on this machine, and the record holds no calibration of it."))
        return
    found = shares(record, calibration)
    for share in found:
        _bar(share)
    if not found:
        st.caption(_why_not(record, calibration))
        return
    _remarks(record, calibration, found)


def _bar(share: Share) -> None:
    clock = word(CLOCKS, share.timed_region) if share.timed_region else _("Measured part")
    st.progress(
        min(1.0, share.share),
        text=_("{clock}: {percent:.0f} % of this device's measured {precision} peak").format(
            clock=clock, percent=100 * share.share, precision=share.precision
        ),
    )
    st.caption(
        _("{reached} of {limit} TFLOP/s").format(
            reached=charts.format_number(share.tflops), limit=charts.format_number(share.limit_tflops)
        )
    )


def _remarks(record: Record, calibration: Calibration, found: Sequence[Share]) -> None:
    when = calibration.created_utc[:16].replace("T", " ")
    if KEPT_IN in record.details:
        st.caption(_("Calibrated {when} UTC, before this run.").format(when=escape(when)))
    else:
        st.caption(_("Calibrated {when} UTC; not at the time of this run.").format(when=escape(when)))
    too_slow = any(share.share > OVER for share in found)
    if too_slow:
        st.caption(
            ":material/info: "
            + _("More than the calibration reached: something else ran while it measured. Calibrate again.")
        )
    elif calibration.grade in DOUBTFUL:
        st.caption(
            ":material/info: "
            + _("The calibration has grade {grade}: the true limit may be higher and the share lower.").format(
                grade=calibration.grade
            )
        )
    if (too_slow or calibration.grade in DOUBTFUL) and _is_here(record):
        _calibrate_button(record)


def _why_not(record: Record, calibration: Calibration) -> str:
    if flops_per_sample(record.conditions) is None:
        return _("Not known: LikeForLike has no formula for the work of this model.")
    calibrated = ", ".join(calibration.matmul_tflops)
    return _("Not known: the calibration measured {calibrated}, and this run used another precision.").format(
        calibrated=escape(calibrated)
    )


def _is_here(record: Record) -> bool:
    """Whether that kind of device is on this machine; before torch was asked its name is only a guess."""
    return state.device().kind == record.device.kind


def _calibrate_button(record: Record) -> None:
    if st.button(_("Calibrate this device"), icon=":material/speed:", key=f"calibrate-{record.run_id}"):
        # torch counts AMD's devices as cuda, and so does the specification.
        kind = "cuda" if record.device.kind == "rocm" else record.device.kind
        try:
            state.queue().submit(WORKLOAD, {"device": kind}, source="benchmarks")
        except RunnersError as error:
            error_message(error)
        else:
            st.toast(_("In the queue: the calibration. Open this page again when it is done."), icon=":material/speed:")


def _energy(record: Record) -> None:
    told = record.details.get("energy")
    if not isinstance(told, Mapping):
        return
    heading(_("Energy"))
    reason = told.get("reason")
    if isinstance(reason, Mapping):
        params = reason.get("params")
        sentence = translate_message(str(reason.get("message_id")), params if isinstance(params, Mapping) else {})
        st.caption(escape(sentence))
        return
    metric = next((item for item in record.metrics if item.name in ("j_per_image", "j_per_sample")), None)
    if metric is not None:
        each = _("Energy per image") if metric.name == "j_per_image" else _("Energy per sample")
        st.metric(each, f"{charts.format_number(metric.value)} J")
    joules, seconds = float(told["joules"]), float(told["duration_s"])
    method = _("added up from power readings") if told.get("method") == "integrated" else _("counted")
    st.caption(
        _("{joules} J in {seconds} s ({watts} W), {method} by {counter}, in steps of {step} J.").format(
            joules=charts.format_number(joules),
            seconds=charts.format_number(seconds),
            watts=charts.format_number(joules / seconds),
            method=method,
            counter=escape(str(told.get("counter"))),
            step=f"{float(told['resolution_j']):g}",
        )
    )
    if told.get("scope") == "processor":
        st.caption(_("The whole processor, other programs on it included; memory and the rest of the machine not."))
    else:
        st.caption(_("The device alone, whoever used it; the machine around it is not included."))


def _calibrated(record: Record) -> None:
    heading(_("What this device does at most"))
    rows = []
    for precision in PRECISIONS:
        product, copy = record.metric(MATMUL.format(precision)), record.metric(COPY.format(precision))
        if product is not None or copy is not None:
            rows.append(
                (
                    precision,
                    "–" if product is None else charts.format_number(product.value),
                    "–" if copy is None else charts.format_number(copy.value),
                )
            )
    st.table(
        {
            _("Precision"): [row[0] for row in rows],
            _("Matrix product (TFLOP/s)"): [row[1] for row in rows],
            _("Memory copy (GB/s)"): [row[2] for row in rows],
        },
        border="horizontal",
    )
    st.caption(_("The fastest sample of all sizes. Runs on this device say how much of it they reached."))

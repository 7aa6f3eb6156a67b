"""What a reader of the article should know before quoting it: each point with its arithmetic, from catalogue values."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from app import charts, state
from app.components import escape, plain_device_name
from app.i18n import N_, _
from data.catalogue import Catalogue

Values = Callable[[str], float]

TRAINING_SAMPLES_G1, TRAINING_SAMPLES_G2 = 65_000 * 256, 20_000 * 512
"""Steps times global batch: batches of 32 and of 64 on 8 devices, as the article states them."""
T5_3B_PARAMETERS = 2_851_598_336
"""Of the published configuration (24 layers, width 1024, 32 heads of 128, feed-forward 16384, 32128 words)."""
BYTES_FP32_ADAM = 16
"""Weights, gradients and Adam's two moments, 4 bytes each."""


@dataclass(frozen=True)
class Note:
    """One point."""

    title: str
    text: str
    params: Callable[[Values], dict[str, float]]


NOTES: tuple[Note, ...] = (
    Note(
        N_("“About twice as fast” is four different ratios"),
        N_(
            "BERT in batches of 32: {bert32:.2f}, of 64: {bert64:.2f}; images: {sd:.2f}; T5: {t5:.2f}. "
            "The last two compare unequal batch sizes."
        ),
        lambda v: {
            "bert32": v("seed-bert-g2-bs32-throughput") / v("seed-bert-a100-bs32-throughput"),
            "bert64": v("seed-bert-g2-bs64-throughput") / v("seed-bert-a100-bs64-throughput"),
            "sd": v("seed-sd-a100-bs1-latency") / v("seed-sd-g2-bs8-latency"),
            "t5": v("seed-t5-g2-bs1-throughput") / v("seed-t5-a100-bs16-throughput"),
        },
    ),
    Note(
        N_("Images: 8 at a time against one"),
        N_(
            "2.84 is {a100} s / {g2} s, with Gaudi2 at batch 8 and A100 at batch 1. One image at a time takes Gaudi2 "
            "{g2_one} s and Gaudi {g1_one} s with the same software, so the ratios to A100 are {fair:.2f} and "
            "{fair_g1:.2f}."
        ),
        lambda v: {
            "a100": v("seed-sd-a100-bs1-latency"),
            "g2": v("seed-sd-g2-bs8-latency"),
            "g2_one": v("diffusersdocs-202306-sd15-g2-bs1-latency"),
            "g1_one": v("diffusersdocs-202306-sd15-g1-bs1-latency"),
            "fair": v("seed-sd-a100-bs1-latency") / v("diffusersdocs-202306-sd15-g2-bs1-latency"),
            "fair_g1": v("seed-sd-a100-bs1-latency") / v("diffusersdocs-202306-sd15-g1-bs1-latency"),
        },
    ),
    Note(
        N_("The “latency” of an image is no latency"),
        N_(
            "{g2} s per image at batch 8 is 1 / throughput: 1 / {rate} images/s. A batch of 8 really takes about "
            "{batch:.1f} s. An earlier page lists {earlier} images/s for Gaudi2: another quantity with the same digits."
        ),
        lambda v: {
            "g2": v("seed-sd-g2-bs8-latency"),
            "rate": v("diffusersdocs-202306-sd15-g2-bs8-throughput"),
            "batch": 8 * v("seed-sd-g2-bs8-latency"),
            "earlier": v("diffusersdocs-202304-sd15-g2-bs8-throughput"),
        },
    ),
    Note(
        N_("The A100 image time was not measured again"),
        N_(
            "{a100} s has stood there since December 2022, when Gaudi2 took {then} s ({ratio_then:.2f} times); the "
            "update of 2023 changed the Gaudi values only. With the attention of PyTorch 2.0 another A100 takes "
            "{newer:.2f} s per image at batch 8, less than Gaudi2's {g2} s."
        ),
        lambda v: {
            "a100": v("seed-sd-a100-bs1-latency"),
            "then": v("hfblog2022-sd-g2"),
            "ratio_then": v("seed-sd-a100-bs1-latency") / v("hfblog2022-sd-g2"),
            "newer": v("diffusersdocs-pt2-a100-bs8-sdpacompile") / 8,
            "g2": v("seed-sd-g2-bs8-latency"),
        },
    ),
    Note(
        N_("Where 2.63 s comes from is not certain"),
        N_(
            "The page that the article links to prints {titan} s for a TITAN RTX. Its A100 80GB makes {rate} steps per "
            "second, {seconds:.2f} s for 50. The value is plausible; its origin is not shown."
        ),
        lambda v: {
            "titan": v("diffusersdocs-fp16-titanrtx-memeff"),
            "rate": v("diffusersdocs-fp16-its-a10080gbsxm-base"),
            "seconds": 50 / v("diffusersdocs-fp16-its-a10080gbsxm-base"),
        },
    ),
    Note(
        N_("BERT throughput is a sum over 8 devices"),
        N_(
            "65,000 steps x 256 samples / {seconds:,.0f} s = {computed:.1f} samples/s; printed is {printed}. "
            "One device makes {one:.1f}."
        ),
        lambda v: {
            "seconds": v("seed-bert-g1-bs32-traintime"),
            "computed": TRAINING_SAMPLES_G1 / v("seed-bert-g1-bs32-traintime"),
            "printed": v("seed-bert-g1-bs32-throughput"),
            "one": v("seed-bert-g1-bs32-throughput") / 8,
        },
    ),
    Note(
        N_("“5.75 times” is a time to similar loss, and 5.73"),
        N_(
            "{slow:,.0f} s / {fast:,.0f} s = {ratio:.2f}. The faster run saw {fewer:.2f} million samples instead of "
            "{more:.2f}: part of the ratio is training on less, not a faster device ({speed:.2f} times)."
        ),
        lambda v: {
            "slow": v("seed-bert-g1-bs32-traintime"),
            "fast": v("seed-bert-g2-bs64-traintime"),
            "ratio": v("seed-bert-g1-bs32-traintime") / v("seed-bert-g2-bs64-traintime"),
            "fewer": TRAINING_SAMPLES_G2 / 1e6,
            "more": TRAINING_SAMPLES_G1 / 1e6,
            "speed": v("seed-bert-g2-bs64-throughput") / v("seed-bert-g1-bs32-throughput"),
        },
    ),
    Note(
        N_("“Consistent with 1.8 times” speaks of another model"),
        N_(
            "The vendor's 1.8 is for BERT-large at sequence length 128; the article's own ratio, for BERT-base at 512 "
            "in batches of 64, is {ratio:.2f}."
        ),
        lambda v: {"ratio": v("seed-bert-g2-bs64-throughput") / v("seed-bert-a100-bs64-throughput")},
    ),
    Note(
        N_("T5 compares batches of 1 with batches of 16"),
        N_(
            "{g2} / {a100} = {ratio:.2f}, at 1 and 16 samples per device: an epoch has 16 times as many optimizer "
            "steps on one side. Whether A100 used TF32 is not said; without it, its matrix units were idle."
        ),
        lambda v: {
            "g2": v("seed-t5-g2-bs1-throughput"),
            "a100": v("seed-t5-a100-bs16-throughput"),
            "ratio": v("seed-t5-g2-bs1-throughput") / v("seed-t5-a100-bs16-throughput"),
        },
    ),
    Note(
        N_("What strict FP32 may have cost A100"),
        N_(
            "In another benchmark of BERT, A100 gets through {tf32} samples/s with TF32 and {fp32} without: "
            "{ratio:.1f} times. If the T5 run left TF32 off, which is the default, {a100} is a very low baseline."
        ),
        lambda v: {
            "tf32": v("milabench-a100-2024-bert-tf32"),
            "fp32": v("milabench-a100-2024-bert-fp32"),
            "ratio": v("milabench-a100-2024-bert-tf32") / v("milabench-a100-2024-bert-fp32"),
            "a100": v("seed-t5-a100-bs16-throughput"),
        },
    ),
    Note(
        N_("BERT ran in two precisions, and A100's run is hardly described"),
        N_(
            "bf16 mixed with fp32 on Gaudi, fp16 on A100. Of A100 only {bs32} and {bs64} samples/s are published: no "
            "steps, time, script or software."
        ),
        lambda v: {
            "bs32": v("seed-bert-a100-bs32-throughput"),
            "bs64": v("seed-bert-a100-bs64-throughput"),
        },
    ),
    Note(
        N_("In Chinese, “x times” can be read as “x times more”"),
        N_(
            "The translation's words for {ratio} times can be taken for an increase of {ratio} times. The numbers say "
            "{g2_64:,} / {g2_32:,} = {computed:.2f}: a ratio."
        ),
        lambda v: {
            "ratio": v("seed-bert-text-g2bs64-vs-g2bs32-throughput"),
            "g2_64": v("seed-bert-g2-bs64-throughput"),
            "g2_32": v("seed-bert-g2-bs32-throughput"),
            "computed": v("seed-bert-g2-bs64-throughput") / v("seed-bert-g2-bs32-throughput"),
        },
    ),
    Note(
        N_("“x 1.24” and “x 2.44” have different baselines"),
        N_(
            "For BERT and images the article divides by first-generation Gaudi, for T5 by A100. “A100 x 1.24” means "
            "{g1} s / {a100} s = {ratio:.2f}: A100 against Gaudi."
        ),
        lambda v: {
            "g1": v("seed-sd-g1-bs8-latency"),
            "a100": v("seed-sd-a100-bs1-latency"),
            "ratio": v("seed-sd-g1-bs8-latency") / v("seed-sd-a100-bs1-latency"),
        },
    ),
    Note(
        N_("The linked BERT article gives another speed"),
        N_(
            "100,000 steps in about {hours} h are {implied:.0f} samples/s, {percent:.0f} % more than the {printed} "
            "printed here for the same hardware."
        ),
        lambda v: {
            "hours": v("hfblog-bert-g1-100k"),
            "implied": 100_000 * 256 / (3600 * v("hfblog-bert-g1-100k")),
            "percent": 100
            * (100_000 * 256 / (3600 * v("hfblog-bert-g1-100k")) / v("seed-bert-g1-bs32-throughput") - 1),
            "printed": v("seed-bert-g1-bs32-throughput"),
        },
    ),
)


def inconsistencies(catalogue: Catalogue) -> None:
    """Draws the points, each with the numbers it is made of."""

    def published(reference_id: str) -> float:
        return catalogue.by_id[reference_id].value or 0.0

    columns = st.grid(2, min_column_width=340)
    for note in NOTES:
        try:
            text = _(note.text).format(**note.params(published))
        except (KeyError, ZeroDivisionError):
            continue  # Somebody has taken the rows out of the catalogue.
        with columns.cell():
            st.markdown(f"**{escape(_(note.title))}**  \n{escape(text)}")


def memory(catalogue: Catalogue) -> None:
    """What 32, 80 and 96 GB hold: why one device trained T5-3B in batches of 1, one in 16, and one not at all."""
    needed_gb = T5_3B_PARAMETERS * BYTES_FP32_ADAM / 1e9
    devices = [catalogue.devices[name] for name in ("gaudi1", "a100-80gb", "gaudi2") if name in catalogue.devices]
    rows = [
        _memory_bar(device.name, device.memory_gb, needed_gb, "published") for device in devices if device.memory_gb
    ]
    own = state.device()
    if own.memory_bytes:
        name = _("Yours: {device}").format(device=plain_device_name(own.name))
        rows.append(_memory_bar(name, own.memory_bytes / 1e9, needed_gb, "own"))
    st.markdown(
        _(
            "Training T5-3B in fp32 with Adam keeps weights, gradients and two moments: {parameters:,} parameters x "
            "{bytes} bytes = **{needed:.1f} GB** ({gib:.1f} GiB), before a single activation."
        ).format(
            parameters=T5_3B_PARAMETERS,
            bytes=BYTES_FP32_ADAM,
            needed=needed_gb,
            gib=T5_3B_PARAMETERS * BYTES_FP32_ADAM / 2**30,
        )
    )
    st.plotly_chart(
        charts.bars(rows, line=(needed_gb, _("{needed:.1f} GB needed").format(needed=needed_gb))),
        key="memory",
        config=charts.CONFIG,
        alt="; ".join(f"{row.title}: {row.value_text}, {row.conditions}" for row in rows),
    )
    st.caption(
        _(
            "Gaudi2 has more memory than A100 and still ran batches of 1: in lazy mode its first iteration is recorded "
            "as one graph, and the memory of all its operations adds up. More memory allows larger batches, and larger "
            "batches are faster, until something else is the limit."
        )
    )


def _memory_bar(name: str, memory_gb: float, needed_gb: float, look: charts.Look) -> charts.Bar:
    left = memory_gb - needed_gb
    amount = charts.format_number(round(abs(left), 1))
    return charts.Bar(
        title=name,
        conditions=_("{left} GB left for everything else").format(left=amount)
        if left > 0
        else _("{missing} GB too small").format(missing=amount),
        value=memory_gb,
        value_text=f"{charts.format_number(round(memory_gb, 1))} GB",
        mark=_("fits") if left > 0 else _("does not fit"),
        tone="like-for-like" if left > 0 else "not-comparable",
        look=look,
    )

"""The first sentences of the first page: the claim that the article is remembered for, and what its numbers say."""

import streamlit as st

from app.i18n import _
from data.catalogue import Catalogue
from data.comparability import compare
from data.errors import UnknownMeasurement

# Gaudi2 against A100 80GB: each pair that the article itself sets side by side.
PAIRS = (
    ("seed-bert-g2-bs32-throughput", "seed-bert-a100-bs32-throughput"),
    ("seed-bert-g2-bs64-throughput", "seed-bert-a100-bs64-throughput"),
    ("seed-t5-g2-bs1-throughput", "seed-t5-a100-bs16-throughput"),
    ("seed-sd-g2-bs8-latency", "seed-sd-a100-bs1-latency"),
)


def draw(catalogue: Catalogue) -> None:
    """Draws the claim, the ratios behind it and what the colours mean."""
    ratios = _ratios(catalogue)
    if ratios:
        st.markdown(
            _(
                "#### “Gaudi2 is about twice as fast as A100”: the article behind this says {ratios} times, depending "
                "on the task, and in {unequal} of {count} pairs one side worked in larger batches."
            ).format(
                ratios=", ".join(f"{ratio:.2f}" for ratio, _unequal in ratios),
                unequal=sum(unequal for _ratio, unequal in ratios),
                count=len(ratios),
            )
        )
    st.markdown(
        _(
            "Each bar is a published number with the conditions it was taken under. Its colour says whether it can be "
            "compared with the :blue[**blue**] one: :green[**green**] like for like, :orange[**orange**] with caveats, "
            ":gray[**grey**] not at all. Hatched bars are yours."
        )
    )


def _ratios(catalogue: Catalogue) -> list[tuple[float, bool]]:
    """Each pair's ratio, and whether its batches were unequal; pairs that somebody took out of the catalogue go."""
    found = []
    for a_id, b_id in PAIRS:
        try:
            verdict = compare(catalogue.measurement(a_id), catalogue.measurement(b_id))
        except UnknownMeasurement:
            continue
        if verdict.ratio is not None:
            found.append((verdict.ratio, "batch_size_per_device" in verdict.differs))
    return found

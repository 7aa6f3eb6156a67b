"""How one published number changed over sources and revisions."""

import streamlit as st

from app import charts, state
from app.components import escape
from app.i18n import _
from data.catalogue import Catalogue, Reference

DEVICES = ("gaudi1", "gaudi2", "a100-80gb")
TIERS = ("article", "same-harness")


def drift() -> None:
    """Draws the history of seconds per image of Stable Diffusion 1 at 512x512 in 50 steps, in batches."""
    catalogue = state.catalogue()
    series = {catalogue.devices[device].name: history(catalogue, device) for device in DEVICES}
    series = {name: found for name, found in series.items() if found}
    st.markdown(
        _(
            "Seconds per image of Stable Diffusion 1 (512x512, 50 steps) as the article and the makers of the same "
            "software published them, by date. The article's A100 value was never measured again."
        )
    )
    points = {
        name: [(item.date or "", item.canonical_value or 0.0, _label(catalogue, item)) for item in found]
        for name, found in series.items()
    }
    st.plotly_chart(
        charts.history(points, y_title="s/image"),
        key="drift",
        config=charts.CONFIG,
        alt="; ".join(
            f"{name}: " + ", ".join(f"{date} {charts.format_number(value)} s" for date, value, _text in found)
            for name, found in points.items()
        ),
    )
    st.caption(_("Gaudi and Gaudi2 in batches of 4 and 8, A100 one image at a time."))


def history(catalogue: Catalogue, device_id: str) -> list[Reference]:
    """A device's rows for that one task, in batches of 4 and more (A100: of 1, which is all there is), by date."""
    found = [
        item
        for item in catalogue.references
        if item.device_id == device_id
        and item.canonical_metric == "s_per_image"
        and item.canonical_value is not None
        and item.tier in TIERS
        and item.date
        and item.conditions.model == "stable-diffusion-1"
        and (device_id == "a100-80gb" or (item.conditions.batch_size_per_device or 0) >= 4)
    ]
    return sorted(found, key=lambda item: item.date or "")


def _label(catalogue: Catalogue, item: Reference) -> str:
    return escape(f"{catalogue.sources[item.source_id].title}: {item.conditions.software or ''}")

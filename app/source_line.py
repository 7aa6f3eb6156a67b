"""Where numbers were published: one line, each source one click away."""

from collections.abc import Iterable

import streamlit as st

from app.components import escape
from app.i18n import _
from data.catalogue import Catalogue
from data.measurements import Measurement
from data.references import Reference


def source_line(items: Iterable[Measurement], catalogue: Catalogue) -> None:
    """Draws the sources of some published numbers, each once."""
    found = [catalogue.by_id[item.id] for item in items if item.id in catalogue.by_id]
    links = list(dict.fromkeys(linked_source(reference, catalogue) for reference in found))
    if links:
        st.caption(":material/link: " + " · ".join(links))


def linked_source(reference: Reference, catalogue: Catalogue) -> str:
    """A source as Markdown, with a link where an address is known, and the number's date."""
    source = catalogue.sources[reference.source_id]
    name = escape(source.title)
    address = source.address(reference.locator)
    linked = f"[{name}](<{address}>)" if address else name
    date = reference.date or _("date not known")
    return f"{linked}, {date}"

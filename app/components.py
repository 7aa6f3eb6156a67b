"""Pieces of a page that two or more views use."""

import contextlib
import functools
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

import streamlit as st

from app import state
from app.i18n import LANGUAGE_KEY, LANGUAGES, _, requested_language, translate_message
from app.words import FIELDS, STATUS_HELP, STATUSES, VERDICTS, word
from data.comparability import Verdict
from data.errors import StoreError
from runners.errors import RunnersError
from runners.records import DeviceInfo

LOG = logging.getLogger(__name__)
VERDICT_COLOURS = {"like-for-like": "green", "caveats": "orange", "not-comparable": "gray", "baseline": "blue"}
VERDICT_ICONS = {
    "like-for-like": ":material/check_circle:",
    "caveats": ":material/warning:",
    "not-comparable": ":material/block:",
    "baseline": ":material/flag:",
}
STATUS_COLOURS = {"ok": "green", "failed": "red", "timeout": "red", "lost": "red", "running": "blue"}
STATUS_ICONS = {
    "ok": ":material/check_circle:",
    "failed": ":material/error:",
    "cancelled": ":material/cancel:",
    "timeout": ":material/timer_off:",
    "lost": ":material/help:",
    "queued": ":material/hourglass_empty:",
    "running": ":material/play_circle:",
}
DEVICE_KINDS = {"hpu": "Gaudi", "cuda": "NVIDIA", "rocm": "AMD", "xpu": "Intel GPU", "mps": "Apple GPU", "cpu": "CPU"}


def device_badge() -> None:
    """Which accelerator this machine would use."""
    device = state.device()
    st.badge(
        short_device_name(device),
        icon=":material/memory:",
        color="gray",
        help=_("The device that runs on this machine use: {name}").format(name=device.name),
    )


def language_choice() -> None:
    """The reader's language; it stays in the address, so that a link opens in the same one."""
    st.session_state.setdefault(LANGUAGE_KEY, requested_language())
    st.selectbox(
        _("Language"),
        list(LANGUAGES),
        format_func=LANGUAGES.__getitem__,
        key=LANGUAGE_KEY,
        on_change=_remember_language,
        label_visibility="collapsed",
        width=130,
    )


def verdict_badge(level: str, *, help_text: str | None = None) -> None:
    """The verdict in one or two words."""
    st.badge(word(VERDICTS, level), icon=VERDICT_ICONS[level], color=VERDICT_COLOURS[level], help=help_text)  # type: ignore[arg-type]


def status_badge(status: str) -> None:
    """How a run ended, or that it has not."""
    st.badge(
        word(STATUSES, status),
        icon=STATUS_ICONS.get(status),
        color=STATUS_COLOURS.get(status, "gray"),  # type: ignore[arg-type]
        help=word(STATUS_HELP, status) if status in STATUS_HELP else None,
    )


def verdict_sentence(verdict: Verdict) -> str:
    """The verdict as one sentence."""
    return translate_message(verdict.message_id, verdict.params)


def verdict_details(verdict: Verdict) -> None:
    """The verdict's sentence and every reason: those that decide in bold, mere notes small at the end."""
    st.markdown(f"**{escape(verdict_sentence(verdict))}**")
    reasons(verdict)


def reasons(verdict: Verdict) -> None:
    """Every reason of a verdict, the heaviest first."""
    lines = []
    for finding in verdict.findings:
        sentence = escape(translate_message(finding.message_id, finding.params))
        if finding.severity in ("forbid", "caveat-strong"):
            sentence = f"**{sentence}**"
        lines.append(f"- :small[{sentence}]" if finding.severity == "note" else f"- {sentence}")
    if lines:
        # What holds for both sides is said once.
        st.markdown("\n".join(dict.fromkeys(lines)))


def heading(text: str) -> None:
    """A small heading inside a card or column."""
    st.markdown(f"**{text}**")


def error_message(error: RunnersError | StoreError) -> None:
    """What went wrong and what to do next, where it happened."""
    st.error(escape(error_text(error.message_id, error.params)), icon=":material/error:")


def error_text(message_id: str, params: Mapping[str, Any]) -> str:
    """The sentence of an error; a field is called as its input on the page is."""
    name = params.get("field")
    return translate_message(message_id, {**params, "field": word(FIELDS, name)} if name in FIELDS else params)


# SyntaxError is what Pillow raises for a broken PNG.
DAMAGE = (
    *(RunnersError, OSError, LookupError, TypeError, ValueError),
    *(AttributeError, ArithmeticError, RecursionError, SyntaxError),
)


@contextlib.contextmanager
def damage_stays_here(run_id: str) -> Iterator[None]:
    """Keeps a page going whatever stands in a run's files: anybody may have written them, in any form.

    Only what wrong content makes Python and the image library raise is taken; Streamlit's own errors pass.
    """
    try:
        yield
    except DAMAGE as error:
        _log_once(run_id, repr(error))
        st.warning(
            _("The files of the run {run_id} hold something that cannot be shown; the app's log says what.").format(
                run_id=escape(run_id)
            ),
            icon=":material/report:",
        )


@functools.lru_cache(maxsize=256)
def _log_once(run_id: str, problem: str) -> None:
    # A run that goes on is looked at twice a second.
    LOG.exception("run %s cannot be shown: %s", run_id, problem)


def empty_state(text: str, *, icon: str, link_page: str | None = None, link_label: str | None = None) -> None:
    """Says that there is nothing yet, and what makes something appear."""
    with st.container(border=True, horizontal_alignment="center"):
        st.markdown(f"{icon} {text}", text_alignment="center")
        if link_page and link_label:
            st.page_link(link_page, label=link_label, icon=":material/arrow_forward:")


def short_device_name(device: DeviceInfo) -> str:
    """A device's name as people say it: without trademarks, core counts and clock rates."""
    name = plain_device_name(device.name)
    kind = DEVICE_KINDS.get(device.kind, device.kind)
    return name if not name or kind.split()[0].lower() in name.lower() else f"{kind} {name}"


def plain_device_name(name: str) -> str:
    """The driver's name without what no one says."""
    plain = re.sub(r"\((R|TM|r|tm)\)|®|™", " ", name)
    plain = re.sub(r"\b(\d+-Core )?(Processor|CPU)\b|@.*$", " ", plain)
    return " ".join(plain.split()) or name


def escape(text: str) -> str:
    """A text from outside (a prompt, a path, an error) as Markdown that shows it as it is."""
    escaped = re.sub(r"([\\`*_{}\[\]<>()#+\-!|~$])", r"\\\1", sendable(text))
    # Streamlit makes icons and emoji of :names: after Markdown has been read, so a backslash does not stop it; a word
    # joiner, which takes no room, does.
    return re.sub(r":(?=[\w+\\-]+[:/])", ":\u2060", escaped)


def sendable(text: str) -> str:
    """A text that can be sent to a browser: a file may hold half of a surrogate pair, which UTF-8 has no bytes for."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def shortened(text: str, limit: int = 60) -> str:
    """A text that fits where there is room for a line or two."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _remember_language() -> None:
    st.query_params[LANGUAGE_KEY] = st.session_state[LANGUAGE_KEY]

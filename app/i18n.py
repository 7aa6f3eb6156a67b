"""Every text that is shown passes here: several readers in several languages share one process.

`_` looks up the language of the session that is running at the moment of the call. So a text is translated where it is
drawn; texts at module level are only marked, with `N_`, and translated later.
"""

import functools
import gettext as gettext_module
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from data import messages as data_messages

DOMAIN = "likeforlike"
LOCALE_DIR = Path(__file__).resolve().parent / "locale"

# The key is what stands in the address (?lang=...), the value what the reader sees: each language in its own words.
LANGUAGES = {"en": "English", "zh-Hant": "繁體中文"}
DEFAULT_LANGUAGE = "en"
LANGUAGE_KEY = "lang"


def N_(text: str) -> str:  # noqa: N802 - gettext's customary name for "extract, do not translate yet"
    """Marks a text for extraction and returns it as it is."""
    return text


def current_language() -> str:
    """The language of the running session: chosen on the page, in the address, or the browser's own."""
    chosen = st.session_state.get(LANGUAGE_KEY)
    return chosen if chosen in LANGUAGES else requested_language()


def requested_language() -> str:
    """What the address asks for, or the browser where the address is silent."""
    asked = st.query_params.get(LANGUAGE_KEY)
    return asked if asked in LANGUAGES else _nearest_language(st.context.locale)


def _(text: str) -> str:
    """The text in the session's language; English where the catalogue has none."""
    return _catalogue(current_language()).gettext(text)


def ngettext(singular: str, plural: str, count: int) -> str:
    """The right form of a text for a count; the placeholder {count} is left for the caller to fill."""
    return _catalogue(current_language()).ngettext(singular, plural, count)


def translator() -> Callable[[str], str]:
    """`_` in the session's language of now, for texts that are made outside the session."""
    return _catalogue(current_language()).gettext


def translate_message(message_id: str, params: Mapping[str, Any]) -> str:
    """A sentence that `runners` or `data` named by id, in the session's language."""
    return data_messages.render(message_id, params, _)


def _nearest_language(locale: str | None) -> str:
    """Maps a browser locale such as zh-TW to a language of ours; Simplified Chinese readers get English."""
    parts = (locale or "").replace("_", "-").lower().split("-")
    if parts[0] == "zh" and {"tw", "hk", "mo", "hant"} & set(parts[1:]):
        return "zh-Hant"
    return DEFAULT_LANGUAGE


@functools.cache
def _catalogue(language: str) -> gettext_module.NullTranslations:
    return gettext_module.translation(DOMAIN, LOCALE_DIR, [language.replace("-", "_")], fallback=True)

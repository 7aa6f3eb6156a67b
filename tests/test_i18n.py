"""Every text that is shown is translated, and each reader gets their own language."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app import i18n, translations
from data import messages as data_messages
from runners import messages as runners_messages

PROJECT_DIR = Path(__file__).resolve().parent.parent
SHOWN = [PROJECT_DIR / "streamlit_app.py", *sorted((PROJECT_DIR / "app").rglob("*.py"))]
MARKED = [*SHOWN, *sorted((PROJECT_DIR / "data").rglob("*.py")), *sorted((PROJECT_DIR / "runners").rglob("*.py"))]

# Streamlit calls whose first argument a person reads, and arguments that are read wherever they stand.
TEXT_CALLS = frozenset(
    {"title", "header", "subheader", "markdown", "caption", "text", "write", "error", "warning", "info", "success"}
    | {"button", "download_button", "link_button", "menu_button", "text_input", "text_area", "number_input", "toggle"}
    | {"selectbox", "multiselect", "segmented_control", "pills", "radio", "slider", "checkbox", "expander", "popover"}
    | {"metric", "badge", "toast", "tabs", "progress", "heading", "empty_state"}
)
TEXT_KEYWORDS = frozenset(
    {"help", "label", "caption", "placeholder", "alt", "text", "title", "link_label", "page_title"}
)
NAMES = {"LikeForLike"}
# Icons, colours and HTML tags are no words, nor is a single letter: the unit s is the same in every language.
MARKUP = re.compile(r":material/\w+:|:[a-z-]+\[|</?\w+[^>]*>?|\b[A-Za-z]\b")


def test_every_text_is_translated_and_compiled() -> None:
    assert translations.problems() == []


def test_the_check_finds_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    template = translations.extract()
    template.add("A text that nobody has translated {yet}")
    monkeypatch.setattr(translations, "extract", lambda: template)
    assert any("nobody has translated" in problem for problem in translations.problems())


@pytest.mark.parametrize("path", MARKED, ids=lambda path: str(path.relative_to(PROJECT_DIR)))
def test_marked_texts_are_extracted(path: Path) -> None:
    """An f-string hides its texts from the extraction, and a variable has none: both would stay English unseen."""
    known = {text for message in _template() for text in _forms(message.id)}
    for call in _calls(path):
        if isinstance(call.func, ast.Name) and call.func.id in ("_", "N_", "ngettext"):
            for argument in call.args[:2] if call.func.id == "ngettext" else call.args[:1]:
                assert not isinstance(argument, ast.JoinedStr), f"{path}:{call.lineno} translates an f-string"
                if isinstance(argument, ast.Constant):
                    assert argument.value in known, f"{path}:{call.lineno} is not extracted"


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: str(path.relative_to(PROJECT_DIR)))
def test_no_bare_text_reaches_the_page(path: Path) -> None:
    for call in _calls(path):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        read = [item.value for item in call.keywords if item.arg in TEXT_KEYWORDS]
        if name in TEXT_CALLS and call.args:
            read.append(call.args[0])
        for argument in read:
            for text in _bare_texts(argument):
                words = set(re.findall("[A-Za-z]+", MARKUP.sub(" ", text)))
                assert words <= NAMES, f"{path}:{call.lineno} shows {text!r} without _()"


def test_readers_of_one_process_have_their_own_language() -> None:
    def script() -> None:
        import streamlit as st

        from app.i18n import _, ngettext

        st.write(_("Compare"))
        st.write(ngettext("{count} device", "{count} devices", 2).format(count=2))

    readers = {locale: AppTest.from_function(script, default_timeout=60) for locale in ("zh-TW", "en-GB")}
    seen: list[list[str]] = []
    for locale in ("zh-TW", "en-GB", "zh-TW"):
        readers[locale].context = {"locale": locale}
        seen.append([element.value for element in readers[locale].run().markdown])
    assert seen == [["比較", "2 個裝置"], ["Compare", "2 devices"], ["比較", "2 個裝置"]]


@pytest.mark.parametrize(
    ("locale", "language"),
    [
        ("zh-TW", "zh-Hant"),
        ("zh-Hant-HK", "zh-Hant"),
        ("zh_TW", "zh-Hant"),
        ("zh-CN", "en"),
        ("de-DE", "en"),
        ("", "en"),
        (None, "en"),
    ],
)
def test_nearest_language(locale: str | None, language: str) -> None:
    assert i18n._nearest_language(locale) == language


@pytest.mark.parametrize("messages", [data_messages.MESSAGES, runners_messages.MESSAGES])
def test_messages_are_read_in_the_reader_s_language(messages: dict[str, str]) -> None:
    chinese = i18n._catalogue("zh-Hant")
    same = [text for text in messages.values() if chinese.gettext(text) == text]
    assert same == []


def test_a_message_of_a_later_version_shows_what_there_is() -> None:
    assert i18n.translate_message("not-invented-yet", {"value": 3}) == "not-invented-yet: {'value': 3}"


def _template() -> translations.Catalog:
    if not _TEMPLATES:
        _TEMPLATES.append(translations.extract())
    return _TEMPLATES[0]


_TEMPLATES: list[translations.Catalog] = []


def _forms(message_id: str | tuple[str, ...]) -> tuple[str, ...]:
    return (message_id,) if isinstance(message_id, str) else tuple(message_id)


def _calls(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield node


def _bare_texts(node: ast.expr) -> Iterator[str]:
    """Literal texts of an expression that no call stands around."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        # As one text, since a tag may have a value in its middle.
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values)
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                yield from _bare_texts(part.value)
    elif isinstance(node, ast.BinOp):
        yield from _bare_texts(node.left)
        yield from _bare_texts(node.right)
    elif isinstance(node, ast.IfExp):
        yield from _bare_texts(node.body)
        yield from _bare_texts(node.orelse)

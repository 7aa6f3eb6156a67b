"""Keeps the message catalogue in step with the code: `python -m app.translations check | update | compile`.

update   extracts every marked text and merges it into the .po files; new texts arrive untranslated
compile  turns the .po files into the .mo files that the app reads
check    says what is missing, and exits 1 where something is
"""

import io
import re
import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

PROJECT_DIR = Path(__file__).resolve().parent.parent
LOCALE_DIR = PROJECT_DIR / "app" / "locale"
SOURCES = ("streamlit_app.py", "app", "data", "runners")
KEYWORDS = {"_": None, "N_": None, "ngettext": (1, 2)}
DOMAIN = "likeforlike"


def extract() -> Catalog:
    """Every marked text of the program, with the places where it is used."""
    template = Catalog(domain=DOMAIN, project="LikeForLike", charset="utf-8")
    for source in SOURCES:
        path = PROJECT_DIR / source
        folder, pattern = (path.parent, source) if path.is_file() else (path, "**.py")
        found = extract_from_dir(
            folder,
            [(pattern, "python")],
            keywords=KEYWORDS,
            directory_filter=_only_packages if path.is_dir() else _none,
        )
        for name, _line, message, comments, context in found:
            # The file without its line: line numbers would change the catalogue with every edit.
            place = (path.parent / name if path.is_file() else path / name).relative_to(PROJECT_DIR)
            template.add(message, locations=[(str(place), 0)], auto_comments=comments, context=context)
    return template


def catalogue_paths() -> list[Path]:
    """The .po files, one per language."""
    return sorted(LOCALE_DIR.glob(f"*/LC_MESSAGES/{DOMAIN}.po"))


def load(path: Path) -> Catalog:
    """One language's catalogue."""
    with path.open("rb") as file:
        return read_po(file, locale=path.parent.parent.name, domain=DOMAIN)


def update() -> None:
    """Merges the extracted texts into each .po file."""
    template = extract()
    for path in catalogue_paths():
        catalogue = load(path)
        # The date would make a difference where there is none.
        template.creation_date = catalogue.creation_date
        # No fuzzy guesses: a text that changed is untranslated until a person has seen it.
        catalogue.update(template, no_fuzzy_matching=True)
        catalogue.obsolete.clear()
        with path.open("wb") as file:
            write_po(file, catalogue, width=110, sort_output=True, include_lineno=False)


def compile_catalogues() -> None:
    """Writes each .mo file."""
    for path in catalogue_paths():
        path.with_suffix(".mo").write_bytes(_compiled(load(path)))


def problems() -> list[str]:
    """What keeps the catalogues from being complete, one line each; empty when all is well."""
    template = extract()
    found: list[str] = []
    for path in catalogue_paths():
        catalogue = load(path)
        name = path.parent.parent.name
        for message in template:
            if message.id:
                found += [f"{name}: {problem}" for problem in _message_problems(catalogue, message.id)]
        if not path.with_suffix(".mo").exists() or path.with_suffix(".mo").read_bytes() != _compiled(catalogue):
            found.append(
                f"{name}: {DOMAIN}.mo is not what {DOMAIN}.po compiles to; run: python -m app.translations compile"
            )
    return found


def main(arguments: list[str]) -> int:
    """Runs one command."""
    if arguments == ["update"]:
        update()
    elif arguments == ["compile"]:
        compile_catalogues()
    elif arguments == ["check"]:
        found = problems()
        print("\n".join(found) or "Every text is translated.", file=sys.stderr)
        return 1 if found else 0
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


def _message_problems(catalogue: Catalog, message_id: str | tuple[str, ...]) -> list[str]:
    forms = (message_id,) if isinstance(message_id, str) else message_id
    translated = catalogue.get(forms[0])
    if (
        translated is None
        or not translated.string
        or (isinstance(translated.string, tuple) and not all(translated.string))
    ):
        return [f"not translated: {forms[0]!r}"]
    texts = (translated.string,) if isinstance(translated.string, str) else translated.string
    expected = _placeholders(forms[-1])
    return [
        f"placeholders differ: {forms[0]!r} has {sorted(expected)}, its translation {sorted(_placeholders(text))}"
        for text in texts
        if _placeholders(text) != expected
    ]


def _placeholders(text: str) -> set[str]:
    return set(re.findall(r"\{[^{}]*\}", text))


def _compiled(catalogue: Catalog) -> bytes:
    buffer = io.BytesIO()
    write_mo(buffer, catalogue)
    return buffer.getvalue()


def _only_packages(folder: str) -> bool:
    return not Path(folder).name.startswith((".", "__"))


def _none(_folder: str) -> bool:
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

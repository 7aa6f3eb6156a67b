"""Text to train on: made up and learnable, or from a folder of txt, JSONL or Parquet files. No network, no tokenizer.

Where no tokenizer is at hand, bytes are tokens (ids 0 to 255 shifted by the special ones), which any text has; the
record says so. Only as much text is read as the steps need.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from runners.errors import SpecError

SPECIAL_TOKENS = 8
"""Ids below this are padding, mask, separators and others."""
PAD, CLS, SEP, MASK, EOS = 0, 1, 2, 3, 4
MAX_LINE_BYTES = 10_000_000
TEXT_SUFFIXES = (".txt", ".jsonl", ".json", ".parquet")
_STRIDES = (1, 2, 3, 5)


def made_up_sequences(count: int, length: int, vocabulary: int, seed: int) -> list[list[int]]:
    """Sequences that can be learned: each goes on from a start in one of a few strides, over a few hundred words.

    Args:
        count: How many.
        length: Tokens in each.
        vocabulary: Ids to draw from, the special ones included.
        seed: Of the starts and strides.
    """
    import random

    rng = random.Random(seed)
    words = min(vocabulary - SPECIAL_TOKENS, 512)
    made = []
    for _ in range(count):
        start, stride = rng.randrange(words), rng.choice(_STRIDES)
        made.append([SPECIAL_TOKENS + (start + stride * place) % words for place in range(length)])
    return made


def bytes_as_tokens(text: str, vocabulary: int) -> list[int]:
    """The UTF-8 bytes of a text as token ids; a vocabulary of at least 264 holds all of them."""
    return [min(SPECIAL_TOKENS + byte, vocabulary - 1) for byte in text.encode("utf-8", errors="replace")]


def sequences_of_folder(folder: Path, count: int, length: int, vocabulary: int) -> list[list[int]]:
    """Sequences of equal length out of all texts, one after the other with a separator between them.

    Raises:
        SpecError: There is no text, too little of it, or a file cannot be read; the message names file and line.
    """
    made: list[list[int]] = []
    rest: list[int] = []
    for text in texts_of(folder, ("text",)):
        rest += [*bytes_as_tokens(text["text"], vocabulary), SEP]
        while len(rest) >= length and len(made) < count:
            made.append(rest[:length])
            del rest[:length]
        if len(made) == count:
            return made
    if not made:
        raise SpecError("data-too-little", path=str(folder), needed=length, found=len(rest))
    # Fewer than the steps need: the text is read again from its start, as another epoch.
    return [made[index % len(made)] for index in range(count)]


def pairs_of_folder(folder: Path, count: int) -> list[tuple[str, str]]:
    """Articles and their summaries.

    Raises:
        SpecError: As for `sequences_of_folder`; each line needs the fields `article` and `highlights`.
    """
    made: list[tuple[str, str]] = []
    for found in texts_of(folder, ("article", "highlights")):
        made.append((found["article"], found["highlights"]))
        if len(made) == count:
            return made
    if not made:
        raise SpecError("data-too-little", path=str(folder), needed=1, found=0)
    return [made[index % len(made)] for index in range(count)]


def texts_of(folder: Path, fields: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Every text of a folder, in the order of the files' names.

    Args:
        folder: Holds .txt (one text per line), .jsonl and .parquet files.
        fields: What each text must have; a line of a .txt file is the field `text`.

    Raises:
        SpecError: The folder has no such file, or one cannot be read.
    """
    if not folder.is_dir():
        raise SpecError("data-no-folder", path=str(folder))
    files = sorted(path for path in folder.iterdir() if path.suffix in TEXT_SUFFIXES and path.is_file())
    if not files:
        raise SpecError("data-no-files", path=str(folder), known=", ".join(TEXT_SUFFIXES))
    for path in files:
        if path.suffix == ".parquet":
            yield from _parquet(path, fields)
        elif path.suffix == ".txt":
            if fields != ("text",):
                raise SpecError("data-no-field", path=str(path), line=1, field=fields[0], known="text")
            yield from ({"text": line} for _number, line in _lines(path) if line.strip())
        else:
            yield from _json_lines(path, fields)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES):
            number += 1
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise SpecError("data-not-text", path=str(path), line=number) from error
            if "\x00" in text:
                raise SpecError("data-not-text", path=str(path), line=number)
            yield number, text.rstrip("\n")


def _json_lines(path: Path, fields: tuple[str, ...]) -> Iterator[dict[str, str]]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        try:
            document = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SpecError("data-not-json", path=str(path), line=number, reason=str(error)) from error
        if not isinstance(document, dict):
            raise SpecError("data-not-json", path=str(path), line=number, reason="no object")
        yield {name: _field(document, name, path, number) for name in fields}


def _field(document: dict[str, object], name: str, path: Path, line: int) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        known = ", ".join(sorted(str(key) for key in document)[:10])
        raise SpecError("data-no-field", path=str(path), line=line, field=name, known=known)
    return value


def _parquet(path: Path, fields: tuple[str, ...]) -> Iterator[dict[str, str]]:
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            missing = [name for name in fields if name not in file.schema_arrow.names]
            if missing:
                known = ", ".join(file.schema_arrow.names[:10])
                raise SpecError("data-no-field", path=str(path), line=1, field=missing[0], known=known)
            for batch in file.iter_batches(batch_size=256, columns=list(fields)):
                for row in batch.to_pylist():
                    yield {name: str(row[name] or "") for name in fields}
    except (pyarrow.ArrowException, OSError) as error:
        raise SpecError("data-not-parquet", path=str(path), reason=str(error)[:200]) from error

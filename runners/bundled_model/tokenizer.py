"""The tokenizer: CLIP's own kind, with byte-pair merges that make each known word one token.

Any other text still has tokens, down to single bytes. The files are made from the vocabulary alone, always the same.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runners.bundled_model.vocabulary import MAX_TOKENS, known_words

if TYPE_CHECKING:
    from transformers import CLIPTokenizer

WORD_END = "</w>"
START = "<|startoftext|>"
END = "<|endoftext|>"


def byte_symbols() -> list[str]:
    """Return the printable symbol of each byte, in CLIP's order."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + index) for index in range(len(others))]


def learn_merges(words: list[str]) -> list[tuple[str, str]]:
    """Return the byte-pair merges, in order, that turn each word into a single token.

    The usual training, run to its end: join the pair that is most frequent (the first in the alphabet among equals)
    until every word is one symbol.
    """
    splits = [[*word[:-1], word[-1] + WORD_END] for word in sorted(words)]
    merges: list[tuple[str, str]] = []
    while any(len(split) > 1 for split in splits):
        pairs = Counter(pair for split in splits for pair in itertools.pairwise(split))
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        splits = [_joined(split, best) for split in splits]
    return merges


def _joined(split: list[str], pair: tuple[str, str]) -> list[str]:
    out: list[str] = []
    index = 0
    while index < len(split):
        if tuple(split[index : index + 2]) == pair:
            out.append(split[index] + split[index + 1])
            index += 2
        else:
            out.append(split[index])
            index += 1
    return out


def write_tokenizer(folder: Path) -> None:
    """Write the tokenizer in both formats: ``tokenizer.json`` for transformers 5, vocabulary and merges for 4."""
    folder.mkdir(parents=True, exist_ok=True)
    merges = learn_merges(sorted(known_words()))
    symbols = byte_symbols()
    tokens = [*symbols, *(symbol + WORD_END for symbol in symbols), *("".join(pair) for pair in merges), START, END]
    ids = {token: index for index, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(ids, ensure_ascii=False), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _write_json(folder / "special_tokens_map.json", special_tokens())
    settings = {"tokenizer_class": "CLIPTokenizer", "model_max_length": MAX_TOKENS, "do_lower_case": True}
    _write_json(folder / "tokenizer_config.json", {**settings, "errors": "replace", **special_tokens()})
    _write_fast_format(folder, ids, merges)


def special_tokens() -> dict[str, str]:
    """Return the special tokens by role, as in Stable Diffusion 1."""
    return {"bos_token": START, "eos_token": END, "unk_token": END, "pad_token": END}


def _write_fast_format(folder: Path, ids: dict[str, int], merges: list[tuple[str, str]]) -> None:
    from transformers import CLIPTokenizer

    tokenizer = CLIPTokenizer(vocab=ids, merges=merges, **special_tokens())
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def load_tokenizer(folder: Path) -> CLIPTokenizer:
    """Return the tokenizer that a pipeline folder holds."""
    from transformers import CLIPTokenizer

    tokenizer: CLIPTokenizer = CLIPTokenizer.from_pretrained(folder)
    return tokenizer

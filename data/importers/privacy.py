"""What is about a person or a machine's place in a network is dropped.

Importers copy named fields only, so most of it never comes along. Texts that are copied may still hold a home folder, a
token or an address; these take them out.
"""

import re
from collections.abc import Mapping
from typing import Any

_SECRETS = re.compile(
    r"(?:hf_|ghp_|github_pat_|glpat-|xox[bpars]-|sk-|AKIA)[A-Za-z0-9_\-]{8,}"  # tokens of well-known makers
    r"|[\w.+-]+@[\w-]+\.[\w.]+"  # addresses
    r"|\b\d{1,3}(?:\.\d{1,3}){3}\b"  # IP addresses
    r"|(?<=://)[^/\s@]+@"  # name and password of an address
    r"|(?i:(?<=token[=:])|(?<=password[=:])|(?<=api_key[=:])|(?<=secret[=:]))\S+"
)
_FOLDER = re.compile(r"(?:~|\b[A-Za-z]:(?=[\\/](?!/))|(?<![\w:/.])(?=/[\w.]))(?:[\\/][^\\/\s:;,'\"]+)*[\\/]")
_REMOVED = "…"


def clean(text: str) -> str:
    """The text without tokens, addresses and the folders of paths: `/home/jo/sd-1.4` becomes `sd-1.4`."""
    return _FOLDER.sub("", _SECRETS.sub(_REMOVED, text)).strip()


def clean_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same for every text in nested values."""
    return {str(name): _cleaned(value) for name, value in values.items()}


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return clean_values(value)
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return value

"""PNGs of the common Stable Diffusion web interfaces: an image with the settings that made it, and no time.

`runners.png_settings` reads the settings. The image is kept without its own metadata, which may name folders, people
and whatever a workflow holds.
"""

import struct
import zlib
from collections.abc import Iterator

from data.importers.draft import Draft, ImportRefused, model_name
from data.importers.privacy import clean
from data.importers.reading import Source
from runners.errors import SpecError
from runners.png_settings import MAX_FILE_BYTES, read_png_settings

SIGNATURE = b"\x89PNG\r\n\x1a\n"
_KEPT = (b"IHDR", b"PLTE", b"tRNS", b"sRGB", b"gAMA", b"cHRM", b"IDAT", b"IEND")


def read(source: Source) -> list[Draft]:
    """One run without a measurement.

    Raises:
        ImportRefused: The file is damaged, too large, or says nothing about how it was made.
    """
    try:
        with source.path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        settings = read_png_settings(content)
    except SpecError as error:
        raise ImportRefused("import-png", file=source.name, reason=str(error)) from error
    except OSError as error:
        raise ImportRefused("import-unreadable", file=source.name, reason=str(error)) from error
    image = b"".join((SIGNATURE, *_chunks(source, content)))
    width, height = struct.unpack_from(">II", image, 16)
    fields = {name: clean(value) if isinstance(value, str) else value for name, value in settings.fields.items()}
    model = fields.get("weights")
    return [
        Draft(
            title=settings.origin,
            workload="text-to-image",
            conditions={
                "model": None if model in (None, "bundled", "architecture") else model_name(str(model)),
                "width_px": width,
                "height_px": height,
                "steps": fields.get("steps"),
                "guidance": None if fields.get("guidance") is None else float(fields["guidance"]),
                "scheduler": fields.get("scheduler"),
                "precision": fields.get("precision"),
            },
            spec=fields,
            details={
                "program": settings.origin,
                "left_out": {clean(name): clean(value) for name, value in settings.left_out},
            },
            warnings=("import-no-time",),
            image=image,
        )
    ]


def _chunks(source: Source, content: bytes) -> Iterator[bytes]:
    """The chunks that make the picture, each with its checksum compared; texts, EXIF and private chunks are not."""
    position, kind = len(SIGNATURE), b""
    while kind != b"IEND":
        header = content[position : position + 8]
        if len(header) < 8:
            raise ImportRefused("import-cut-short", file=source.name, missing="IEND")
        length, kind = struct.unpack(">I4s", header)
        chunk = content[position : position + length + 12]
        if len(chunk) < length + 12:
            raise ImportRefused("import-cut-short", file=source.name, missing="IEND")
        if zlib.crc32(chunk[4:-4]) != struct.unpack(">I", chunk[-4:])[0]:
            raise ImportRefused("import-odd", file=source.name, what=kind.decode("ascii", "replace"))
        if (position == len(SIGNATURE)) != (kind == b"IHDR"):
            raise ImportRefused("import-odd", file=source.name, what="IHDR")
        if kind in _KEPT:
            yield chunk
        position += length + 12

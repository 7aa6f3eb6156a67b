"""The data layer's errors: a message id and parameters, rendered by whoever shows them."""

from data.messages import render


class StoreError(Exception):
    """Something about stored data that a person can act on; `str()` is the English sentence.

    Attributes:
        message_id: Key of `data.messages.MESSAGES`.
        params: Values for its placeholders; plain JSON types.
    """

    def __init__(self, message_id: str, **params: object) -> None:
        """Takes the id and the values that its sentence names."""
        super().__init__(render(message_id, params))
        self.message_id = message_id
        self.params = params


class StoreBusy(StoreError):
    """Another process has the database file open; `params["pid"]` names it, or is "unknown"."""


class CatalogueError(StoreError):
    """The reference catalogue has bad rows; `params["problems"]` lists them."""


class QueryError(StoreError):
    """A query of a person was refused, failed, or took too long."""


class UnknownMeasurement(StoreError):
    """No run and no reference has that id."""

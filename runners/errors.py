"""The runners' errors: a message id and parameters, rendered by whoever shows them."""

from runners.messages import render


class RunnersError(Exception):
    """Something a person can act on; `str()` is the English sentence.

    Attributes:
        message_id: Key of `runners.messages.MESSAGES`.
        params: Values for its placeholders; plain JSON types.
    """

    def __init__(self, message_id: str, **params: object) -> None:
        """Takes the id and the values that its sentence names."""
        self.message = render(message_id, params)
        super().__init__(self.message)
        self.message_id = message_id
        self.params = params


class SpecError(RunnersError):
    """The specification of a run is not usable; nothing was started."""


class UnknownWorkload(SpecError):
    """No workload has that name."""


class RecordError(RunnersError):
    """A record or run folder cannot be read."""


class DeviceBusy(RunnersError):
    """Another process holds the device's lease."""


class DeviceUnavailable(RunnersError):
    """The device is not on this machine, or cannot do what was asked."""


class DoesNotFit(RunnersError):
    """Preflight found that memory will not suffice."""


class WeightsError(RunnersError):
    """Model weights are missing, unsafe or broken."""


class WorkerError(RunnersError):
    """The generation worker died, or does not answer."""


class Cancelled(RunnersError):
    """A person asked the run to stop."""

    def __init__(self) -> None:
        """Cancellation has no parameters."""
        super().__init__("cancelled")


class WorkloadFailed(RunnersError):
    """The workload itself found that its result is not usable."""

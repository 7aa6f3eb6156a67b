"""A gate that many threads pass at once, and that one can have for itself."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Lets threads use something together until one of them has to exchange it."""

    def __init__(self) -> None:
        """An open gate with nobody inside."""
        self._changed = threading.Condition()
        self._inside = 0
        self._taken = False
        self._own = threading.local()

    @property
    def is_inside(self) -> bool:
        """Whether this thread is inside already; it must not enter twice."""
        return getattr(self._own, "inside", False)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Inside together with others."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken)
            self._inside += 1
        self._own.inside = True
        try:
            yield
        finally:
            self._own.inside = False
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Inside with nobody else; waits for those who are inside, and lets nobody in meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken)
            self._taken = True
            self._changed.wait_for(lambda: self._inside == 0)
        self._own.inside = True
        try:
            yield
        finally:
            self._own.inside = False
            with self._changed:
                self._taken = False
                self._changed.notify_all()

"""Background work: the queue, the triggers that fill it, and the workers that empty it."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

if TYPE_CHECKING:
    from lukasa.service.jobs import allowance, budget, handlers, queue, task, triggers, worker

__all__ = ["allowance", "budget", "handlers", "queue", "task", "triggers", "worker"]

__getattr__ = submodules(__name__, __all__)

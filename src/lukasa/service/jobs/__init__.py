"""Background work: the queue, the triggers that fill it, and the workers that empty it."""

from typing import TYPE_CHECKING

from lukasa.model import submodules

__all__ = ["allowance", "budget", "handlers", "queue", "task", "triggers", "worker"]

if TYPE_CHECKING:
    from lukasa.service.jobs import allowance, budget, handlers, queue, task, triggers, worker
else:
    __getattr__ = submodules(__name__, __all__)

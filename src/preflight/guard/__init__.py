"""What a training script may import: a save, stacks, the last steps, when they are needed.

    from preflight import guard

    with guard.install(save=lambda ask: checkpoint(f"step-{ask.step}")) as watch:
        for step, batch in enumerate(batches):
            ...
            if watch.step(step, loss=loss.item(), grad_norm=norm, lr=lr):
                break  # asked to end, on every rank at this step

`kill -USR1 PID` of any one rank: each rank saves at the same next step boundary. `kill -USR2 PID`:
the stacks of all threads and the memory, in a file, without stopping. A crash leaves the last steps
as JSON lines that `preflight diagnose-step-time` reads. Needs Python 3.9 and its standard library;
of torch it uses what the script has imported.
"""

from __future__ import annotations

from .boundary import Guard
from .installing import install
from .records import Event, GuardError, Save

__all__ = ["Event", "Guard", "GuardError", "Save", "install"]

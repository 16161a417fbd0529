"""A loop under the guard: `kill -USR1 PID` saves, `kill -TERM PID` saves and ends it."""

import signal
import sys
from pathlib import Path

import torch

from preflight import guard

model = torch.nn.Linear(8, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def save(ask):
    name = f"step-{ask.step}{'-suspect' if ask.suspect else ''}.pt"
    torch.save({"step": ask.step, "model": model.state_dict()}, f"{name}.new")
    Path(f"{name}.new").replace(name)  # whole, or not there


with guard.install(save=save, stop_on=signal.SIGTERM) as watch:
    for step in range(int(sys.argv[1])):
        inputs = torch.randn(32, 8)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if watch.step(step, loss=loss.item(), grad_norm=norm.item(), lr=1e-3):
            break

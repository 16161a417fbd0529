"""The guard as a callback of the Trainer: Trainer(..., callbacks=[GuardCallback()])."""

import signal

from transformers import TrainerCallback

from preflight import guard


class GuardCallback(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.due = False
        folder = f"{args.output_dir}/guard"
        self.watch = guard.install(save=self.save, stop_on=signal.SIGTERM, folder=folder)

    def save(self, ask):
        self.due = True  # the Trainer itself saves at the end of this step, on every rank

    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop |= self.watch.step(state.global_step)
        control.should_save |= self.due
        self.due = False

    def on_log(self, args, state, control, logs, **kwargs):
        if "loss" in logs:  # with logging_nan_inf_filter=False, else a NaN is hidden
            figures = logs["loss"], logs.get("grad_norm")
            self.watch.record(state.global_step, *figures, lr=logs.get("learning_rate"))

    def on_train_end(self, args, state, control, **kwargs):
        self.watch.uninstall()

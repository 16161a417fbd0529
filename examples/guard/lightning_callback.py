"""The guard as a callback of Lightning: Trainer(callbacks=[GuardCallback("checkpoints")])."""

from lightning.pytorch import Callback

from preflight import guard


class GuardCallback(Callback):
    def __init__(self, folder):
        self.folder, self.step = folder, 0

    def on_train_start(self, trainer, module):  # by now Lightning has caught its own signals
        def save(ask):
            trainer.save_checkpoint(f"{self.folder}/guard-step-{ask.step}.ckpt")

        self.watch = guard.install(save=save, folder=f"{self.folder}/guard")

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step == self.step:
            return  # gradients still accumulate
        self.step = trainer.global_step
        loss = outputs["loss"].item() if self.step % 10 == 0 else None  # the GPU is waited for
        trainer.should_stop |= self.watch.step(self.step, loss=loss)

    def on_train_end(self, trainer, module):
        self.watch.uninstall()

    def on_exception(self, trainer, module, exception):
        self.watch.uninstall(exception)

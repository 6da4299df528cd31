"""Runs from other libraries: callbacks that store them, and readers of experiment trackers.

- ``lightning.StoreLightningRun`` and ``hugging_face.StoreTrainerRun`` store the predictions of a training when it ends;
- ``load_measurements`` and ``load_predictions`` of ``mlflow``, ``wandb`` and ``optuna`` read runs of these trackers.

Import the module of a library by name; nothing here imports the libraries.
"""

"""Facts as data: devices, models, optimizers, precision recipes, frameworks and the sources of them all."""

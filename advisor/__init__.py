"""TrainFit: will a large-model training job fit, what fills the memory, which configuration to run and why."""

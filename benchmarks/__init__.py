"""How fast TrainFit is, as ratios within one run on one machine: ``python -m benchmarks``."""

"""The web's side of the doors: who may ask, what is counted and logged, how errors and batches look."""

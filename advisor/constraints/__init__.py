"""The law: what is legal, as data in ``rules/`` and as one check for a layout and for columns of layouts."""

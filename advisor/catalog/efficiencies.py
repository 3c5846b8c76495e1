"""How fast hardware is in use: matrix ceilings by format, and the fitted shares of them. From efficiencies.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from advisor import units
from advisor.catalog.reader import read_catalog_file
from advisor.types.case import Device


@cache
def matmul_ceilings(device: str) -> Mapping[str, float]:
    """Best measured matrix rate in FLOP/s by number format, for a device of the catalog; empty where none is listed."""
    formats = read_catalog_file("efficiencies.yaml")["ceilings"].get(device, {})
    return {name: entry["value"] * units.TERA for name, entry in formats.items()}


def matmul_ceiling(device: Device, number_format: str) -> float:
    """FLOP/s that matrices in a format can reach; a format without a measurement is taken to run as bf16 does."""
    listed = matmul_ceilings(device.name)
    return listed.get(number_format) or listed.get("bf16") or device.matmul_flops_per_s


@cache
def efficiencies(field: str = "value") -> Mapping[str, float]:
    """Every fitted value by its symbol; ``expected`` for what the fit is drawn to."""
    return {name: float(entry[field]) for name, entry in read_catalog_file("efficiencies.yaml")["shares"].items()}


@cache
def hosts() -> Mapping[str, float]:
    """Bytes/s of a node in use: ``memory`` under the optimizer's traffic, ``nvme`` between reading and writing."""
    entries = read_catalog_file("efficiencies.yaml")["hosts"]
    return {name: float(units.gb(entry["value"])) for name, entry in entries.items()}

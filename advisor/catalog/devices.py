"""Accelerators: a device by any of its names, and what a line such as "4x8 H100-80GB" asks for.

The vendors' gigabytes of device memory are binary, so the files write them as GiB; their rates are decimal.
"""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from advisor import units
from advisor.catalog.reader import catalog_folder, entry_ids, normalised, parse_yaml, read_catalog_file
from advisor.errors import AdvisorError, unknown_name
from advisor.types.case import Device

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: No job is larger; it also keeps a mistyped count from becoming an endless search.
MOST_GPUS: Final = 1_000_000

ACCEPTED: Final = "'4x8 H100-80GB' (nodes x GPUs per node), '64 H200', '2 nodes x 8 A100', '1 RTX-4090' or 'H100'"

_IN_BASE_UNITS: Final[Mapping[str, Callable[[float], int]]] = {
    "bytes": round,
    "KiB": lambda number: round(number * units.KIB),
    "GiB": units.gib,
    "GB": units.gb,
    "GB/s": units.gb,
    "TFLOP/s": lambda number: round(number * units.TERA),
    "GPUs": round,
}

# A count of nodes is followed by another count or by the word itself; a count of GPUs by a space, "x" or "GPUs".
_NODES: Final = r"(?:(?P<nodes>\d{1,12})\s*(?:nodes?\s*(?:[x*\u00d7]|of|with)?|[x*\u00d7](?=\s*\d+[\s*x\u00d7]))\s*)?"
_GPUS: Final = r"(?:(?P<gpus>\d{1,12})\s*(?:[x*\u00d7]\s*|gpus?\s+|\s))?"
_HARDWARE: Final = re.compile(rf"{_NODES}{_GPUS}\s*(?P<device>[a-z].*|\d{{4}}\b.*)", re.IGNORECASE | re.ASCII)


class Hardware(NamedTuple):
    """What a hardware line asks for."""

    device: Device
    nodes: int
    gpus_per_node: int


@cache
def find_device(name: str, *, pointer: str = "/hardware") -> Device:
    """The device with this id or alias; case and separators do not matter.

    Raises:
        AdvisorError: ``unknown_device`` with the nearest names.
    """
    wanted = normalised(name)
    by_id = {normalised(device_id): device_id for device_id in entry_ids("devices")}
    found = by_id.get(wanted) or _by_alias().get(wanted)
    if found is None:
        known = [*entry_ids("devices"), *(alias for names in device_aliases().values() for alias in names)]
        raise unknown_name("device", _shortened(name), known, pointer=pointer)
    return _device(found)


def parse_hardware(text: str, *, pointer: str = "/hardware") -> Hardware:
    """The device, the nodes and the GPUs per node that a hardware line asks for.

    A bare count larger than a node becomes full nodes, or else the fewest even nodes that are at least half full.

    Raises:
        AdvisorError: ``unreadable_hardware`` when the line has no such form or its counts make no cluster,
            ``unknown_device`` when its last part names no device.
    """
    line = " ".join(text.split())
    refuse = partial(_unreadable, line, pointer)
    match = _HARDWARE.fullmatch(line)
    if match is None:
        raise refuse("is not a hardware line")
    device = find_device(match["device"], pointer=pointer)
    if match["nodes"] is None:
        return _spread(int(match["gpus"] or 1), device, refuse)
    return _as_given(int(match["nodes"]), int(match["gpus"] or device.gpus_per_node), device, refuse)


@cache
def device_aliases() -> Mapping[str, tuple[str, ...]]:
    """The aliases of every device, by its id.

    Only the line with the aliases is parsed: a name costs a few milliseconds, not the reading of all files.
    """
    folder = catalog_folder() / "devices"
    lines = []
    for device_id in entry_ids("devices"):
        text = (folder / f"{device_id}.yaml").read_text(encoding="utf-8")
        lines += [f"{device_id}:{line[8:]}" for line in text.splitlines() if line.startswith("aliases:")]
    found: Mapping[str, list[str]] = parse_yaml("\n".join(lines), name="devices") or {}
    return {device_id: tuple(str(alias) for alias in names) for device_id, names in found.items()}


@cache
def _by_alias() -> Mapping[str, str]:
    return {normalised(alias): device_id for device_id, names in device_aliases().items() for alias in names}


def _device(device_id: str) -> Device:
    entry = read_catalog_file(f"devices/{device_id}.yaml")
    bf16 = _amount(entry["bf16_dense"])
    return Device(
        name=device_id,
        vendor=entry["vendor"],
        generation=entry["generation"],
        nominal_bytes=_amount(entry["memory"]),
        driver_bytes=_amount(entry["driver_memory"]),
        driver_bytes_sourced=entry["driver_memory"]["sourced"],
        memory_bytes_per_s=_amount(entry["memory_bandwidth"]),
        bf16_flops_per_s=bf16,
        matmul_flops_per_s=_amount(entry["bf16_measured"]) if "bf16_measured" in entry else bf16,
        scale_up_bytes_per_s=_amount(entry["scale_up"]),
        scale_up_domain=_amount(entry["scale_up_domain"]),
        host_link_bytes_per_s=_amount(entry["host_link"]),
        network_bytes_per_s=_amount(entry["network"]),
        gpus_per_node=_amount(entry["gpus_per_node"]),
        context_bytes=_amount(entry["context"]),
    )


def _amount(quantity: Mapping[str, Any]) -> int:
    return _IN_BASE_UNITS[quantity["unit"]](quantity["value"])


def _as_given(nodes: int, gpus_per_node: int, device: Device, refuse: Callable[..., AdvisorError]) -> Hardware:
    _check_size(nodes * gpus_per_node, refuse)
    full = device.gpus_per_node
    # Boxes with more GPUs than usual exist, and a rack-scale domain may be called one node; 64 in one node is a slip.
    if gpus_per_node > max(2 * full, device.scale_up_domain):
        problem = f"puts {gpus_per_node} GPUs in a node, and nodes of {device.name} hold {full}"
        raise refuse(problem, f"{gpus_per_node * nodes} {device.name}")
    return Hardware(device, nodes, gpus_per_node)


def _spread(gpus: int, device: Device, refuse: Callable[..., AdvisorError]) -> Hardware:
    _check_size(gpus, refuse)
    full = device.gpus_per_node
    if gpus <= full:
        return Hardware(device, 1, gpus)
    for gpus_per_node in range(full, (full - 1) // 2, -1):
        if gpus % gpus_per_node == 0:
            return Hardware(device, gpus // gpus_per_node, gpus_per_node)
    fewer = gpus // full * full
    problem = f"does not spread evenly over nodes of {device.name}, which hold {full}"
    raise refuse(problem, f"{fewer} {device.name}", f"{fewer + full} {device.name}")


def _check_size(gpus: int, refuse: Callable[..., AdvisorError]) -> None:
    if not 1 <= gpus <= MOST_GPUS:
        raise refuse(f"asks for {gpus:,} GPUs, and a cluster has from 1 to {MOST_GPUS:,}")


def _unreadable(line: str, pointer: str, problem: str, *suggestions: str) -> AdvisorError:
    detail = f"{_shortened(line)!r} {problem}; accepted: {ACCEPTED}"
    return AdvisorError("unreadable_hardware", detail, pointer=pointer, suggestions=suggestions)


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - one line of an error

"""Reads MessagePack, as far as the metadata of AMD code objects use it."""

import struct

_NUMBERS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_LENGTHS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xDC: ">H", 0xDD: ">I", 0xDE: ">H", 0xDF: ">I"}


def decode(data: bytes):
    """The value in `data`; raises ValueError or struct.error for anything else."""
    value, _ = _value(data, 0)
    return value


def _value(data, at):
    (type_,) = struct.unpack_from("B", data, at)
    at += 1
    if type_ < 0x80:
        return type_, at
    if type_ >= 0xE0:
        return type_ - 0x100, at
    if type_ in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[type_], at
    if type_ in _NUMBERS:
        return struct.unpack_from(_NUMBERS[type_], data, at)[0], at + struct.calcsize(_NUMBERS[type_])
    if type_ in _LENGTHS:
        (length,) = struct.unpack_from(_LENGTHS[type_], data, at)
        at += struct.calcsize(_LENGTHS[type_])
        kind = "text" if type_ < 0xDC else "list" if type_ < 0xDE else "map"
    elif type_ < 0xC0:
        kind, length = ("map", type_ & 0xF) if type_ < 0x90 else ("list", type_ & 0xF) if type_ < 0xA0 else ("text", type_ & 0x1F)
    else:
        raise ValueError(f"a value of type {type_:#x}")
    if kind == "text":
        if at + length > len(data):
            raise ValueError("a text that ends early")
        return data[at:at + length].decode(), at + length
    if kind == "list":
        values = []
        for _ in range(length):
            value, at = _value(data, at)
            values.append(value)
        return values, at
    values = {}
    for _ in range(length):
        key, at = _value(data, at)
        values[key], at = _value(data, at)
    return values, at

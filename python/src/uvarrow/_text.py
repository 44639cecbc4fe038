# SPDX-License-Identifier: Apache-2.0
"""The types of Arrow as text, for a schema that is printed."""

_NAMES = {
    "n": "null", "b": "bool", "c": "int8", "C": "uint8", "s": "int16",
    "S": "uint16", "i": "int32", "I": "uint32", "l": "int64", "L": "uint64",
    "e": "float16", "f": "float32", "g": "float64", "z": "binary",
    "Z": "large_binary", "vz": "binary_view", "u": "string",
    "U": "large_string", "vu": "string_view", "tdD": "date32", "tdm": "date64",
    "tts": "time32[s]", "ttm": "time32[ms]", "ttu": "time64[us]",
    "ttn": "time64[ns]", "tDs": "duration[s]", "tDm": "duration[ms]",
    "tDu": "duration[us]", "tDn": "duration[ns]", "tiM": "month_interval",
    "tiD": "day_time_interval", "tin": "month_day_nano_interval",
}
_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}
_LISTS = {"+l": "list", "+L": "large_list", "+vl": "list_view",
          "+vL": "large_list_view", "+m": "map", "+r": "run_end_encoded"}


def type_text(field):
    """The type of a field: (name, format, nullable, children, dictionary)."""
    _, code, _, children, dictionary = field
    if dictionary is not None:
        return f"dictionary<{type_text(dictionary)}>"
    inner = ", ".join(f"{child[0]}: {type_text(child)}" for child in children)
    if code in _NAMES:
        return _NAMES[code]
    if code.startswith("ts"):
        unit, _, zone = code[2:].partition(":")
        return f"timestamp[{_UNITS.get(unit, unit)}{', ' + zone if zone else ''}]"
    if code.startswith("d:"):
        return f"decimal({code[2:]})"
    if code.startswith("w:"):
        return f"fixed_size_binary({code[2:]})"
    if code in _LISTS:
        return f"{_LISTS[code]}<{inner}>"
    if code.startswith("+w:"):
        return f"fixed_size_list({code[3:]})<{inner}>"
    if code == "+s":
        return f"struct<{inner}>"
    if code.startswith("+u"):
        return f"union<{inner}>"
    return code


def schema_text(schema):
    """A line for each column: its name and type."""
    return "\n".join(
        f"{field[0]}: {type_text(field)}{'' if field[2] else ' not null'}"
        for field in schema._fields[3])

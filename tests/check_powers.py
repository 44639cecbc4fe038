#!/usr/bin/env python3
"""Fails when a number in the table of runtime/io/text_powers.c is wrong: each is
computed anew, with integers of any size.
Usage: check_powers.py ROOT [--write | --self-test]

--write prints the lines of the table. --self-test proves that a wrong digit is
found.
"""
import re
import sys

LEAST, MOST = -292, 324
TABLE = re.compile(r"\{0x([0-9a-f]{16}), 0x([0-9a-f]{16})\}")


def power(exponent):
    """10^exponent, scaled by a power of two to 128 bits, cut off, plus one."""
    if exponent >= 0:
        value = 10 ** exponent
        shift = 128 - value.bit_length()
        return (value << shift if shift >= 0 else value >> -shift) + 1
    divisor = 10 ** -exponent
    quotient = (1 << divisor.bit_length() + 128) // divisor
    return (quotient >> quotient.bit_length() - 128) + 1


def powers():
    """The two halves of each number, in hexadecimal digits."""
    values = [power(exponent) for exponent in range(LEAST, MOST + 1)]
    return [(f"{value >> 64:016x}", f"{value & (1 << 64) - 1:016x}")
            for value in values]


def wrong(text):
    """The exponents whose numbers differ; all if there are more or fewer."""
    found, expected = TABLE.findall(text), powers()
    if len(found) != len(expected):
        return list(range(LEAST, MOST + 1))
    return [LEAST + i for i, pair in enumerate(found) if pair != expected[i]]


def main():
    if "--write" in sys.argv:
        for high, low in powers():
            print(f"    {{0x{high}, 0x{low}}},")
        return
    with open(sys.argv[1] + "/runtime/io/text_powers.c",
              encoding="utf-8") as source:
        text = source.read()
    if "--self-test" in sys.argv:
        assert wrong(text.replace("0xa000000000000000", "0xa000000000000001"))
        print("a wrong digit is found")
        return
    if wrong(text):
        sys.exit(f"text_powers.c: wrong for the exponents {wrong(text)}")


if __name__ == "__main__":
    main()

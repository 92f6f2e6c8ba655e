"""As much of MessagePack as the protocol needs: nil, booleans, integers, floats, text, bytes, lists and maps."""

import struct

_FORMATS = {
    0xCA: (">f", 4), 0xCB: (">d", 8),
    0xCC: (">B", 1), 0xCD: (">H", 2), 0xCE: (">I", 4), 0xCF: (">Q", 8),
    0xD0: (">b", 1), 0xD1: (">h", 2), 0xD2: (">i", 4), 0xD3: (">q", 8),
}
_LENGTHS = {
    0xC4: ("bin", 1), 0xC5: ("bin", 2), 0xC6: ("bin", 4),
    0xD9: ("str", 1), 0xDA: ("str", 2), 0xDB: ("str", 4),
    0xDC: ("list", 2), 0xDD: ("list", 4),
    0xDE: ("map", 2), 0xDF: ("map", 4),
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}

DEEPEST = 32


def unpack(data):
    """Return the only value of data."""
    value, at = decode(data, 0)
    if at != len(data):
        raise ValueError("something follows the value")
    return value


def decode(data, at, depth=0):
    """Return the value at a place of data, and the place behind it."""
    if at >= len(data):
        raise ValueError("the data ends too early")
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    code = data[at]
    at += 1
    if code < 0x80:
        return code, at
    if code >= 0xE0:
        return code - 0x100, at
    if code < 0x90:
        return _map(data, at, code & 0x0F, depth)
    if code < 0xA0:
        return _list(data, at, code & 0x0F, depth)
    if code < 0xC0:
        return _text(data, at, code & 0x1F)
    if code in _CONSTANTS:
        return _CONSTANTS[code], at
    if code in _FORMATS:
        form, size = _FORMATS[code]
        raw, at = _bytes(data, at, size)
        return struct.unpack(form, raw)[0], at
    if code not in _LENGTHS:
        raise ValueError("code %#x is not used by the protocol" % code)
    kind, size = _LENGTHS[code]
    raw, at = _bytes(data, at, size)
    n = int.from_bytes(raw, "big")
    if kind == "bin":
        return _bytes(data, at, n)
    if kind == "str":
        return _text(data, at, n)
    if kind == "list":
        return _list(data, at, n, depth)
    return _map(data, at, n, depth)


def _bytes(data, at, n):
    end = at + n
    if end > len(data):
        raise ValueError("the data ends too early")
    return bytes(data[at:end]), end


def _text(data, at, n):
    raw, at = _bytes(data, at, n)
    return raw.decode("utf-8", "surrogateescape"), at


def _list(data, at, n, depth):
    items = []
    for _ in range(n):
        item, at = decode(data, at, depth + 1)
        items.append(item)
    return items, at


def _map(data, at, n, depth):
    items = {}
    for _ in range(n):
        key, at = decode(data, at, depth + 1)
        items[key], at = decode(data, at, depth + 1)
    return items, at


def pack(value):
    """Return a value as bytes."""
    out = []
    encode(value, out.append)
    return b"".join(out)


def encode(value, put):
    """Pass a value, piece by piece, to put."""
    if value is None:
        put(b"\xc0")
    elif value is True:
        put(b"\xc3")
    elif value is False:
        put(b"\xc2")
    elif isinstance(value, int):
        put(_integer(value))
    elif isinstance(value, float):
        put(b"\xcb" + struct.pack(">d", value))
    elif isinstance(value, str):
        raw = value.encode("utf-8", "surrogateescape")
        put(head(len(raw), 0xA0, 32, (0xD9, 0xDA, 0xDB)))
        put(raw)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        put(head(len(value), None, 0, (0xC4, 0xC5, 0xC6)))
        put(bytes(value))
    elif isinstance(value, (list, tuple)):
        put(head(len(value), 0x90, 16, (None, 0xDC, 0xDD)))
        for item in value:
            encode(item, put)
    elif isinstance(value, dict):
        put(head(len(value), 0x80, 16, (None, 0xDE, 0xDF)))
        for key, item in value.items():
            encode(key, put)
            encode(item, put)
    else:
        raise TypeError("%s cannot be packed" % type(value).__name__)


def head(n, short, below, codes):
    """Return the code of something and its length."""
    if n < below:
        return bytes((short | n,))
    if n < 1 << 8 and codes[0] is not None:
        return struct.pack(">BB", codes[0], n)
    if n < 1 << 16:
        return struct.pack(">BH", codes[1], n)
    return struct.pack(">BI", codes[2], n)


def _integer(value):
    if 0 <= value < 0x80:
        return bytes((value,))
    if -32 <= value < 0:
        return bytes((value + 0x100,))
    if value >= 0:
        return b"\xcf" + struct.pack(">Q", value)
    return b"\xd3" + struct.pack(">q", value)

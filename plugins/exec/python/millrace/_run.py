"""The loop between the job and a function."""

import os
import struct
import sys
import traceback

from . import _msgpack
from ._message import Message

VERSION = 1

_PREFIX = struct.Struct(">I")
_NIL = b"\xc0"
_NONE = b"\x90"


class Reject(Exception):
    """Raise it to say that a message can never be worked at: it goes to the dead letters."""


class Retry(Exception):
    """Raise it to have a message delivered again, after so many seconds."""

    def __init__(self, text="", after=1.0):
        super().__init__(text)
        self.after = after


def run(function, source=None, sink=None):
    """Call function for each message until the job closes the input.

    Without source and sink, these are the standard input and output; print() then writes to the standard error, which the
    job logs, since the standard output belongs to the protocol.
    """
    if source is None:
        source = sys.stdin.buffer
    if sink is None:
        sink = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)
        sys.stdout = sys.stderr

    try:
        _serve(function, source, sink)
    except (BrokenPipeError, KeyboardInterrupt):
        pass  # the job has ended


def _serve(function, source, sink):
    hello = _read(source)
    if hello is None:
        return
    _write(sink, _msgpack.pack({"millrace": VERSION, "name": getattr(function, "__name__", "function")}))
    greeting = _msgpack.unpack(hello)
    if greeting.get("millrace") != VERSION:
        raise ValueError("the job speaks version %s of the protocol, this is version %d" % (greeting.get("millrace"), VERSION))
    limit = greeting.get("frame", 64 << 20)

    while True:
        frame = _read(source)
        if frame is None:
            return
        answer = _answer(function, frame)
        if len(answer) > limit:
            raise ValueError("the answer has %d bytes, a frame at most %d" % (len(answer), limit))
        _write(sink, answer)


def _read(source):
    head = source.read(_PREFIX.size)
    if len(head) < _PREFIX.size:
        return None
    (n,) = _PREFIX.unpack(head)
    frame = source.read(n)
    if len(frame) < n:
        return None
    return frame


def _write(sink, payload):
    data = memoryview(_PREFIX.pack(len(payload)) + payload)
    while data:
        data = data[sink.write(data):]


def _answer(function, frame):
    """Return the answer to a batch. This is the hot loop: headers are not looked at, bodies are cut out."""
    if frame[0] != 0x93:
        raise ValueError("the frame is no batch")
    kind, at = _msgpack.decode(frame, 1)
    number, at = _msgpack.decode(frame, at)
    if kind != "batch":
        raise ValueError("the frame is %r, not a batch" % kind)
    count, at = _length(frame, at)
    out = [b"\x93\xa4done", _msgpack.pack(number), _msgpack.head(count, 0x90, 16, (None, 0xDC, 0xDD))]
    put = out.append

    for _ in range(count):
        # A pair of bytes: the header and the body. The first three cases are nearly all of them.
        code = frame[at + 1]
        if code == 0xC4:
            start = at + 3
            at = start + frame[at + 2]
        else:
            start, at = _span(frame, at + 1)
        header = frame[start:at]

        code = frame[at]
        if code == 0xC5:
            start = at + 3
            at = start + (frame[at + 1] << 8 | frame[at + 2])
        else:
            start, at = _span(frame, at)

        message = Message(header, frame[start:at])
        try:
            result = function(message)
            if result is message and message._changes is None:
                put(_NIL)
            elif result is None:
                put(_NONE)
            else:
                put(_result(result))
        except Exception as error:  # whatever the function raises is the message's failure
            put(_failure(error))

    return b"".join(out)


def _length(frame, at):
    code = frame[at]
    if code & 0xF0 == 0x90:
        return code & 0x0F, at + 1
    size = {0xDC: 2, 0xDD: 4}[code]
    return int.from_bytes(frame[at + 1:at + 1 + size], "big"), at + 1 + size


def _span(frame, at):
    """Return where the bytes begin and end whose code is at a place."""
    size = {0xC4: 1, 0xC5: 2, 0xC6: 4}[frame[at]]
    start = at + 1 + size
    return start, start + int.from_bytes(frame[at + 1:start], "big")


def _result(result):
    messages = [result] if isinstance(result, Message) else list(result)
    out = [_msgpack.head(len(messages), 0x90, 16, (None, 0xDC, 0xDD))]
    for m in messages:
        if not isinstance(m, Message):
            raise TypeError("the function returned %s among its messages" % type(m).__name__)
        _msgpack.encode(m._changes, out.append)
    return b"".join(out)


def _failure(error):
    if isinstance(error, Reject):
        return _msgpack.pack({"error": str(error), "reject": True})
    if isinstance(error, Retry):
        return _msgpack.pack({"error": str(error), "retry_ms": min(max(int(error.after * 1000), 0), 0xFFFFFFFF)})
    traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)
    return _msgpack.pack({"error": "%s: %s" % (type(error).__name__, error)})

"""Tests of the package; run them with python3 -m unittest."""

import contextlib
import io
import os
import struct
import subprocess
import sys
import unittest

import millrace
from millrace import _msgpack
from millrace._run import _serve

HERE = os.path.dirname(os.path.abspath(__file__))


def framed(value):
    payload = _msgpack.pack(value)
    return struct.pack(">I", len(payload)) + payload


def frames(data):
    found = []
    while data:
        (n,) = struct.unpack(">I", data[:4])
        found.append(_msgpack.unpack(data[4:4 + n]))
        data = data[4 + n:]
    return found


def pair(body, **header):
    return [_msgpack.pack(header), body]


def serve(function, *pairs, hello=None):
    sink = io.BytesIO()
    source = io.BytesIO(framed(hello or {"millrace": 1, "frame": 1 << 20}) + framed(["batch", 7, list(pairs)]))
    with contextlib.redirect_stderr(io.StringIO()):
        _serve(function, source, sink)
    greeting, answer = frames(sink.getvalue())
    assert greeting["millrace"] == 1
    assert answer[:2] == ["done", 7]
    return answer[2]


class MessagePack(unittest.TestCase):
    def test_values_come_back(self):
        for value in (
            None, True, False, 0, 127, 128, 1 << 40, -1, -32, -33, -(1 << 40), 1.5, "", "ä" * 40, "x" * 300, "x" * 70000,
            b"", b"x" * 300, b"x" * 70000, [], list(range(20)), [0] * 70000, {}, {"a": [{"b": None}]},
            {str(n): n for n in range(20)}, "\udcff",
        ):
            self.assertEqual(_msgpack.unpack(_msgpack.pack(value)), value)

    def test_broken_data_is_refused(self):
        for data in (b"", b"\xc1", b"\xa5abc", b"\xc6\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\x91" * 1000, b"\x01\x02"):
            with self.assertRaises(ValueError):
                _msgpack.unpack(data)
        with self.assertRaises(TypeError):
            _msgpack.pack(object())


class Run(unittest.TestCase):
    def test_what_a_function_returns(self):
        def function(m):
            if m.body == b"same":
                return m
            if m.body == b"none":
                return None
            if m.body == b"two":
                return [m, m.copy(body="x", key="k", props={"p": "v"})]
            if m.body == b"gen":
                return (m.copy(id=str(n)) for n in range(3))
            m.tag = m.key + m.topic + m.id + m.props["a"] + str(m.delivery) + str(m.born)
            m.set_prop("b", "c")
            m.set_json({"body": m.body.decode()})
            return m

        header = {"id": "i", "topic": "q", "key": "k", "props": {"a": "b"}, "born": 5, "delivery": 2}
        got = serve(function, pair(b"same"), pair(b"none"), pair(b"two"), pair(b"gen"), pair(b"x" * 70000, **header))
        self.assertEqual(got[0], None)
        self.assertEqual(got[1], [])
        self.assertEqual(got[2], [None, {"body": b"x", "key": "k", "props": {"p": "v"}}])
        self.assertEqual(got[3], [{"id": "0"}, {"id": "1"}, {"id": "2"}])
        body = b'{"body":"' + b"x" * 70000 + b'"}'
        self.assertEqual(got[4], [{"tag": "kqib25", "props": {"a": "b", "b": "c"}, "body": body}])

    def test_a_message_that_is_read_is_not_changed(self):
        self.assertEqual(serve(lambda m: m if m.json() and not m.key else None, pair(b"[1]")), [None])

    def test_failures_are_of_one_message(self):
        def function(m):
            if m.body == b"reject":
                raise millrace.Reject("never")
            if m.body == b"retry":
                raise millrace.Retry("later", after=1.5)
            if m.body == b"bug":
                return m.nothing
            if m.body == b"wrong":
                return [5]
            if m.body == b"type":
                m.tag = 5
            return m

        got = serve(function, pair(b"reject"), pair(b"retry"), pair(b"bug"), pair(b"wrong"), pair(b"type"), pair(b"fine"))
        self.assertEqual(got[0], {"error": "never", "reject": True})
        self.assertEqual(got[1], {"error": "later", "retry_ms": 1500})
        for i, word in ((2, "AttributeError"), (3, "TypeError"), (4, "TypeError")):
            self.assertIn(word, got[i]["error"])
        self.assertEqual(got[5], None)

    def test_another_version_is_refused(self):
        with self.assertRaises(ValueError):
            serve(lambda m: m, pair(b"x"), hello={"millrace": 2})

    def test_what_is_printed_stays_out_of_the_protocol(self):
        code = "import millrace\nmillrace.run(lambda m: print('hello', m.body) or m)"
        data = framed({"millrace": 1, "frame": 1 << 20}) + framed(["batch", 1, [pair(b"x")]])
        done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, cwd=HERE, check=True)
        self.assertEqual(frames(done.stdout)[1], ["done", 1, [None]])
        self.assertIn(b"hello b'x'", done.stderr)


if __name__ == "__main__":
    unittest.main()

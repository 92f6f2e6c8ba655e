"""Messages."""

import json

from . import _msgpack


class Message:
    """One message. Only what is changed travels back, so a message that goes on as it is costs next to nothing.

    body is bytes; id, key and tag are text; props is a dict of texts, to be replaced and not changed in place (set_prop
    does that). topic, born (nanoseconds since 1970, 0 for unknown) and delivery (1 for the first attempt) can only be read.
    """

    __slots__ = ("_body", "_changes", "_fields", "_header")

    def __init__(self, header, body):
        self._header = header
        self._body = body
        self._fields = None
        self._changes = None

    def _field(self, name, otherwise):
        if self._changes is not None and name in self._changes:
            return self._changes[name]
        if self._fields is None:
            self._fields = _msgpack.unpack(self._header)
        return self._fields.get(name, otherwise)

    def _change(self, name, value, *kinds):
        if not isinstance(value, kinds):
            raise TypeError("%s is %s, should be %s" % (name, type(value).__name__, kinds[0].__name__))
        if self._changes is None:
            self._changes = {}
        self._changes[name] = value

    @property
    def body(self):
        if self._changes is not None and "body" in self._changes:
            return self._changes["body"]
        return self._body

    @body.setter
    def body(self, value):
        if isinstance(value, str):
            value = value.encode()
        self._change("body", value, bytes, bytearray)

    @property
    def id(self):
        return self._field("id", "")

    @id.setter
    def id(self, value):
        self._change("id", value, str)

    @property
    def key(self):
        return self._field("key", "")

    @key.setter
    def key(self, value):
        self._change("key", value, str)

    @property
    def tag(self):
        return self._field("tag", "")

    @tag.setter
    def tag(self, value):
        self._change("tag", value, str)

    @property
    def props(self):
        return dict(self._field("props", {}))

    @props.setter
    def props(self, value):
        for name, text in value.items():
            if not isinstance(name, str) or not isinstance(text, str):
                raise TypeError("properties are texts, %r is %r" % (name, text))
        self._change("props", value, dict)

    def set_prop(self, name, value):
        """Set one property."""
        props = self.props
        props[name] = value
        self.props = props

    @property
    def topic(self):
        return self._field("topic", "")

    @property
    def born(self):
        return self._field("born", 0)

    @property
    def delivery(self):
        return self._field("delivery", 1)

    def json(self):
        """Return the body, read as JSON."""
        return json.loads(self.body)

    def set_json(self, value):
        """Make the body JSON."""
        self.body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def copy(self, **changes):
        """Return another message that begins as this one is now, but for the changes."""
        other = Message(self._header, self._body)
        other._fields = self._fields
        if self._changes is not None:
            other._changes = dict(self._changes)
        for name, value in changes.items():
            if name not in ("body", "id", "key", "tag", "props"):
                raise TypeError("a message has no %s that can be changed" % name)
            setattr(other, name, value)
        return other

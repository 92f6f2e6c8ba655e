"""Stages for millrace in Python.

    import millrace

    def classify(m):
        quake = m.json()
        m.tag = "major" if quake["mag"] >= 6 else "minor"
        return m

    millrace.run(classify)

The function gets one Message after the other and returns what becomes of it: the message, changed or not; None to filter it;
or an iterable of messages, of which Message.copy() makes more. An exception fails the message, which is delivered again
later; Reject sends it to the dead letters at once, and Retry says when to try again. What is printed goes to the job's log.

Only the standard library is used. The protocol is described in docs/exec.md.
"""

from ._message import Message
from ._run import VERSION, Reject, Retry, run

__all__ = ["VERSION", "Message", "Reject", "Retry", "run"]

"""Gives earthquakes a tag, and throws away what is none."""

import millrace


def classify(m):
    quake = m.json()
    if quake.get("type") != "earthquake":
        return None
    m.tag = "major" if quake["mag"] >= 6 else "minor"
    return m


if __name__ == "__main__":
    millrace.run(classify)

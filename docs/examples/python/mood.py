"""Says whether reviews are good or bad."""

import millrace

GOOD = {"good", "great", "lovely"}
BAD = {"bad", "broken", "late"}


def mood(m):
    review = m.json()
    words = review["text"].lower().split()
    score = sum(w in GOOD for w in words) - sum(w in BAD for w in words)
    review["score"] = score
    m.set_json(review)
    m.tag = "bad" if score < 0 else "good"
    return m  # None would filter it, a list makes several of it, an exception fails it


if __name__ == "__main__":
    millrace.run(mood)

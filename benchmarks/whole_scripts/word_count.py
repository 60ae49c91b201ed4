"""Counts words and pairs of words."""
from collections import Counter
import random

random.seed(5)
words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
text = " ".join(random.choices(words, k=200_000))


def count(text):
    counts, pairs, last = Counter(), {}, None
    for word in text.split():
        counts[word] += 1
        if last is not None:
            pairs[last, word] = pairs.get((last, word), 0) + 1
        last = word
    return counts, pairs


counts, pairs = count(text)
for word, n in counts.most_common(3):
    print(f"{word:10s} {n}")
print(max(pairs.items(), key=lambda item: item[1]))

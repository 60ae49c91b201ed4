import random

WORDS = """accommodate achieve across apparently argument basically beginning believe bizarre business calendar
category colleague committee completely conscience conscious definitely dilemma disappear embarrass environment
existence familiar finally foreign forward friend further gist glamorous government guard happened harass
humorous immediately independent interrupt irresistible knowledge liaison necessary noticeable occasion occurred
persistent pharaoh piece politician possession preferred propaganda publicly really receive referred religious
remember resistance sense separate successful supersede surprise tendency therefore threshold tomorrow tongue
truly unforeseen unfortunately until weird wherever""".split()


def distance(a, b):
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        current = [i]
        for j, y in enumerate(b, 1):
            current.append(min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + (x != y)))
        previous = current
    return previous[-1]


def misspell(word):
    letters = list(word)
    for _ in range(2):
        position = random.randrange(len(letters))
        letters[position] = random.choice("abcdefghijklmnopqrstuvwxyz")
    return "".join(letters)


random.seed(11)
right = 0
tries = 3000
for _ in range(tries):
    word = random.choice(WORDS)
    typed = misspell(word)
    best = min(WORDS, key=lambda candidate: distance(typed, candidate))
    right += best == word
print(f"{right} of {tries} corrected")

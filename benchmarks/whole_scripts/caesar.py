import string


def encrypt(text, shift):
    result = ""
    for letter in text:
        if letter in string.ascii_lowercase:
            result += chr((ord(letter) - 97 + shift) % 26 + 97)
        else:
            result += letter
    return result


def crack(text):
    return max(range(26), key=lambda s: encrypt(text, s).count("the"))


message = "the quick brown fox jumps over the lazy dog near the river " * 200
secret = encrypt(message, 11)
print(crack(secret), encrypt(secret, -11)[:20])

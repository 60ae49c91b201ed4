"""Generators, classes and callbacks."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from benchmarks.plain_program import PlainProgram


def count_up():
    n = 0
    while True:
        yield n
        n += 1


def take_squares(limit):
    total = 0
    for n in count_up():
        if n >= limit:
            return total
        total += n * n


def walk(node):
    if node is not None:
        yield from walk(node[1])
        yield node[0]
        yield from walk(node[2])


def insert(node, value):
    if node is None:
        return (value, None, None)
    if value < node[0]:
        return (node[0], insert(node[1], value), node[2])
    return (node[0], node[1], insert(node[2], value))


def sort_by_tree(values):
    root = None
    for value in values:
        root = insert(root, value)
    return list(walk(root))


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor)

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)

    def norm(self):
        return (self.x * self.x + self.y * self.y) ** 0.5


def fly(steps):
    place, speed = Vector(0.0, 0.0), Vector(3.0, 4.0)
    pull = Vector(0.0, -9.81)
    for _ in range(steps):
        speed = speed + pull * 1e-4
        place = place + speed * 1e-4
    return place, place.norm()


class Account:
    def __init__(self, name):
        self.name, self.balance, self.history = name, 0, []

    def deposit(self, amount):
        self.balance += amount
        self.history.append(("in", amount))

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError("not enough")
        self.balance -= amount
        self.history.append(("out", amount))


def run_bank(orders):
    accounts, refused = {}, 0
    for name, amount in orders:
        account = accounts.setdefault(name, Account(name))
        try:
            if amount < 0:
                account.withdraw(-amount)
            else:
                account.deposit(amount)
        except ValueError:
            refused += 1
    return {name: (account.balance, len(account.history)) for name, account in accounts.items()}, refused


@dataclass
class Node:
    value: int
    left: Node | None = None
    right: Node | None = None
    tags: list = field(default_factory=list)


def add_node(root, value):
    while True:
        side = "left" if value < root.value else "right"
        below = getattr(root, side)
        if below is None:
            setattr(root, side, Node(value))
            return
        root = below


def build_tree(values):
    root = Node(values[0])
    for value in values[1:]:
        add_node(root, value)
    return measure_depth(root)


def measure_depth(root):
    return 0 if root is None else 1 + max(measure_depth(root.left), measure_depth(root.right))


class Stack:
    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def pop(self):
        return self.items.pop()

    def __len__(self):
        return len(self.items)


def match_brackets(text):
    stack, pairs = Stack(), {")": "(", "]": "[", "}": "{"}
    for letter in text:
        if letter in "([{":
            stack.push(letter)
        elif letter in pairs and (not len(stack) or stack.pop() != pairs[letter]):
            return False
    return not len(stack)


class LinkedList:
    def __init__(self):
        self.head, self.size = None, 0

    def push(self, value):
        self.head, self.size = (value, self.head), self.size + 1

    def __iter__(self):
        node = self.head
        while node is not None:
            yield node[0]
            node = node[1]


def fill_linked_list(count):
    chain = LinkedList()
    for k in range(count):
        chain.push(k * k % 97)
    return sum(chain), chain.size


def find_zero(f, a, b, steps):
    for _ in range(steps):
        middle = (a + b) / 2
        if (f(a) < 0) == (f(middle) < 0):
            a = middle
        else:
            b = middle
    return (a + b) / 2


def cubic(x):
    return x**3 - x - 2


def find_many_zeros(count):
    return [find_zero(lambda x, c=c: cubic(x) - c / count, 0.0, 3.0, 50) for c in range(count)]


def chunk(values, size):
    for start in range(0, len(values), size):
        yield values[start : start + size]


def sum_chunks(values, size):
    return [sum(part) for part in chunk(values, size)]


def make_counter():
    count = 0

    def step(by=1):
        nonlocal count
        count += by
        return count

    return step


def count_by_closure(times):
    step = make_counter()
    for k in range(times):
        step(k % 3)
    return step(0)


def _shuffle(count):
    values = list(range(count))
    random.Random(count).shuffle(values)
    return values


def _make_orders(count):
    generator = random.Random(count)
    return [(f"n{generator.randrange(50)}", generator.randrange(-100, 120)) for _ in range(count)]


ROWS = (
    PlainProgram("squares from a generator", take_squares, lambda: (200_000,)),
    PlainProgram("tree of tuples", sort_by_tree, lambda: (_shuffle(5000),)),
    PlainProgram("vectors of a class", fly, lambda: (30_000,)),
    PlainProgram("a bank", run_bank, lambda: (_make_orders(30_000),)),
    PlainProgram("tree of dataclasses", build_tree, lambda: (_shuffle(3000),)),
    PlainProgram("brackets by a stack", match_brackets, lambda: ("([]{()})" * 10_000,)),
    PlainProgram("a linked list", fill_linked_list, lambda: (50_000,)),
    PlainProgram("zeros of closures", find_many_zeros, lambda: (500,)),
    PlainProgram("chunks of a list", sum_chunks, lambda: (list(range(200_000)), 50)),
    PlainProgram("counting in a closure", count_by_closure, lambda: (200_000,)),
)

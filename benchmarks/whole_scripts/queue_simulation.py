import heapq
import random


class Bank:
    def __init__(self, tellers):
        self.free, self.waiting, self.waits = tellers, [], []

    def arrive(self, time, events):
        if self.free:
            self.free -= 1
            self.waits.append(0.0)
            heapq.heappush(events, (time + random.expovariate(0.4), "leave"))
        else:
            self.waiting.append(time)

    def leave(self, time, events):
        if self.waiting:
            self.waits.append(time - self.waiting.pop(0))
            heapq.heappush(events, (time + random.expovariate(0.4), "leave"))
        else:
            self.free += 1


def run(customers):
    bank, events, time = Bank(3), [], 0.0
    for _ in range(customers):
        time += random.expovariate(1.0)
        heapq.heappush(events, (time, "arrive"))
    while events:
        time, kind = heapq.heappop(events)
        getattr(bank, kind)(time, events)
    return sum(bank.waits) / len(bank.waits)


random.seed(6)
print(f"mean wait {run(600_000):.5f}")

import random

random.seed(8)
TARGET = "to be or not to be that is the question"
LETTERS = "abcdefghijklmnopqrstuvwxyz "


class Individual:
    def __init__(self, genes):
        self.genes = genes
        self.fitness = sum(a == b for a, b in zip(genes, TARGET))


def mate(one, other):
    genes = [random.choice(LETTERS) if random.random() < 0.02 else random.choice(pair)
             for pair in zip(one.genes, other.genes)]
    return Individual("".join(genes))


population = [Individual("".join(random.choices(LETTERS, k=len(TARGET)))) for _ in range(200)]
for generation in range(150):
    population.sort(key=lambda individual: -individual.fitness)
    if population[0].fitness == len(TARGET):
        break
    parents = population[:40]
    population = parents + [mate(*random.sample(parents, 2)) for _ in range(160)]
print(generation, population[0].genes)

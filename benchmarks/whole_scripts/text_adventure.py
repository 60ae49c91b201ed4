"""Parses and runs commands of a small language."""


class Machine:
    def __init__(self):
        self.variables, self.output = {}, []

    def value(self, token):
        return self.variables[token] if token in self.variables else int(token)

    def run(self, program):
        lines, at = [line.split() for line in program.strip().splitlines()], 0
        while at < len(lines):
            op, *args = lines[at]
            if op == "set":
                self.variables[args[0]] = self.value(args[1])
            elif op == "add":
                self.variables[args[0]] += self.value(args[1])
            elif op == "jump" and self.value(args[0]) < self.value(args[1]):
                at = int(args[2])
                continue
            elif op == "print":
                self.output.append(str(self.value(args[0])))
            at += 1


machine = Machine()
machine.run("""set i 0
set s 0
add s i
add i 1
jump i 900000 2
print s""")
print("\n".join(machine.output))

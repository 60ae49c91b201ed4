from tests.backends.python.programs import PROGRAMS

"""Modules of the standard library rewritten in place, and CPython's own tests of them run.

`python -m tests.rewrite.library [--plain] MODULE` prints one line of JSON: how many functions were rewritten, how
many tests ran, and the names of those that failed. All functions that rewritten code calls are rewritten too, and
all run the code that looks out for traced values. --plain: nothing is rewritten.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import json
import os
import sys
import types
import unittest
import warnings
from collections.abc import Iterator

import jitcore
from jitcore.rewriter import functions
from jitcore.rewriter.functions import PROBE

#: Modules by the name of their test module, `test.test_NAME`.
MODULES = {
    "argparse": ["argparse"], "ast": ["ast"], "base64": ["base64"], "bisect": ["bisect"], "calendar": ["calendar"],
    "configparser": ["configparser"], "copy": ["copy", "copyreg"], "csv": ["csv"], "dataclasses": ["dataclasses"],
    "decimal": ["decimal", "_pydecimal"], "difflib": ["difflib"], "fnmatch": ["fnmatch"], "fractions": ["fractions", "numbers"],
    "functools": ["functools"], "genericpath": ["genericpath", "posixpath"], "getopt": ["getopt"], "gettext": ["gettext"],
    "graphlib": ["graphlib"], "heapq": ["heapq"], "htmlparser": ["html.parser", "_markupbase"], "inspect": ["inspect"],
    "ipaddress": ["ipaddress"], "json": ["json.decoder", "json.encoder", "json.scanner", "json"], "optparse": ["optparse"],
    "pprint": ["pprint"], "random": ["random"], "reprlib": ["reprlib"], "shlex": ["shlex"], "statistics": ["statistics"],
    "string": ["string"], "textwrap": ["textwrap"], "urlparse": ["urllib.parse"], "uuid": ["uuid"]}


def rewrite_in_place(module: types.ModuleType) -> int:
    """Gives the functions and methods of a module the code of rewritten ones. Returns: of how many."""
    done = 0
    for function in list_functions(vars(module), module.__name__, set()):
        made = functions.resolve(function, is_asked_for=True)
        if made is not function and function.__code__ is not made.__code__:
            function.__code__ = made.__code__
            done += 1
    return done


def list_functions(space: dict, name: str, seen: set[type]) -> Iterator[types.FunctionType]:
    for value in list(space.values()):
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        elif isinstance(value, functools.cached_property):
            value = value.func
        parts = (value.fget, value.fset) if isinstance(value, property) else (value,)
        for part in parts:
            if isinstance(part, types.FunctionType) and part.__module__ == name:
                yield part
        if isinstance(value, type) and value.__module__ == name and value not in seen:
            seen.add(value)
            yield from list_functions(dict(vars(value)), name, seen)


def rewrite_library(names: list[str]) -> list[int]:
    """Rewrites modules, also those that are imported anew later. Returns: a list that gets the counts."""
    package = os.path.dirname(jitcore.__file__) + os.sep
    functions.is_user_code = lambda code: not code.co_filename.startswith((package, "<frozen"))
    PROBE.is_forced = True
    loader, counts = importlib.machinery.SourceFileLoader, []
    load = loader.exec_module

    def exec_module(self, module):
        load(self, module)
        if module.__name__ in names:
            counts.append(rewrite_in_place(module))

    loader.exec_module = exec_module
    for name in names:
        if name in sys.modules:
            counts.append(rewrite_in_place(sys.modules[name]))
        else:
            importlib.import_module(name)
    return counts


def main(arguments: list[str]) -> None:
    warnings.simplefilter("ignore")
    (subject,) = [argument for argument in arguments if argument != "--plain"]
    counts = [] if "--plain" in arguments else rewrite_library(MODULES[subject])
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test.test_{subject}")
    with open(os.devnull, "w") as stream:
        result = unittest.TextTestRunner(stream=stream).run(suite)
    failed = [str(test.id()).removeprefix("test.") for test, _ in (*result.failures, *result.errors)]
    if os.environ.get("SHOW"):
        print("\n".join(text for _, text in (*result.failures, *result.errors)), file=sys.stderr)
    print(json.dumps({"rewritten": sum(counts), "run": result.testsRun, "failed": sorted(set(failed))}))


if __name__ == "__main__":
    main(sys.argv[1:])

"""The command: `python -m benchmarks [--quick] [--rows a,b] [--peers a,b] [--list] [--save]`.

In: arguments. Out: tables and targets on the screen; 1 as exit code when results of peers differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.measure import Measured, measure_row
from benchmarks.peers import find_peers
from benchmarks.table import describe_machine, format_agreement, format_tables, save_results
from benchmarks.targets import describe_targets
from benchmarks.workload import Row
from benchmarks.workloads import ROWS


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command. Returns: the exit code."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.save and options.quick:
        parser.error("--save keeps times, and a quick run has none worth keeping")
    rows = select_rows(options.rows)
    if not rows:
        parser.error(f"no row contains any of {options.rows!r}; --list shows them all")
    if options.list:
        print("\n".join(row.name for row in rows))
        return 0
    measured = run_rows(rows, options.peers.split(",") if options.peers else None, options.quick)
    if options.quick:  # its times say nothing
        text = format_agreement(measured)
    else:
        text = "\n".join((format_tables(measured), "", *describe_targets(measured)))
    print(f"{describe_machine()}\n\n{text}")
    if options.save:
        print(f"\nwritten to {save_results(text)}")
    return int(any(row.difference for row in measured))


def make_parser() -> argparse.ArgumentParser:
    about = "Times jitcore against other libraries."
    parser = argparse.ArgumentParser("python -m benchmarks", description=about)
    add = parser.add_argument
    add("--quick", action="store_true", help="small inputs, one repeat: compares results only")
    add("--rows", metavar="A,B", default="", help="rows whose name contains one of these texts")
    add("--peers", metavar="A,B", default="", help="compare with these libraries only")
    add("--list", action="store_true", help="print the names of the rows and stop")
    add("--save", action="store_true", help="also write benchmarks/results/<date>-<processor>.md")
    return parser


def select_rows(texts: str) -> list[Row]:
    """The rows whose name contains one of the comma-separated texts; all without texts."""
    wanted = [text for text in texts.split(",") if text]
    return [row for row in ROWS if not wanted or any(text in row.name for text in wanted)]


def run_rows(rows: Sequence[Row], peer_names: Sequence[str] | None, quick: bool) -> list[Measured]:
    """The measured rows; progress goes to the error stream. jitcore always takes part."""
    peers = find_peers()
    if peer_names is not None:
        known = {peer.name.lower() for peer in peers}
        unknown = [name for name in peer_names if name.lower() not in known]
        if unknown:
            raise SystemExit(f"not installed or unknown: {', '.join(unknown)}")
        wanted = {"jitcore", *map(str.lower, peer_names)}
        peers = [peer for peer in peers if peer.name.lower() in wanted]
    for peer in peers:
        peer.start()
    measured = []
    for number, row in enumerate(rows, 1):
        print(f"\r\x1b[K[{number}/{len(rows)}] {row.name}", end="", file=sys.stderr, flush=True)
        measured.append(measure_row(row, peers, quick))
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return measured

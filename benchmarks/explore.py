"""Run every property test on new examples for some minutes, and print what fails.

``make test`` draws the same examples every time; this draws others, from a seed:

    python benchmarks/explore.py --minutes 10 --seed 1

Round k uses seed + k, so that a failure comes back with ``--seed`` of its round. An example that
does not return ends its round, with the traceback and the example. The command ends with code 1 at
the first round that fails.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
#: How Hypothesis introduces an example that fails, and one that it is about to try.
FAILING = r"(?:Falsifying example|Failing test case): "
TRYING = r"(?:Trying example|Test case): "


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=2.0, help="time for all rounds")
    parser.add_argument("--rounds", type=int, default=10**9, help="rounds at most")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first round")
    parser.add_argument("--examples", type=int, default=500, help="examples per test and round")
    parser.add_argument("--hang", type=float, default=300.0, help="seconds an example may take")
    parser.add_argument("--tests", nargs="*", default=[str(TESTS)], help="files, or test names")
    args = parser.parse_args(argv)
    until = time.time() + 60 * args.minutes
    for seed in range(args.seed, args.seed + args.rounds):
        outcome = explored(args, seed, until)
        summary = outcome.stdout.strip().splitlines()[-1:] or ["no output"]
        print(f"seed {seed}: {summary[0].strip('= ')}", flush=True)
        if outcome.returncode:
            print(outcome.stdout, outcome.stderr, sep="\n")
            found = examples(outcome.stdout, FAILING) or hanging(args, seed, outcome)
            print("\n\n".join(found))
            return 1
        if time.time() > until:
            break
    return 0


def explored(args, seed, until, tests=None, *more):
    """Run one round in a process of its own."""
    command = [sys.executable, "-u", "-m", "pytest", "-v", "-s", "-m", "hypothesis", "--tb=short"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=explore"]
    command += [f"--hypothesis-seed={seed}", *more, *(tests or args.tests)]
    environment = {
        "EXPLORE_EXAMPLES": str(args.examples),
        "EXPLORE_HANG_SECONDS": str(args.hang),
        "EXPLORE_UNTIL": str(until),
    }
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=TESTS.parent,
        env=os.environ | environment,
        check=False,
    )


def hanging(args, seed, outcome):
    """Return the example that did not return, or crashed: the last one that was tried."""
    started = re.findall(r"^(\S+::\S+)", outcome.stdout, re.MULTILINE)
    if not started:
        return []
    again = explored(args, seed, float("inf"), [started[-1]], "--hypothesis-verbosity=verbose")
    return examples(again.stdout, TRYING)[-1:]


def examples(text, beginning):
    """Return the examples that Hypothesis printed, as decorators."""
    text = re.sub(r"^E   ", "", text, flags=re.MULTILINE)
    found = []
    for match in re.finditer(rf"{beginning}(\w+)\(", text):
        rest = text[match.end() :]
        block = re.sub(r"(?<![\w.])array\(", "np.array(", rest[: closing(rest) + 1])
        found.append(f"# {match[1]}\n@example({block}")
    return found


def closing(text):
    """Return where the bracket closes that was opened before a text."""
    depth = 1
    for place, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0:
            return place
    return len(text)


if __name__ == "__main__":
    sys.exit(main())

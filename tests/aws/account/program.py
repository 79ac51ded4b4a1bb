"""The program behind `run`."""

import argparse
import contextlib
import pathlib
import secrets
import signal
import subprocess
import sys
import time
import types

import botocore.exceptions

import checks
import cloud
import deadline
import ledger
import programs
import removal
import report
import trial

# Checks register themselves, in the order in which they are run.
import delivering  # noqa: F401
import living  # noqa: F401

DESCRIPTION = """Tries posthaste in an AWS account. Deploys a stack with a name of its own, posthaste-trial-XXXXXX,
drives it, asserts what no emulator shows, removes everything again, and writes one file to send back. It takes at most
45 minutes and costs at most $0.10 by list prices, without the free tier. Nothing else in the account is touched."""

# Seconds between two looks at what happens. On AWS each look costs a request.
STEP_SECS, EMULATOR_STEP_SECS = 3, 0.2

# An emulator shares its machine, which may be busy with something else.
EMULATOR_PATIENCE = 4


def arguments(words=None):
    parser = argparse.ArgumentParser(prog="tests/aws/account/run", description=DESCRIPTION)
    parser.add_argument("--region", help="the region (default: that of your credentials)")
    parser.add_argument(
        "--programs", type=pathlib.Path, default=programs.BUILT, metavar="DIR",
        help="where the functions' programs are: a folder of a release, or .aws-sam/build after `sam build` (default)",
    )
    parser.add_argument(
        "--architecture", choices=("arm64", "x86_64"), default="arm64", help="what they are built for (default: arm64)"
    )
    parser.add_argument(
        "--report", type=pathlib.Path, metavar="FILE", help="the file to write (default: NAME.md in this folder)"
    )
    parser.add_argument(
        "--check", action="append", default=[], metavar="TEXT",
        help="run only checks with this text in their sentence, and what they need; repeatable",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before anything is made")
    parser.add_argument(
        "--remove", metavar="NAME", help="remove what a trial left that was cut off, by its name, and do nothing else"
    )
    parser.add_argument(
        "--endpoint-url", metavar="URL", help="an emulator of AWS in place of an account; for the tests of this program"
    )
    parser.add_argument("--template", type=pathlib.Path, metavar="FILE", help=argparse.SUPPRESS)
    return parser.parse_args(words)


def tell(text):
    print(text, flush=True)


class Interrupts:
    """Turns SIGINT and SIGTERM into the end of the checks. During the removal it takes two to give up."""

    def __init__(self, name):
        self.name, self.is_removing, self.count = name, False, 0

    def __call__(self, *_):
        if not self.is_removing:
            raise KeyboardInterrupt
        self.count += 1
        if self.count > 1:
            raise KeyboardInterrupt
        tell(f"removing {self.name}; interrupt again to give up, and remove it later with --remove {self.name}")


def version():
    """The version of posthaste that is tried, and its commit where git knows it."""
    found = {"posthaste": programs.version()}
    with contextlib.suppress(OSError, subprocess.CalledProcessError):
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"], cwd=programs.ROOT, capture_output=True, text=True, check=True
        )
        found["commit"] = done.stdout.strip()
    return found


def prepared(options):
    """What is deployed, read before anything is made."""
    template = options.template.read_bytes() if options.template else programs.template()
    zips = programs.zips(options.programs, options.architecture)
    return types.SimpleNamespace(zips=zips, template=template, architecture=options.architecture)


def confirm(name, account, where):
    """Asks who runs it. Without a terminal there is nobody to ask."""
    tell(f"{name} makes stacks, queues, buckets, a policy and a key of KMS in the account {account}, {where}.")
    tell("It removes all of it at the end, and takes at most 45 minutes and $0.10.")
    if not sys.stdin.isatty():
        raise SystemExit("there is no terminal to ask on: give --yes")
    if input("Go on? (yes/no) ").strip().lower() not in ("y", "yes"):
        raise SystemExit("nothing was made")


def removed(remover, told, stopwatch):
    """Removes everything, as the last check."""
    began = stopwatch.elapsed()
    try:
        troubles = remover.run()
    except botocore.exceptions.BotoCoreError as error:
        troubles = [str(error)]
    outcome = report.Outcome(
        "everything that was made is removed", report.FAILED if troubles else report.PASSED,
        stopwatch.elapsed() - began, "; ".join(troubles) or None,
    )
    told.add(outcome)
    tell(outcome.line())
    return not troubles


def run(options):
    parts = prepared(options)
    selected = checks.chosen(options.check, checks.CHECKS)
    if not selected:
        raise ValueError(f"no check has {' or '.join(options.check)} in its sentence")
    account, watch, books = connected(options)
    name = f"posthaste-trial-{secrets.token_hex(3)}"
    path = options.report or pathlib.Path(f"{name}.md")
    # A place that cannot be written to is found before anything is made.
    path.touch()
    if not options.yes:
        confirm(name, account.account(), account.region)
    tell(f"{name}; if this is cut off: tests/aws/account/run --remove {name}")
    told = report.Report(name)
    told.facts |= {**version(), "region": account.region, "on": "an emulator" if account.is_emulator else "AWS"}
    told.facts["architecture"] = options.architecture
    tried = trial.Trial(name, account, watch, books, told, parts)
    interrupts = Interrupts(name)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupts)
    try:
        told.facts["concurrentExecutions"] = tried.concurrency()
        checks.run_all(tried, tell, selected)
    except KeyboardInterrupt:
        told.facts["interrupted"] = True
        tell("interrupted")
    finally:
        interrupts.is_removing = True
        is_clean = removed(removal.Removal(account, watch, name), told, watch)
        told.facts["dollarsAtMost"] = round(books.bound(), 4)
        told.facts["counts"] = books.counts
        told.facts["minutes"] = round(watch.elapsed() / 60, 1)
        path.write_text(told.text())
    tell(f"at most ${books.bound():.3f}, {watch.elapsed() / 60:.0f} minutes. The report: {path}")
    return 0 if is_clean and not told.has_failed() and "interrupted" not in told.facts else 1


def connected(options):
    """The account, its clock and its books."""
    books = ledger.Ledger(time.time)
    account = cloud.Cloud(options.endpoint_url, options.region, books)
    if account.region is None:
        raise SystemExit("no region is set: give --region, or set one with `aws configure`")
    if account.is_emulator:
        return account, deadline.Deadline(EMULATOR_STEP_SECS, patience=EMULATOR_PATIENCE), books
    watch = deadline.Deadline(STEP_SECS)
    return account, watch, books


def remove(options):
    account, watch, _ = connected(options)
    troubles = removal.Removal(account, watch, options.remove).run()
    for one in troubles:
        tell(one)
    tell(f"{options.remove}: {'not all of it is removed' if troubles else 'nothing is left'}")
    return 1 if troubles else 0


def main():
    options = arguments()
    try:
        return remove(options) if options.remove else run(options)
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError, programs.Missing, ValueError) as error:
        raise SystemExit(f"tests/aws/account/run: {error}") from error
    except OSError as error:
        raise SystemExit(f"tests/aws/account/run: {error.filename}: {error.strerror}") from error
    except KeyboardInterrupt:
        raise SystemExit("given up: what is left is removed with --remove and the name above") from None


if __name__ == "__main__":
    sys.exit(main())

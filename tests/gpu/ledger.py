"""What the run has shown so far: the worst error over the floor, and the values of public cases."""

import contextlib
import re

# The rows of public reports that a GPU can show.
PUBLIC = ("D02", "D04", "D10", "D11", "D13", "K05", "K07", "K10", "K11", "K12", "K13", "K17", "K18", "K23", "R01", "R07",
          "S06", "V02", "V03", "V05")

_worst = {}
_values = []
_groups = {}  # tests named "K17/...": {"K17": (passed, all)}
_same = {}  # (API, API): calls that gave the same bits
_watched = []  # the largest ratio since each `equals_formula` in progress began
test = ""  # the name of the running test; the runner sets it


def ratio(op, dtype, output, value):
    """Notes error / floor of one output of one call."""
    key = op, str(dtype).removeprefix("torch."), output
    count, worst, name = _worst.get(key, (0, -1.0, ""))
    # NaN is worse than any number.
    _watched[:] = [max(one, value) for one in _watched]
    _worst[key] = (count + 1, value, test) if not value <= worst else (count + 1, worst, name)


def value(case, got, due):
    """Notes a public case: what came out and what is due, both as text."""
    _values.append({"case": case, "got": str(got), "due": str(due)})


def same_bits(first, second):
    """Notes that a forward and its backwards gave the same bits through two APIs."""
    _same[first, second] = _same.get((first, second), 0) + 1


def finished(ok):
    """Notes that the running test has ended."""
    group = re.match(r"[A-Z]\d\d(?=/)", test)
    if group:
        passed, count = _groups.get(group[0], (0, 0))
        _groups[group[0]] = passed + ok, count + 1


@contextlib.contextmanager
def equals_formula(case, beside=""):
    """Notes a public case whose right value is the plain formula's: the worst error over the floor inside."""
    _watched.append(0.0)
    got = "FAILED"
    try:
        yield
        got = f"error {_watched[-1]:.2f} x the floor"
    finally:
        _watched.pop()
        value(case, got + (beside and f", {beside}" if got != "FAILED" else ""),
              "at most 2 x forward, 3 x backward" + (beside and f", {beside}"))


def report():
    """What the tables print, as plain data.

    {"ratios": [{"op", "dtype", "output", "worst", "cases", "test"}], "public": [{"case", "got", "due"}],
    "same_bits": [{"first", "second", "problems"}]}.
    """
    ratios = [{"op": op, "dtype": dtype, "output": output, "worst": worst, "cases": count, "test": name}
              for (op, dtype, output), (count, worst, name) in sorted(_worst.items())]
    groups = [{"case": case, "got": f"{passed} of {count} tests right", "due": "all right"}
              for case, (passed, count) in sorted(_groups.items())]
    same = [{"first": first, "second": second, "problems": count} for (first, second), count in sorted(_same.items())]
    public = sorted([*_values, *groups], key=_row)
    return {"ratios": ratios, "public": public, "same_bits": same}


def _row(one):
    """The id of a public case, its text's first word."""
    return one["case"].partition(" ")[0]


def print_tables():
    """Prints all tables."""
    found = report()
    if found["ratios"]:
        print(f"\n{'op':<16} {'dtype':<9} {'output':<9} {'worst error / floor':>19} {'cases':>6}  in test")
    for one in found["ratios"]:
        print(f"{one['op']:<16} {one['dtype']:<9} {one['output']:<9} {one['worst']:>19.3f} {one['cases']:>6}  {one['test']}")
    if found["public"]:
        print("\npublic case: value got | value due")
    for one in found["public"]:
        print(f"{one['case']}: {one['got']} | {one['due']}")
    missing = sorted(set(PUBLIC) - {_row(one) for one in found["public"]})
    if missing:
        print("not among the tests that were run: " + ", ".join(missing))
    if found["same_bits"]:
        print("\nforward and backwards of a problem give the same bits through two APIs")
    for one in found["same_bits"]:
        print(f"{one['first']:<8} {one['second']:<8} {one['problems']:>5} problems")

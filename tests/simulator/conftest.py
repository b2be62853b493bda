"""When the tests have run, the worst error over the floor is printed for each arch and op, dtype and output."""

from tests.gpu import ledger


def pytest_terminal_summary():
    ledger.print_tables()

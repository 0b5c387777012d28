"""SQL that is executed after each statement, on a copy of a database that nobody can write to (SQLite).

    prime-agents run --task-program 'python3 examples/tasks/sql.py' --model FILE --input '{"database": "shop.db", \
      "question": "Which customer has spent the most?", "expected": [["Ada"]]}'

A line is a query. Each is executed; the one that begins with `answer:` is the last.
"""

import sqlite3
from pathlib import Path

import prime_bench

ROWS_MAX = 50
#: Steps of SQLite's machine for one query: a runaway join ends here, and always at the same place.
STEPS_MAX = 1_000_000
READ = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)


def rows_of(database, query):
    """The rows of a query on a copy in memory, which may only read."""
    with sqlite3.connect(f"file:{Path(database).resolve()}?mode=ro", uri=True) as source:
        copy = sqlite3.connect(":memory:")
        source.backup(copy)
    left = iter(range(STEPS_MAX // 1000))
    copy.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in READ else sqlite3.SQLITE_DENY)
    copy.set_progress_handler(lambda: next(left, None) is None, 1000)
    try:
        return [list(row) for row in copy.execute(query).fetchmany(ROWS_MAX)]
    except sqlite3.Error as error:
        raise prime_bench.Refused(f"SQLite: {error}") from error
    finally:
        copy.close()


class Sql(prime_bench.Task):
    name = "sql"
    title = "A question to a database"
    statement = "Find the query whose rows answer the question. Look at the tables first (sqlite_master lists them)."
    step = "a SELECT statement, or the last one after `answer:`"
    constraints = [
        {"name": "wrong", "severity": "critical", "meaning": "the rows of the answer are those that are expected"},
        {"name": "repeat", "severity": "minor", "meaning": "no query is asked twice"},
    ]

    def start(self, given):
        if not Path(given["database"]).is_file():
            raise prime_bench.Refused(f"there is no file {given['database']}")
        return []

    def apply(self, given, state, line):
        query = line.removeprefix("answer:").strip()
        return [*state, {"query": query, "rows": rows_of(given["database"], query), "last": line.startswith("answer:")}]

    def violations(self, given, state, line, after):
        repeated = any(step["query"] == after[-1]["query"] for step in state) and not after[-1]["last"]
        wrong = after[-1]["last"] and "expected" in given and sorted(after[-1]["rows"]) != sorted(given["expected"])
        broken = [prime_bench.Broken("repeat", "this query was asked before", "minor")] if repeated else []
        return broken + ([prime_bench.Broken("wrong", "these are not the rows that answer the question")] if wrong else [])

    def done(self, given, state):
        return state != [] and state[-1]["last"]

    def answer(self, given, state):
        return state[-1]["rows"]

    def view(self, given, state):
        asked = [f"{step['query']}\n{step['rows']}" for step in state]
        return "\n".join([f"Question: {given['question']}", *asked])


if __name__ == "__main__":
    prime_bench.serve(Sql())

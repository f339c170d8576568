import sqlite3
c = sqlite3.connect(":memory:")
c.execute("create table t(x)"); c.executemany("insert into t values (?)", [(1,), (2,)])
print(c.execute("select sum(x) from t").fetchone())

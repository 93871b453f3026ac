"""Ibis on Spark, with the same answers as on the other engines."""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cellrisk.counts.spark.partitions import Partitions

NUMBER = (
    r"^[ \t\n\x0B\f\r]*([-+]?([0-9]+(_[0-9]+)*\.?([0-9]+(_[0-9]+)*)?|\.[0-9]+(_[0-9]+)*)([eE][-+]?[0-9]+)?"
    r"|[-+]?[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])[ \t\n\x0B\f\r]*$"
)
"""Text that DuckDB takes for a number; Spark would take 1d and 0x1p3 for numbers too, and 1_000 for none."""


def connect(session: Any, partitions: Partitions | None = None) -> Any:
    """An Ibis backend on that session."""
    import ibis

    backend: Any = ibis.pyspark.connect(session)
    backend.compiler = exact_compiler()()
    backend.to_pyarrow = lambda expression, **options: collect(backend, expression)
    backend.partitions = partitions
    return backend


def collect(backend: Any, expression: Any) -> Any:
    """A result as Arrow. Ibis goes through pandas, where whole numbers beside a NULL lose digits."""
    from ibis.formats.pyarrow import PyArrowData

    table = expression.as_table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # Spark leaves the closing of a socket to Python
        found = backend.raw_sql(backend.compile(table)).toArrow()
    return expression.__pyarrow_result__(PyArrowData.convert_table(found, table.schema()))


@cache
def exact_compiler() -> Any:
    """Ibis's compiler for Spark, with what it gets wrong: it takes NaN for NULL, and nothing for infinite."""
    import sqlglot.expressions as sge
    from ibis.backends.sql.compilers.pyspark import PySparkCompiler

    class ExactCompiler(PySparkCompiler):  # type: ignore[misc]
        __slots__ = ()

        def visit_IsNull(self, op: Any, *, arg: Any) -> Any:  # noqa: N802
            return arg.is_(sge.Null())

        def visit_NotNull(self, op: Any, *, arg: Any) -> Any:  # noqa: N802
            return sge.Not(this=arg.is_(sge.Null()))

        def visit_IsInf(self, op: Any, *, arg: Any) -> Any:  # noqa: N802
            return self.f.abs(arg).eq(self.POS_INF) if op.arg.dtype.is_floating() else sge.false()

        def visit_TryCast(self, op: Any, *, arg: Any, to: Any) -> Any:  # noqa: N802
            if not (op.arg.dtype.is_string() and to.is_floating()):
                return super().visit_TryCast(op, arg=arg, to=to)
            digits = self.f.replace(arg, "_", "")
            number = sge.TryCast(this=digits, to=self.type_mapper.from_ibis(to), safe=True)
            return self.if_(self.f.anon.rlike(arg, sge.convert(NUMBER)), number, sge.Null())

    return ExactCompiler

"""Functions that reduce or accumulate along axes."""

from __future__ import annotations

import numpy as np

from table.calls import calls, distinct, fixed, given, mask, positive, real

X, D, M, W = real(2, 3, 4), distinct(2, 3, 4), mask(2, 3, 4), positive(3)
AXES = ("", ", axis=0", ", axis=-1", ", axis=(0, 2)", ", axis=(), keepdims=True", ", axis=1, keepdims=True")
FEW_AXES = ("", ", axis=-2", ", axis=(0, -1), keepdims=True")


def over(*names: str, axes: tuple[str, ...] = AXES) -> list[str]:
    return [f"{n}(x{a})" for n in names for a in axes]


NAN_AMONG = fixed(
    np.where(np.arange(12).reshape(3, 4) % 5 == 1, np.nan, np.arange(12).reshape(3, 4) * 0.5 - 2), "float32"
)
ALL_NAN = fixed([[np.nan, 1.0, 2.0], [np.nan, np.nan, np.nan]], "float32")

ROWS = [
    *calls(*over("sum", "mean"), "sum(x, where=m)", "sum(x, axis=1, initial=3)", "sum(x, axis=0, where=m, initial=2.5)", "mean(x, where=m)",
           "mean(x, axis=2, where=m)", "sum(x, axis=0, where=m[0])", x=X, m=M),
    *calls(*over("prod", axes=FEW_AXES), "prod(x, axis=1, where=m)", "prod(x, axis=0, initial=2)", x=X, m=M),
    *calls("sum(x, dtype='float32')", "prod(x, axis=0, dtype='float32')", "mean(x, axis=1, dtype='float32')", "cumsum(x, 1, dtype='float32')",
           x=X, kinds="iuf", is_smooth=False),
    *calls(*over("max", "min"), "max(x, initial=1)", "min(x, axis=1, initial=0, where=m)", "max(x, axis=(0, 1), initial=-3, where=m)",
           *over("amax", "amin", axes=FEW_AXES), x=D, m=M, kinds="iuf"),
    *calls("max(x, axis=0)", "min(x)", x=X, kinds="b"),
    *calls("max(x, axis=0)", "min(x)", "max(x, axis=1, initial=0.5)", "min(x, axis=(0, 2), initial=-1, where=m)", "argmax(x)", "argmin(x, axis=1, keepdims=True)",
           "nanmax(x)", "nanmin(x)", "nanargmax(x, 1)", "nanargmin(x)", "ptp(x, axis=2)", x=X, m=M, kinds="c"),
    *calls("max(n)", "min(n)", "argmax(n)", "argmin(n, axis=0)", "nanmax(n)", "nanmin(n, axis=0)", "nanargmin(n, 1)",
           n=fixed([[1 + 2j, 1 - 3j, 0], [complex("nan"), 4, 2 - 2j]], "complex64")),
    *calls(*over("ptp", axes=FEW_AXES), x=D, kinds="iuf"),
    *calls(*over("all", "any", axes=FEW_AXES), "all(x, where=m)", "any(x, axis=1, where=m)", x=X, m=M),
    *calls("argmax(x)", "argmin(x)", "argmax(x, axis=1)", "argmin(x, axis=-1, keepdims=True)", "argmax(x, keepdims=True)", "argmin(x, 0)",
           "nanargmax(x)", "nanargmin(x)", "nanargmax(x, axis=1)", "nanargmin(x, axis=-1, keepdims=True)", x=D, kinds="iuf"),
    *calls("argmax(x, 2)", "argmin(x, 1)", x=X, kinds="b"),
    *calls(*over("count_nonzero", axes=FEW_AXES), x=X),
    *calls(*over("std", "var"), "std(x, ddof=1)", "var(x, axis=1, ddof=2)", "var(x, where=m)", "std(x, axis=2, where=m)", "var(x, correction=1)",
           "std(x, axis=0, mean=x[:1] * 0)", x=X, m=M,
           but={"special": "the mean of infinite numbers is NaN in NumPy's way of adding, and in ours"}),
    *calls("average(x)", "average(x, axis=1)", "average(x, axis=1, weights=w)", "average(x, axis=-2, weights=w, keepdims=True)",
           "average(x, weights=x * x + 1)", "average(x, axis=1, weights=w, returned=True)", x=X, w=W, kinds="iufc"),
    *calls("cumsum(x)", "cumsum(x, axis=1)", "cumprod(x)", "cumprod(x, axis=-1)", "nancumsum(x)", "nancumsum(x, axis=1)", "nancumprod(x)",
           "nancumprod(x, axis=-1)", "cumulative_sum(x, axis=1)", "cumulative_sum(x, axis=-1, include_initial=True)",
           "cumulative_prod(x, axis=1)", "cumulative_prod(x, axis=0, include_initial=True)", x=X),
    *calls("cumulative_sum(x)", "cumulative_prod(x, include_initial=True)", x=real(4)),
    *calls(*over("nansum", "nanmean", axes=FEW_AXES), "nansum(x, axis=1, where=m, initial=2)", "nanmean(x, axis=0, where=m)", x=X, m=M),
    *calls(*over("nanprod", axes=FEW_AXES), x=X),
    *calls(*over("nanmax", "nanmin", axes=FEW_AXES), "nanmax(x, initial=1)", "nanmin(x, axis=1, initial=0, where=m)", x=D, m=M, kinds="iuf"),
    *calls(*over("nanstd", "nanvar", axes=FEW_AXES), "nanstd(x, ddof=1)", "nanvar(x, axis=1, where=m)", x=X, m=M, kinds="iufc",
           but={"special": "the mean of infinite numbers is NaN in NumPy's way of adding, and in ours"}),
    *[c for n in ("sum", "prod", "max", "min", "mean", "std", "var", "argmax", "argmin", "cumsum", "cumprod", "median")
      for c in calls(f"nan{n}(n)", f"nan{n}(n, axis=0)", f"nan{n}(n, axis=1)", n=NAN_AMONG)],
    *calls("nansum(n, axis=1)", "nanprod(n, axis=1)", "nanmean(n, axis=1)", "nanmax(n, axis=1)", "nanmin(n, axis=1)", "nanstd(n, axis=1)",
           "nanvar(n, axis=1)", "nanmedian(n, axis=1)", "nanquantile(n, 0.3, axis=1)", n=ALL_NAN),
    *calls(*over("median", "nanmedian", axes=FEW_AXES), x=D, kinds="biuf"),
    *calls("quantile(x, 0.3)", "quantile(x, 0.3, axis=1)", "quantile(x, q, axis=(0, 2), keepdims=True)", "percentile(x, 40)", "nanquantile(x, 0.7, axis=0)",
           "percentile(x, 25.0, axis=-1)", "nanpercentile(x, 75, axis=1)", x=D, q=given([0.1, 0.4, 0.9]), kinds="f",
           but={"no rows": "NaN, as in median", "nothing in rows": "NaN, as in median"}),
    *calls(*[f"quantile(x, 0.37, axis=1, method='{m}')" for m in ("lower", "higher", "nearest", "midpoint")],
           *[f"nanquantile(x, 0.37, method='{m}')" for m in ("lower", "higher", "nearest", "midpoint")],
           *[f"percentile(x, 61, axis=0, method='{m}')" for m in ("lower", "higher", "nearest", "midpoint")], x=D, kinds="f"),
]  # fmt: skip

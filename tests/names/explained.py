"""What differs from the peers' functions of the same name, and which names are left out, with a reason each."""

from __future__ import annotations

IN_PLACE = "returns the new array, and takes `inplace=False`, because arrays are immutable"
SIZED = "takes `size` and `fill_value`, without which the number of results depends on values and `jit` raises"

# By namespace and name: in what the function that is here differs.
DIFFERENT: dict[str, dict[str, str]] = {
    "numpy": {
        **dict.fromkeys(("fill_diagonal", "place", "put", "put_along_axis"), IN_PLACE),
        **dict.fromkeys(("argwhere", "flatnonzero", "nonzero", "union1d", "unique", "unique_all", "unique_counts",
                         "unique_inverse", "unique_values", "intersect1d", "setdiff1d", "setxor1d"), SIZED),
        "array": "never an array of objects: ragged lists are an error",
        "asarray": "never an array of objects: ragged lists are an error",
        "broadcast_arrays": "gives arrays, not views",
        "broadcast_to": "gives an array, not a view",
        "bincount": "takes `length`, which `jit` needs",
        "choose": "`out` is not taken",
        "dtype": "NumPy's class",
        "empty": "holds zeros",
        "empty_like": "holds zeros",
        "finfo": "also of `bfloat16` and the 8-bit floats",
        "iinfo": "also of the 2- and 4-bit integers",
        "frompyfunc": "the function is batched by `vmap` instead of called for each element",
        "ufunc": "those that are ufuncs in JAX are plain functions that carry the methods; `isinstance` holds",
        "load": "a file of several arrays is NumPy's mapping of host arrays",
        "ndarray": "`atled.Array`, which is not called to make one",
        "object_": "NumPy's class, for `isdtype` and its like: there are no arrays of objects",
        "repeat": "takes `total_repeat_length`, which `jit` needs where `repeats` is traced",
        "resize": "a function only: arrays have no such method",
        "sort": "stable unless `stable=False`; `kind` may be named and is not chosen by, `order` is an error",
        "argsort": "stable unless `stable=False`; `kind` may be named and is not chosen by, `order` is an error",
        "trim_zeros": "the number of results depends on values, so `jit` raises",
        "vectorize": "the function is batched by `vmap` instead of called for each element",
    },
    "jax.random": {
        **dict.fromkeys(("bernoulli", "binomial", "categorical", "choice", "geometric", "multinomial", "poisson"),
                        "half precisions are decided in float32"),
        **dict.fromkeys(("ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "t"),
                        "half precisions are drawn in float32, and rounded"),
        "binomial": "accepts by Stirling's formula without cancellation, so that few of many counts differ; decided in "
                    "float32 at least",
        "poisson": "accepts by Stirling's formula without cancellation, so that few of many counts differ",
        "double_sided_maxwell": "always has the shape asked for, and then that of the parameters",
        "weibull_min": "draws for each element of the parameters, too",
        "wald": "does not cancel for large means",
        "rayleigh": "never inf",
        "multivariate_normal": "the result has the dtype asked for",
        "rademacher": "dtypes without a sign are an error",
    },
    "jax.lax": {
        "approx_max_k": "finds all of the k largest",
        "approx_min_k": "finds all of the k smallest",
        "empty": "holds zeros",
        "ragged_dot": "`group_offset` is not taken",
        **dict.fromkeys(("cbrt", "cos", "exp", "exp2", "expm1", "log", "log1p", "logistic", "rsqrt", "sin", "sqrt",
                         "tan", "tanh"), "`accuracy` is checked, and chooses nothing: there is one way of computing"),
        **dict.fromkeys(("all_gather", "all_to_all", "pmax", "pmean", "pmin", "psum", "psum_scatter"),
                        "`axis_index_groups` is an error: a mesh with one axis more says the same"),
        **dict.fromkeys(("reduce", "reduce_window"),
                        "the function is one of `add`, `mul`, `max`, `min`, `bitwise_and`, `bitwise_or`"),
        "scan": "also takes `progress`",
        "while_loop": "also takes `max_steps`, with which reverse mode goes through it",
    },
    "jax.lax.linalg": {
        "eigh": "`subset_by_index` on all machines; there is one implementation",
        "qr": "`pivoting` is an error",
        "schur": "eigenvalues are not sorted",
        "svd": "`subset_by_index` on all machines; there is one algorithm",
        "tridiagonal_solve": "`perturb_singular` is an error",
    },
    "array_api": {
        "array.__setitem__": "an error that shows `x.at[i].set(v)`: arrays are immutable",
    },
}  # fmt: skip

DATES = "dates: no type of XLA holds them"
TEXT = "text, bytes and records: no type of XLA holds them"
ERRORS = "arithmetic does not raise: infinities and NaN go on; `atled.debug_nans` names the line that made them"
LAYOUT = "the layout in memory is the compiler's, and an array never shares memory with another that changes"
IN_PLACE_ONLY = "writes into an array, and arrays are immutable: `x.at[...].set`, `where`"
LOOPS = "element by element in Python: `vmap`, `lax.map` and `lax.scan` are compiled"
FILES = "files of text and compressed ones are read and written by NumPy; `asarray` takes what it gives"
PRINTED = "the text of a number, which Python and NumPy give; `array_str` and `array_repr` are here"
SYSTEM = "about NumPy's own build"
BY_VALUE = "the type would depend on values; `result_type`, `promote_types` and `can_cast` are here"
WIDTHS = "as wide as the machine says: `int32`, `int64` and their like say it"
TABLES = "tables of NumPy's types"
MATRICES = "the class of matrices, which NumPy advises against"
EXTENDED = "80-bit floats: no type of XLA"

# By namespace: names that are left out, by reason.
LEFT_OUT: dict[str, dict[str, str]] = {
    "numpy": {
        DATES: "busday_count busday_offset busdaycalendar datetime64 datetime_as_string datetime_data is_busday isnat "
               "timedelta64",
        TEXT: "bytes_ record recarray str_ void",
        ERRORS: "errstate geterr geterrcall seterr seterrcall getbufsize setbufsize",
        LAYOUT: "ascontiguousarray asfortranarray isfortran may_share_memory memmap require shares_memory",
        "there are no subclasses of arrays: `asarray`": "asanyarray",
        IN_PLACE_ONLY: "copyto putmask",
        LOOPS: "broadcast flatiter ndenumerate ndindex nditer nested_iters",
        FILES: "fromregex genfromtxt loadtxt savetxt savez_compressed",
        PRINTED: "array2string base_repr binary_repr format_float_positional format_float_scientific",
        SYSTEM: "get_include info little_endian show_config show_runtime test",
        BY_VALUE: "common_type min_scalar_type mintypecode real_if_close",
        "raises by values, which `jit` cannot; `isfinite` and `debug_nans` find them": "asarray_chkfinite",
        WIDTHS: "intp long uintp ulong",
        TABLES: "ScalarType sctypeDict typecodes typename",
        MATRICES: "asmatrix bmat matrix",
        EXTENDED: "clongdouble complex256 float128 longdouble",
        "Python's `True` and `False`": "False_ True_",
        "the class of polynomials that NumPy advises against; `polyval`, `polyfit` and their like are here": "poly1d",
        "NumPy's old name of `vstack`": "row_stack",
    },
    "numpy.linalg": {
        "results of what has none are NaN, as compiled code cannot raise": "LinAlgError",
    },
    "jax.numpy": {
        "the CPU compiler has no arrays of it": "float6_e2m3fn float6_e3m2fn",
        "numbers of one bit, which the CPU compiler reads as truth values: `bool`": "int1 uint1",
        "NumPy's class, raised by nothing here": "ComplexWarning",
    },
    "jax.lax": {
        "half of an exchange, which must be written with tokens; `ppermute` is both": "precv psend",
        "parts of different sizes, which the CPU does not exchange; `all_to_all` of padded ones": "ragged_all_to_all",
    },
}  # fmt: skip


def reasons(namespace: str) -> dict[str, str]:
    """Why names of a namespace are left out, by name."""
    return {name: reason for reason, names in LEFT_OUT.get(namespace, {}).items() for name in names.split()}

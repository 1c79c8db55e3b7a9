"""Mistakes with values that are not known yet: Python's control flow, shapes, masks, and what outlives a trace."""

from __future__ import annotations

from mistake import Mistake

TRACING = [
    Mistake(
        "while-on-a-traced-value",
        "`while` on a traced value",
        "TracerBoolConversionError",
        r"bool: the truth value of a traced bool\[\] is not known here",
        r"try: lax\.while_loop\(lambda \.\.\.: x > 1, step, start\)",
        "A Python loop runs while the function is traced, and the number of steps is not known then. "
        "`lax.while_loop` puts the loop itself into the program.",
        """
        @atled.jit
        def halve(x):
            while x > 1:  # here
                x = x / 2
            return x

        halve(8.0)
        """,
        """
        @atled.jit
        def halve(x):
            return lax.while_loop(lambda x: x > 1, lambda x: x / 2, x)

        assert halve(8.0) == 1.0
        """,
    ),
    Mistake(
        "and-between-traced-values",
        "`and` between traced values",
        "TracerBoolConversionError",
        r"bool: the truth value of a traced bool\[\] is not known here",
        r"try: return \(x > 0\) & \(x < 1\)",
        "`and` and `or` look at the first value to decide whether the second is needed. `&` and `|` take both, element "
        "by element. `&` and `|` bind more tightly than comparisons, so comparisons need parentheses.",
        """
        @atled.jit
        def inside(x):
            return x > 0 and x < 1  # here

        inside(0.5)
        """,
        """
        @atled.jit
        def inside(x):
            return (x > 0) & (x < 1)

        assert inside(0.5)
        """,
    ),
    Mistake(
        "not-of-a-traced-value",
        "`not` of a traced value",
        "TracerBoolConversionError",
        r"bool: the truth value of a traced bool\[\] is not known here",
        r"try: return ~\(x > 0\)",
        "`not` makes a Python bool, True or False, and the value is not known yet. `~` negates a boolean array.",
        """
        @atled.jit
        def outside(x):
            return not x > 0  # here

        outside(0.5)
        """,
        """
        @atled.jit
        def outside(x):
            return ~(x > 0)

        assert not outside(0.5)
        """,
    ),
    Mistake(
        "chained-comparison",
        "A chained comparison",
        "TracerBoolConversionError",
        r"bool: the truth value of a traced bool\[\] is not known here",
        r"try: return \(0 < x\) & \(x < 1\)",
        "Python reads `0 < x < 1` as `0 < x and x < 1`, and `and` asks for a truth value.",
        """
        @atled.jit
        def inside(x):
            return 0 < x < 1  # here

        inside(0.5)
        """,
        """
        @atled.jit
        def inside(x):
            return (0 < x) & (x < 1)

        assert inside(0.5)
        """,
    ),
    Mistake(
        "conditional-expression",
        "A conditional expression on a traced value",
        "TracerBoolConversionError",
        r"bool: the truth value of a traced bool\[\] is not known here",
        r"try: return jnp\.where\(x > 0, x, 0\.1 \* x\)",
        "`a if c else b` evaluates only one side, so Python must know `c`. `where` computes both sides and selects for "
        "every element. The same holds under `vmap`, where every example may choose differently.",
        """
        def leaky_relu(x):
            return x if x > 0 else 0.1 * x  # here

        atled.vmap(leaky_relu)(jnp.array([1.0, -1.0]))
        """,
        """
        def leaky_relu(x):
            return jnp.where(x > 0, x, 0.1 * x)

        y = atled.vmap(leaky_relu)(jnp.array([1.0, -1.0]))
        assert y[0] == 1.0
        """,
    ),
    Mistake(
        "builtin-max",
        "Python's `max` on a traced value",
        "TracerBoolConversionError",
        r"bool: the truth value of a traced bool\[\] is not known here",
        r"try: return jnp\.maximum\(x, 0\.0\)",
        "Python's `max` and `min` compare their arguments and return one of them, so they need its result.",
        """
        @atled.jit
        def relu(x):
            return max(x, 0.0)  # here

        relu(3.0)
        """,
        """
        @atled.jit
        def relu(x):
            return jnp.maximum(x, 0.0)

        assert relu(3.0) == 3.0
        """,
    ),
    Mistake(
        "assert-on-a-traced-value",
        "`assert` on a traced value",
        "TracerBoolConversionError",
        r"bool: the truth value of a traced bool\[\] is not known here",
        r"try: check the value outside of the function, or print it with debug\.print",
        "The function is traced once for all values, so there is no value to check. Shapes and dtypes are known, and "
        "can be asserted.",
        """
        @atled.jit
        def root(x):
            assert x >= 0, "negative"  # here
            return jnp.sqrt(x)

        root(4.0)
        """,
        """
        @atled.jit
        def root(x):
            assert x.shape == (), "one number at a time"
            return jnp.sqrt(x)

        x = 4.0
        assert x >= 0, "negative"
        assert root(x) == 2.0
        """,
    ),
    Mistake(
        "int-of-a-traced-value",
        "`int()` of a traced value",
        "ConcretizationTypeError",
        r"int: a Python value was requested from a traced ~f32\[\], whose value is not known here",
        r"try: return x\.astype\(int\) \* 2",
        "`int()` makes a Python integer, which would be the same in every later call. `astype` converts the dtype "
        "inside the program.",
        """
        @atled.jit
        def twice_the_floor(x):
            return int(x) * 2  # here

        twice_the_floor(3.7)
        """,
        """
        @atled.jit
        def twice_the_floor(x):
            return x.astype(int) * 2

        assert twice_the_floor(3.7) == 6
        """,
    ),
    Mistake(
        "float-of-a-traced-value",
        "`float()` of a traced value",
        "ConcretizationTypeError",
        r"float: a Python value was requested from a traced i32\[\], whose value is not known here",
        r"try: return x\.sum\(\)\.astype\(float\) / 2",
        "`float()` makes a Python number, and there is no number yet. Arithmetic with arrays promotes dtypes, so "
        "often no conversion is needed.",
        """
        @atled.jit
        def half(x):
            return float(x.sum()) / 2  # here

        half(jnp.arange(4))
        """,
        """
        @atled.jit
        def half(x):
            return x.sum() / 2

        assert half(jnp.arange(4)) == 3.0
        """,
    ),
    Mistake(
        "math-function-on-an-array",
        "A function of `math` on an array",
        "ConcretizationTypeError",
        r"float: a Python value was requested from a traced ~f32\[\]",
        r"try: return jnp\.sin\(x\) \+ 1",
        "The functions of `math` work on Python floats. The functions of `atled.numpy` have the same names and can be "
        "traced and differentiated.",
        """
        import math

        @atled.jit
        def wave(x):
            return math.sin(x) + 1  # here

        wave(0.0)
        """,
        """
        @atled.jit
        def wave(x):
            return jnp.sin(x) + 1

        assert wave(0.0) == 1.0
        """,
    ),
    Mistake(
        "math-function-under-grad",
        "A function of `math` under `grad`",
        "ConcretizationTypeError",
        r"float: a Python number has no derivative, but this ~f32\[\] is being differentiated",
        r"try: return x \* jnp\.exp\(x\), or float\(lax\.stop_gradient\(x\)\) if a constant is intended",
        "Without `jit` the number is known, but `math.exp` returns a plain float, which carries no derivative. The "
        "gradient would silently be zero.",
        """
        import math

        def growth(x):
            return x * math.exp(x)  # here

        atled.grad(growth)(0.0)
        """,
        """
        def growth(x):
            return x * jnp.exp(x)

        assert atled.grad(growth)(0.0) == 1.0
        """,
    ),
    Mistake(
        "item-of-a-traced-value",
        "`.item()` of a traced value",
        "ConcretizationTypeError",
        r"item: a Python value was requested from a traced f32\[\], whose value is not known here",
        r"try: return x / x\.sum\(\)",
        "`.item()` takes the number out of the array, and inside `jit` there is no number yet. A 0-d array can be used "
        "wherever a number can.",
        """
        @atled.jit
        def normalized(x):
            return x / x.sum().item()  # here

        normalized(jnp.ones(4))
        """,
        """
        @atled.jit
        def normalized(x):
            return x / x.sum()

        assert normalized(jnp.ones(4))[0] == 0.25
        """,
    ),
    Mistake(
        "list-indexed-by-a-traced-value",
        "A list indexed by a traced value",
        "TracerIntegerConversionError",
        r"index: a Python integer was requested from a traced ~i32\[\], whose value is not known here",
        r"try: return jnp\.asarray\(rates\)\[step\]",
        "A Python list needs a Python integer while the function is traced. An array can be indexed by a traced value.",
        """
        rates = [0.1, 0.01, 0.001]

        @atled.jit
        def rate(step):
            return rates[step]  # here

        rate(1)
        """,
        """
        rates = [0.1, 0.01, 0.001]

        @atled.jit
        def rate(step):
            return jnp.asarray(rates)[step]

        assert rate(1) == jnp.float32(0.01)
        """,
    ),
    Mistake(
        "dict-looked-up-by-a-traced-value",
        "A dict looked up by a traced value",
        "TypeError",
        r"hash: arrays cannot be keys of a dict or members of a set; got ~i32\[\]",
        r"try: .*index an array instead of a dict",
        "A dict finds a key by its value, which is not known yet. Arrays cannot be keys anyway, because they "
        "compare element by element.",
        """
        scales = {0: 1.0, 1: 0.5}

        @atled.jit
        def scale(level):
            return scales[level]  # here

        scale(1)
        """,
        """
        scales = jnp.array([1.0, 0.5])

        @atled.jit
        def scale(level):
            return scales[level]

        assert scale(1) == 0.5
        """,
    ),
    Mistake(
        "range-over-a-traced-value",
        "`range` over a traced value",
        "TracerIntegerConversionError",
        r"index: a Python integer was requested from a traced ~i32\[\], whose value is not known here",
        r"try: lax\.fori_loop instead of range, or make the argument static",
        "A `for` loop is unrolled while the function is traced, so the number of steps must be known then. If "
        "the number is a setting that rarely changes, make it static; otherwise put the loop into the program.",
        """
        @atled.jit
        def power(x, n):
            y = 1.0
            for _ in range(n):  # here
                y = y * x
            return y

        power(2.0, 3)
        """,
        """
        @atled.jit
        def power(x, n):
            return lax.fori_loop(0, n, lambda i, y: y * x, 1.0)

        assert power(2.0, 3) == 8.0
        """,
    ),
    Mistake(
        "iterating-over-a-traced-number",
        "Iterating over a number",
        "TypeError",
        r"iteration: a 0-d array has no elements to iterate over; got ~i32\[\]",
        r"try: range\(n\) or lax\.fori_loop",
        "A 0-d array is one number, not a sequence: there is nothing to iterate over or to unpack.",
        """
        @atled.jit
        def total(n):
            return sum(i for i in n)  # here

        total(4)
        """,
        """
        @atled.jit
        def total(n):
            return lax.fori_loop(0, n, lambda i, t: t + i, 0)

        assert total(4) == 6
        """,
    ),
    Mistake(
        "numpy-asarray-of-a-traced-value",
        "`np.asarray` of a traced value",
        "TracerArrayConversionError",
        r"numpy\.asarray: a NumPy array was requested from a traced f32\[3\], which has no values to copy here",
        r"try: return jnp\.asarray\(x\) \+ 1",
        "A NumPy array holds numbers, and inside `jit` there are none yet. `atled.numpy` has the same functions.",
        """
        @atled.jit
        def plus_one(x):
            return np.asarray(x) + 1  # here

        plus_one(jnp.ones(3))
        """,
        """
        @atled.jit
        def plus_one(x):
            return jnp.asarray(x) + 1

        assert plus_one(jnp.ones(3))[0] == 2.0
        """,
    ),
    Mistake(
        "numpy-array-of-traced-values",
        "`np.array` of a list of traced values",
        "TracerArrayConversionError",
        r"numpy\.asarray: a NumPy array was requested from a traced ~f32\[\]",
        r"try: return jnp\.array\(\[x, x \* x\]\)",
        "NumPy would have to copy the numbers into its own memory. `jnp.array` makes an array of traced values.",
        """
        @atled.jit
        def powers(x):
            return np.array([x, x * x])  # here

        powers(3.0)
        """,
        """
        @atled.jit
        def powers(x):
            return jnp.array([x, x * x])

        assert powers(3.0)[1] == 9.0
        """,
    ),
    Mistake(
        "slice-up-to-a-traced-bound",
        "A slice up to a traced bound",
        "TracerIntegerConversionError",
        r"index: the bounds of a slice must be known, because its length depends on them; got a traced ~i32\[\]",
        r"numpy\.where.*lax\.dynamic_slice",
        "All shapes in a compiled program are fixed, and the length of `x[:n]` depends on `n`. Keep all elements "
        "and mask the others, or fix the length.",
        """
        @atled.jit
        def sum_of_first(x, n):
            return x[:n].sum()  # here

        sum_of_first(jnp.arange(5.0), 3)
        """,
        """
        @atled.jit
        def sum_of_first(x, n):
            return jnp.where(jnp.arange(len(x)) < n, x, 0).sum()

        assert sum_of_first(jnp.arange(5.0), 3) == 3.0
        """,
    ),
    Mistake(
        "traced-shape",
        "A shape that is traced",
        "ConcretizationTypeError",
        r"zeros: a shape must be known; got a traced ~i32\[\]",
        r"static_argnames",
        "All shapes in a compiled program are fixed. An argument that determines a shape must be static: the "
        "function is compiled again for each value of it.",
        """
        @atled.jit
        def start(n):
            return jnp.zeros(n)  # here

        start(3)
        """,
        """
        def start(n):
            return jnp.zeros(n)

        start = atled.jit(start, static_argnames="n")
        assert start(3).shape == (3,)
        """,
    ),
    Mistake(
        "arange-up-to-a-traced-bound",
        "`arange` up to a traced bound",
        "ConcretizationTypeError",
        r"arange: the bounds must be known, because the length depends on them; got a traced ~i32\[\]",
        r"static_argnames",
        "The length of the result is `n`, and lengths must be fixed when the program is compiled. If the step "
        "is traced, use a step of 1 and multiply the result by the traced step.",
        """
        @atled.jit
        def steps(n):
            return jnp.arange(n)  # here

        steps(3)
        """,
        """
        def steps(n):
            return jnp.arange(n)

        steps = atled.jit(steps, static_argnames="n")
        assert steps(3).shape == (3,)
        """,
    ),
    Mistake(
        "boolean-mask-under-jit",
        "A boolean mask under `jit`",
        "NonConcreteBooleanIndexError",
        r"index: a traced mask bool\[3\] selects an unknown number of elements",
        r"try: return jnp\.where\(x > 0, x, 0\)\.sum\(\)",
        "How many elements a mask selects depends on its values, and shapes must be fixed. For sums and similar "
        "reductions, replace the other elements by a neutral value such as zero.",
        """
        @atled.jit
        def sum_of_positive(x):
            return x[x > 0].sum()  # here

        sum_of_positive(jnp.array([1.0, -2.0, 3.0]))
        """,
        """
        @atled.jit
        def sum_of_positive(x):
            return jnp.where(x > 0, x, 0).sum()

        assert sum_of_positive(jnp.array([1.0, -2.0, 3.0])) == 4.0
        """,
    ),
    Mistake(
        "nonzero-under-jit",
        "`nonzero` under `jit`",
        "ConcretizationTypeError",
        r"nonzero: the shape of the result depends on values, which are not known here; got a traced f32\[3\]",
        r"try: return jnp\.nonzero\(x, size=n\)",
        "The number of positions depends on how many elements are nonzero. With `size` the result has that "
        "length, padded with `fill_value`.",
        """
        @atled.jit
        def places(x):
            return jnp.nonzero(x)  # here

        places(jnp.array([0.0, 2.0, 3.0]))
        """,
        """
        @atled.jit
        def places(x):
            return jnp.nonzero(x, size=2)

        assert places(jnp.array([0.0, 2.0, 3.0]))[0][0] == 1
        """,
    ),
    Mistake(
        "unique-under-jit",
        "`unique` under `jit`",
        "ConcretizationTypeError",
        r"unique: the shape of the result depends on values, which are not known here; got a traced i32\[3\]",
        r"try: return jnp\.unique\(x, size=n\)",
        "The number of distinct values is not known while the function is traced. Pass `size`, an upper bound.",
        """
        @atled.jit
        def labels(x):
            return jnp.unique(x)  # here

        labels(jnp.array([4, 4, 7]))
        """,
        """
        @atled.jit
        def labels(x):
            return jnp.unique(x, size=3, fill_value=-1)

        assert labels(jnp.array([4, 4, 7]))[1] == 7
        """,
    ),
    Mistake(
        "value-kept-in-a-list",
        "A traced value kept in a list",
        "UnexpectedTracerError",
        r"leaked value: a ~f32\[\] made inside jit escaped by a side effect and was used later",
        r"made in loss, train\.py:\d+\n    seen\.append.*try: return the value",
        "The function ran once, on tracers, and appended a tracer to the list. The tracer never gets a value: "
        "the compiled program cannot write to a Python list.",
        """
        seen = []

        @atled.jit
        def loss(x):
            seen.append(x * x)
            return x

        loss(3.0)
        total = seen[0] + 1.0  # here
        """,
        """
        seen = []

        @atled.jit
        def loss(x):
            return x, x * x

        _, square = loss(3.0)
        seen.append(square)
        assert seen[0] + 1.0 == 10.0
        """,
    ),
    Mistake(
        "value-kept-in-a-global",
        "A traced value kept in a global",
        "UnexpectedTracerError",
        r"leaked value: a f32\[2\] made inside differentiation escaped by a side effect and was used later",
        r"try: return the value",
        "`grad` also runs the function on tracers, which are invalid after the call. Return extra values of a loss "
        "with `has_aux=True`.",
        """
        residual = None

        def loss(w):
            global residual
            residual = w - 1.0
            return (residual**2).sum()

        atled.grad(loss)(jnp.ones(2))
        largest = jnp.max(residual)  # here
        """,
        """
        def loss(w):
            residual = w - 1.0
            return (residual**2).sum(), residual

        slope, residual = atled.grad(loss, has_aux=True)(jnp.ones(2))
        assert jnp.max(residual) == 0.0
        """,
    ),
    Mistake(
        "value-kept-in-an-attribute",
        "A traced value kept in an attribute",
        "UnexpectedTracerError",
        r"leaked value: a ~f32\[\] made inside jit escaped by a side effect and was used later",
        r"made in Mean\.add, train\.py:\d+.*try: return the value",
        "An object that assigns to itself under `jit` does so once, while it is traced, and keeps a tracer. Pass "
        "the state in, and return the new one.",
        """
        class Mean:
            total = 0.0

            def add(self, x):
                self.total = self.total + x
                return self.total

        mean = Mean()
        atled.jit(mean.add)(1.0)
        result = mean.total / 2  # here
        """,
        """
        @atled.jit
        def add(total, x):
            return total + x

        total = add(0.0, 1.0)
        assert total / 2 == 0.5
        """,
    ),
]

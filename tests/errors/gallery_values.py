"""Mistakes with single values: indices, updates, dtypes, arguments, random keys, memory."""

from __future__ import annotations

from mistake import Mistake

VALUES = [
    Mistake(
        "assignment-to-an-element",
        "Assignment to an element",
        "TypeError",
        r"item assignment: arrays are immutable; got f32\[3\]",
        r"try: x = x\.at\[0\]\.set\(1\.0\)",
        "Arrays are immutable, so that functions can be traced, differentiated and reordered. `at[...].set` returns "
        "a new array; under `jit` the update happens in place where possible.",
        """
        x = jnp.zeros(3)
        x[0] = 1.0  # here
        """,
        """
        x = jnp.zeros(3)
        x = x.at[0].set(1.0)
        assert x[0] == 1.0
        """,
    ),
    Mistake(
        "adding-to-a-slice-in-place",
        "Adding to a slice in place",
        "TypeError",
        r"item assignment: arrays are immutable; got f32\[3\]",
        r"try: x = x\.at\[1:\]\.add\(2\.0\)",
        "Arrays are immutable. `at[...].add` returns a new array; a repeated index is added twice.",
        """
        x = jnp.zeros(3)
        x[1:] += 2.0  # here
        """,
        """
        x = jnp.zeros(3)
        x = x.at[1:].add(2.0)
        assert x[1] == 2.0
        """,
    ),
    Mistake(
        "deleting-an-element",
        "Deleting an element",
        "TypeError",
        r"item deletion: arrays are immutable; got f32\[3\]",
        r"try: x = jnp\.delete\(x, 0\)",
        "Arrays are immutable. `delete` returns a new, shorter array.",
        """
        x = jnp.arange(3.0)
        del x[0]  # here
        """,
        """
        x = jnp.arange(3.0)
        x = jnp.delete(x, 0)
        assert x.shape == (2,)
        """,
    ),
    Mistake(
        "update-of-another-shape",
        "An update of another shape",
        "ValueError",
        r"at: the value must broadcast to the shape \(3,\) that is written; got f32\[2\]",
        r"try: a value of shape \(3,\), or a single number",
        "The values must broadcast to the shape of the indexed part.",
        """
        x = jnp.zeros(5)
        y = x.at[:3].set(jnp.ones(2))  # here
        """,
        """
        x = jnp.zeros(5)
        y = x.at[:3].set(jnp.ones(3))
        assert y.sum() == 3.0
        """,
    ),
    Mistake(
        "index-that-is-a-float",
        "An index that is a float",
        "TypeError",
        r"index: indices are integers, slices, None, '\.\.\.' and integer or bool arrays; got float",
        r"try: n // 2 instead of n / 2",
        "`/` gives a float in Python, even if the division is exact; `//` gives an int.",
        """
        x = jnp.arange(10)
        middle = x[len(x) / 2]  # here
        """,
        """
        x = jnp.arange(10)
        middle = x[len(x) // 2]
        assert middle == 5
        """,
    ),
    Mistake(
        "index-array-of-floats",
        "An index array of floats",
        "TypeError",
        r"index: index arrays must be of integers or bools; got f32\[2\]",
        r"try: .*i\.astype\(int\)",
        "Positions are integers. Arrays of indices often become floats by a division, or by being read from a file.",
        """
        x = jnp.arange(10)
        i = jnp.array([2.0, 4.0])
        y = x[i]  # here
        """,
        """
        x = jnp.arange(10)
        i = jnp.array([2.0, 4.0])
        y = x[i.astype(int)]
        assert y[1] == 4
        """,
    ),
    Mistake(
        "index-that-is-a-string",
        "An index that is a string",
        "TypeError",
        r"index: indices are integers, slices, None, '\.\.\.' and integer or bool arrays; got str 'bias'",
        r"try: a dict of arrays",
        "Arrays have positions, not names. Keep named parameters in a dict, which is a pytree that `grad` and "
        "`jit` accept.",
        """
        parameters = jnp.array([1.0, 2.0])
        bias = parameters["bias"]  # here
        """,
        """
        parameters = {"weight": jnp.float32(1.0), "bias": jnp.float32(2.0)}
        bias = parameters["bias"]
        assert bias == 2.0
        """,
    ),
    Mistake(
        "too-many-indices",
        "Too many indices",
        "IndexError",
        r"index: an array of shape \(5,\) takes 1 index at most; got 2",
        r"try: one index for each axis",
        "Every index belongs to one axis. A row of a matrix has one axis fewer than the matrix.",
        """
        x = jnp.arange(5)
        y = x[0, 1]  # here
        """,
        """
        x = jnp.arange(5)
        y = x[1]
        assert y == 1
        """,
    ),
    Mistake(
        "index-out-of-bounds",
        "An index out of bounds",
        "IndexError",
        r"index: 5 is out of bounds for axis 0 with length 5",
        r"try: an index from -5 to 4",
        "Positions are counted from 0, so the last one is the length minus 1. A static index is checked, also under "
        "`jit`; a traced index is clamped.",
        """
        x = jnp.arange(5)
        last = x[5]  # here
        """,
        """
        x = jnp.arange(5)
        last = x[-1]
        assert last == 4
        """,
    ),
    Mistake(
        "ragged-lists",
        "An array of ragged lists",
        "ValueError",
        r"asarray: nested lists must have the same lengths at each level; got lengths 3 and 2",
        r"try: pad the shorter ones",
        "An array is rectangular: all its rows have the same length.",
        """
        x = jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0]])  # here
        """,
        """
        x = jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 0.0]])
        assert x.shape == (2, 3)
        """,
    ),
    Mistake(
        "array-of-strings",
        "An array of strings",
        "TypeError",
        r"asarray: the elements must be numbers; got str 'cat'",
        r"try: a number for each word",
        "Devices compute with numbers. Give each word a number, and keep the words in a list.",
        """
        labels = jnp.array(["cat", "dog", "cat"])  # here
        """,
        """
        words = ["cat", "dog"]
        labels = jnp.array([words.index(w) for w in ["cat", "dog", "cat"]])
        assert labels.sum() == 1
        """,
    ),
    Mistake(
        "integer-that-does-not-fit",
        "An integer that does not fit",
        "OverflowError",
        r"asarray: the number must fit into int32; got 1099511627776",
        r"try: x = jnp\.array\(2\*\*40, dtype=jnp\.int64\)",
        "Python integers become 32 bits wide, and this one needs more. Truncating it silently would be worse "
        "than an error.",
        """
        x = jnp.array(2**40)  # here
        """,
        """
        x = jnp.array(2**40, dtype=jnp.int64)
        assert int(x) == 2**40
        """,
    ),
    Mistake(
        "dtypes-in-lax",
        "Different dtypes in a function of `lax`",
        "TypeError",
        r"add: operands must have the same dtype; got f32\[3\] and i32\[3\]",
        r"try: z = lax\.add\(x, n\.astype\('float32'\)\)",
        "The functions of `lax` do not convert dtypes implicitly. `x + n` and `jnp.add` promote.",
        """
        x = jnp.ones(3)
        n = jnp.arange(3)
        z = lax.add(x, n)  # here
        """,
        """
        x = jnp.ones(3)
        n = jnp.arange(3)
        z = lax.add(x, n.astype("float32"))
        assert z[2] == 3.0
        """,
    ),
    Mistake(
        "dtypes-in-lax-dot",
        "Different dtypes in `lax.dot`",
        "TypeError",
        r"dot: operands must have the same dtype; got f32\[2,3\] and i32\[3\]",
        r"try: y = lax\.dot\(x, n\.astype\('float32'\)\)",
        "The functions of `lax` do not convert dtypes implicitly. `x @ n` promotes.",
        """
        x = jnp.ones((2, 3))
        n = jnp.arange(3)
        y = lax.dot(x, n)  # here
        """,
        """
        x = jnp.ones((2, 3))
        n = jnp.arange(3)
        y = lax.dot(x, n.astype("float32"))
        assert y[0] == 3.0
        """,
    ),
    Mistake(
        "bitwise-and-before-comparisons",
        "`&` between comparisons without parentheses",
        "TypeError",
        r"and: operands must be bool or integer or unsigned; got f32\[",
        r"try: comparisons in parentheses",
        "In Python `&` and `|` bind more tightly than comparisons, so this reads `x > (0 & x) < 2`.",
        """
        x = jnp.array([-1.0, 1.0, 3.0])
        inside = x > 0 & x < 2  # here
        """,
        """
        x = jnp.array([-1.0, 1.0, 3.0])
        inside = (x > 0) & (x < 2)
        assert inside.sum() == 1
        """,
    ),
    Mistake(
        "list-where-an-array-is-expected",
        "A list where an array is expected",
        "TypeError",
        r"mean: expected an array or a number; got list",
        r"try: y = jnp\.mean\(jnp\.asarray\(losses\)\)",
        "Every element of a list would be transferred to the device separately, and a function under `jit` "
        "would have an argument for each. The conversion is explicit, so that its cost is visible.",
        """
        losses = [0.5, 0.25, 0.75]
        y = jnp.mean(losses)  # here
        """,
        """
        losses = [0.5, 0.25, 0.75]
        y = jnp.mean(jnp.asarray(losses))
        assert y == 0.5
        """,
    ),
    Mistake(
        "array-plus-a-list",
        "An array plus a list",
        "TypeError",
        r"add: operands must be arrays or numbers; got f32\[2\] and list",
        r"try: y = x \+ jnp\.asarray\(\[1\.0, 2\.0\]\)",
        "In Python, `+` concatenates lists. Convert the list to an array, once, outside of loops.",
        """
        x = jnp.zeros(2)
        y = x + [1.0, 2.0]  # here
        """,
        """
        x = jnp.zeros(2)
        y = x + jnp.asarray([1.0, 2.0])
        assert y[1] == 2.0
        """,
    ),
    Mistake(
        "none-where-an-array-is-expected",
        "None where an array is expected",
        "TypeError",
        r"square: expected an array or a number; got None",
        r"try: find where the None comes from: a function without `return` returns None",
        "A function that ends without `return` returns None, and the function that gets the None raises.",
        """
        def shifted(x):
            x - 1.0

        y = jnp.square(shifted(3.0))  # here
        """,
        """
        def shifted(x):
            return x - 1.0

        y = jnp.square(shifted(3.0))
        assert y == 4.0
        """,
    ),
    Mistake(
        "string-argument-of-a-jitted-function",
        "A string as argument of a jitted function",
        "TypeError",
        r"activate: argument kind of activate must be an array, a number, or a tree of these; got str 'relu'",
        r"try: jit\(f, static_argnames='kind'\)",
        "Arguments of a compiled program are arrays. An argument that selects what to compute must be static: the "
        "function is compiled for each value of it.",
        """
        @atled.jit
        def activate(x, kind):
            return jnp.maximum(x, 0.0) if kind == "relu" else jnp.tanh(x)

        activate(1.0, "relu")  # here
        """,
        """
        def activate(x, kind):
            return jnp.maximum(x, 0.0) if kind == "relu" else jnp.tanh(x)

        activate = atled.jit(activate, static_argnames="kind")
        assert activate(1.0, "relu") == 1.0
        """,
    ),
    Mistake(
        "jit-of-a-method",
        "`jit` of a method",
        "TypeError",
        r"__call__: argument self of __call__ must be an array, a number, or a tree of these; got Line",
        r"try: tree\.register_dataclass for its class",
        "A method's first argument is the object, and `jit` has to know which of its parts are arrays. Register the "
        "class as a pytree dataclass to declare them.",
        """
        class Line:
            def __init__(self, slope):
                self.slope = slope

            @atled.jit
            def __call__(self, x):
                return self.slope * x

        y = Line(2.0)(3.0)  # here
        """,
        """
        from dataclasses import dataclass

        @dataclass
        class Line:
            slope: float

            @atled.jit
            def __call__(self, x):
                return self.slope * x

        atled.tree.register_dataclass(Line)
        y = Line(2.0)(3.0)
        assert y == 6.0
        """,
    ),
    Mistake(
        "static-argument-that-cannot-be-hashed",
        "A static argument that cannot be hashed",
        "ValueError",
        r"jit: static arguments must be hashable; argument shape of filled is list",
        r"try: a tuple instead of a list",
        "Static arguments are part of the cache key of compiled programs. A list is mutable and cannot be hashed; "
        "use a tuple.",
        """
        def filled(x, shape):
            return jnp.full(shape, x)

        filled = atled.jit(filled, static_argnames="shape")
        y = filled(1.0, [2, 3])  # here
        """,
        """
        def filled(x, shape):
            return jnp.full(shape, x)

        filled = atled.jit(filled, static_argnames="shape")
        y = filled(1.0, (2, 3))
        assert y.shape == (2, 3)
        """,
    ),
    Mistake(
        "static-name-that-no-parameter-has",
        "A static name that no parameter has",
        "ValueError",
        r"jit: static and donated names must be parameters; filled has x, shape; got 'shapes'",
        r"try: the name 'shape'",
        "A misspelled name would make nothing static, and the error would arise somewhere inside the function.",
        """
        def filled(x, shape):
            return jnp.full(shape, x)

        filled = atled.jit(filled, static_argnames="shapes")
        y = filled(1.0, shape=(2, 3))  # here
        """,
        """
        def filled(x, shape):
            return jnp.full(shape, x)

        filled = atled.jit(filled, static_argnames="shape")
        y = filled(1.0, shape=(2, 3))
        assert y.shape == (2, 3)
        """,
    ),
    Mistake(
        "trees-that-differ",
        "Pytrees that differ",
        "TreeError",
        r"tree: structures differ at the root: expected \('b', 'w'\), got \('w',\)",
        r"try: trees with the same keys",
        "`tree.map` maps over all pytrees together, so all must have the structure of the first one.",
        """
        weights = {"w": 1.0, "b": 0.0}
        slopes = {"w": 0.5}
        new = atled.tree.map(lambda w, g: w - 0.1 * g, weights, slopes)  # here
        """,
        """
        weights = {"w": 1.0, "b": 0.0}
        slopes = {"w": 0.5, "b": 0.0}
        new = atled.tree.map(lambda w, g: w - 0.1 * g, weights, slopes)
        assert new["w"] == 0.95
        """,
    ),
    Mistake(
        "random-key-used-twice",
        "A random key used twice",
        "KeyReuseWarning",
        r"random\.normal: this key was used before, .*train\.py:\d+, so it gives the same random numbers again",
        r"try: key, sub = random\.split\(key\)",
        "Random functions have no hidden state: the same key gives the same numbers. This is a warning by "
        "default; in this example, warnings are errors.",
        """
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            key = random.key(0)
            x = random.normal(key, (3,))
            noise = random.normal(key, (3,))  # here
        """,
        """
        key, sub = random.split(random.key(0))
        x = random.normal(key, (3,))
        noise = random.normal(sub, (3,))
        assert (x != noise).all()
        """,
        """
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            key = random.key(0)
            x = random.normal(key, (3,))
            noise = random.normal(key, (3,))
        """,
    ),
    Mistake(
        "seed-instead-of-a-key",
        "A seed instead of a key",
        "TypeError",
        r"random\.normal: the first argument must be a key; got int",
        r"try: x = random\.normal\(random\.key\(0\), \(3,\)\)",
        "Create one key from a seed, and split that key. Splitting keeps all random numbers of a program independent.",
        """
        x = random.normal(0, (3,))  # here
        """,
        """
        x = random.normal(random.key(0), (3,))
        assert x.shape == (3,)
        """,
    ),
    Mistake(
        "forgotten-key",
        "A forgotten key",
        "TypeError",
        r"random\.uniform: the first argument must be a key; got tuple",
        r"try: x = random\.uniform\(random\.key\(0\), \(3,\)\)",
        "Unlike NumPy, there is no global generator: every draw takes a key.",
        """
        x = random.uniform((3,))  # here
        """,
        """
        x = random.uniform(random.key(0), (3,))
        assert x.shape == (3,)
        """,
    ),
    Mistake(
        "many-keys-where-one-is-needed",
        "Many keys where one is needed",
        "TypeError",
        r"random\.normal: one key is needed; got key\[3\]",
        r"try: vmap\(lambda k: random\.normal\(k, \.\.\.\)\)\(keys\)",
        "`split` gives an array of keys. A draw takes one of them; `vmap` draws once with each.",
        """
        keys = random.split(random.key(0), 3)
        x = random.normal(keys, (2,))  # here
        """,
        """
        keys = random.split(random.key(0), 3)
        x = atled.vmap(lambda k: random.normal(k, (2,)))(keys)
        assert x.shape == (3, 2)
        """,
    ),
    Mistake(
        "arithmetic-with-a-key",
        "Arithmetic with a key",
        "PromotionError",
        r"promotion: key<fry> and a Python int have no common dtype",
        r"try: random\.split or random\.fold_in for a new key",
        "A key is not a number, and the next key is not the key plus one. `fold_in` derives a new key from a key "
        "and a number, such as the step of a loop.",
        """
        key = random.key(0)
        for step in range(3):
            x = random.normal(key + step)  # here
        """,
        """
        key = random.key(0)
        for step in range(3):
            x = random.normal(random.fold_in(key, step))
        """,
    ),
    Mistake(
        "donated-array-used-again",
        "A donated array used again",
        "RuntimeError",
        r"deleted array: f32\[3\] was deleted or donated, and its memory is gone",
        r"try: use the result of the call to which it was donated",
        "With `donate_argnums` the result reuses the memory of the argument. The old array is invalid after the "
        "call, so rebind its name to the result.",
        """
        step = atled.jit(lambda w: w - 0.1, donate_argnums=0)
        w = jnp.ones(3)
        new = step(w)
        change = new - w  # here
        """,
        """
        step = atled.jit(lambda w: w - 0.1, donate_argnums=0)
        w = jnp.ones(3)
        w = step(w)
        assert w.shape == (3,)
        """,
    ),
    Mistake(
        "a-nan-under-jit",
        "A NaN that arises under `jit`",
        "FloatingPointError",
        r"log: the result has a nan that its operands do not have",
        r"operands: f32\[3\] from -1.0 to 2.0",
        "With `debug_nans` the function is run again, op by op, and the message names the op, the line, the step of a "
        "loop and the lane of a `vmap` where the NaN arose. `find_nans(f)(x)` returns the same report without "
        "raising.",
        """
        @atled.jit
        def loss(x):
            return jnp.sum(jnp.log(x))  # here

        with atled.debug_nans():
            loss(jnp.array([1.0, -1.0, 2.0]))
        """,
        """
        @atled.jit
        def loss(x):
            return jnp.sum(jnp.where(x > 0, jnp.log(x), 0.0))

        with atled.debug_nans():
            loss(jnp.array([1.0, 3.0, 2.0]))
        """,
    ),
    Mistake(
        "compiled-too-often",
        "A function that is compiled for every shape",
        "RuntimeError",
        r"jit: step has reached max_compiles=1, .*\(argument x was f32\[3\] and is f32\[4\]",
        r"try: pad arguments to a few shapes",
        "A program is compiled for the shapes it was traced with. `max_compiles` turns repeated recompilation into "
        "an error that names the argument that changed.",
        """
        @atled.jit(max_compiles=1)
        def step(x):
            return x * 2

        for n in (3, 4):
            step(jnp.ones(n))  # here
        """,
        """
        step = atled.jit(lambda x, n: jnp.where(jnp.arange(4) < n, x * 2, 0.0), max_compiles=1)
        for n in (3, 4):
            step(jnp.zeros(4).at[:n].set(1.0), n)
        """,
        jax="""
        step = jax.jit(lambda x: x * 2)
        for n in (3, 4):
            step(jnp.ones(n))
        """,
    ),
]

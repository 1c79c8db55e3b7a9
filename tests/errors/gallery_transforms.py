"""Mistakes with transformations and control flow: grad, vmap, custom rules, callbacks, cond, loops."""

from __future__ import annotations

from mistake import Mistake

TRANSFORMS = [
    Mistake(
        "gradient-of-a-vector",
        "The gradient of a vector",
        "TypeError",
        r"grad: the function must return a scalar; got f32\[3\], shape \(3,\)",
        r"try: jacrev for a Jacobian, or \.sum\(\) or \.mean\(\)",
        "A gradient says how one number changes. With several results there is one gradient for each, and together "
        "they form the Jacobian.",
        """
        def loss(w):
            return (w - 1.0) ** 2

        atled.grad(loss)(jnp.zeros(3))  # here
        """,
        """
        def loss(w):
            return ((w - 1.0) ** 2).sum()

        assert atled.grad(loss)(jnp.zeros(3))[0] == -2.0
        """,
    ),
    Mistake(
        "gradient-by-an-integer",
        "The gradient with respect to an integer",
        "TypeError",
        r"grad: derivatives need real or complex \(inexact\) arguments; got ~i32\[\]",
        r"try: a float argument such as 3\.0",
        "Integers cannot change by small amounts, so they have no derivative. Often the decimal point is just missing.",
        """
        atled.grad(lambda x: x**2)(3)  # here
        """,
        """
        assert atled.grad(lambda x: x**2)(3.0) == 6.0
        """,
    ),
    Mistake(
        "gradient-by-an-argument-that-is-not-there",
        "The gradient with respect to an argument that does not exist",
        "ValueError",
        r"grad: argnums asks for argument 2 of loss, which was called with 2 positional arguments",
        r"try: argnums from 0 to 1; they count from 0",
        "Arguments are counted from 0, so the second one has the number 1.",
        """
        def loss(w, x):
            return (w * x - 1.0) ** 2

        atled.grad(loss, argnums=2)(3.0, 2.0)  # here
        """,
        """
        def loss(w, x):
            return (w * x - 1.0) ** 2

        assert atled.grad(loss, argnums=1)(3.0, 2.0) == 30.0
        """,
    ),
    Mistake(
        "gradient-by-a-named-argument",
        "The gradient with respect to a keyword argument",
        "ValueError",
        r"grad: argnums asks for argument 0 of loss, which was called with 0 positional arguments",
        r"try: pass arguments by position: f\(x\)",
        "`grad` differentiates with respect to positional arguments; keyword arguments are constants.",
        """
        def loss(w, x):
            return (w * x) ** 2

        atled.grad(loss)(w=3.0, x=2.0)  # here
        """,
        """
        def loss(w, x):
            return (w * x) ** 2

        assert atled.grad(loss)(3.0, x=2.0) == 24.0
        """,
    ),
    Mistake(
        "gradient-of-a-tuple",
        "The gradient of a function that returns more than the loss",
        "TypeError",
        r"grad: the function must return a scalar; got tuple",
        r"try: return one scalar, or \(scalar, auxiliary\) with has_aux=True",
        "`grad` differentiates one number. Return other values as auxiliary output with `has_aux=True`.",
        """
        def loss(w):
            prediction = 2.0 * w
            return (prediction - 1.0) ** 2, prediction

        atled.grad(loss)(3.0)  # here
        """,
        """
        def loss(w):
            prediction = 2.0 * w
            return (prediction - 1.0) ** 2, prediction

        slope, prediction = atled.grad(loss, has_aux=True)(3.0)
        assert slope == 20.0 and prediction == 6.0
        """,
    ),
    Mistake(
        "has-aux-without-a-pair",
        "`has_aux` of a function that returns no pair",
        "TypeError",
        r"has_aux: the function must return a pair \(output, auxiliary\); got ~f32\[\]",
        r"try: return output, auxiliary from the function, or leave out has_aux=True",
        "With `has_aux=True` the function returns two things: the value to differentiate, and auxiliary output.",
        """
        def loss(w):
            return w**2

        atled.grad(loss, has_aux=True)(3.0)  # here
        """,
        """
        def loss(w):
            return w**2

        assert atled.grad(loss)(3.0) == 6.0
        """,
    ),
    Mistake(
        "gradient-of-nothing",
        "The gradient of a function without `return`",
        "TypeError",
        r"grad: the function must return a scalar; got None",
        r"try: return the scalar: a function without a `return` returns None",
        "The loss was computed, and then dropped at the end of the function.",
        """
        def loss(w):
            (w - 1.0) ** 2

        atled.grad(loss)(3.0)  # here
        """,
        """
        def loss(w):
            return (w - 1.0) ** 2

        assert atled.grad(loss)(3.0) == 4.0
        """,
    ),
    Mistake(
        "gradient-of-a-string",
        "The gradient of a function that returns a string",
        "TypeError",
        r"derivative: the function must return arrays or numbers; got str 'training'",
        r"try: has_aux=True",
        "A differentiated function must return only values that have a derivative. Return values without a "
        "derivative as auxiliary output.",
        """
        def loss(w):
            return w**2, "training"

        atled.grad(loss)(3.0)  # here
        """,
        """
        def loss(w):
            return w**2, "training"

        slope, mode = atled.grad(loss, has_aux=True)(3.0)
        assert slope == 6.0 and mode == "training"
        """,
    ),
    Mistake(
        "gradient-of-a-complex-function",
        "The gradient of a complex function",
        "TypeError",
        r"grad: the function must return a real scalar; got ~c64\[\]",
        r"try: holomorphic=True, or a real result such as abs\(z\)",
        "A complex result changes in two directions, so there is no single gradient, unless the function is "
        "holomorphic: then pass `holomorphic=True`.",
        """
        atled.grad(lambda z: z**2)(1.0 + 2.0j)  # here
        """,
        """
        assert atled.grad(lambda z: z**2, holomorphic=True)(1.0 + 2.0j) == 2.0 + 4.0j
        """,
    ),
    Mistake(
        "tangent-of-another-shape",
        "A tangent of another shape",
        "TypeError",
        r"jvp: the tangent of f32\[3\] must be f32\[3\]; got f32\[\]",
        r"try: numpy\.ones_like\(x\)",
        "The tangent says in which direction each element of the argument changes, so it must have the "
        "argument's shape.",
        """
        x = jnp.zeros(3)
        y, dy = atled.jvp(jnp.sin, (x,), (jnp.float32(1.0),))  # here
        """,
        """
        x = jnp.zeros(3)
        y, dy = atled.jvp(jnp.sin, (x,), (jnp.ones_like(x),))
        assert dy[0] == 1.0
        """,
    ),
    Mistake(
        "tangent-of-another-dtype",
        "A tangent of another dtype",
        "TypeError",
        r"jvp: the tangent of f32\[3\] must be f32\[3\]; got i32\[3\]",
        r"try: t\.astype\('float32'\)",
        "A tangent is a small change of the argument, so it has the argument's dtype.",
        """
        x = jnp.zeros(3)
        t = jnp.array([1, 0, 0])
        y, dy = atled.jvp(jnp.sin, (x,), (t,))  # here
        """,
        """
        x = jnp.zeros(3)
        t = jnp.array([1, 0, 0])
        y, dy = atled.jvp(jnp.sin, (x,), (t.astype("float32"),))
        assert dy[0] == 1.0
        """,
    ),
    Mistake(
        "jvp-without-tuples",
        "`jvp` without tuples",
        "TypeError",
        r"jvp: primals and tangents must be tuples, one entry for each argument of the function; got float and float",
        r"try: jvp\(f, \(x,\), \(t,\)\)",
        "A function may have several arguments, so they are passed as a tuple, even if there is only one. A "
        "tuple of one element is written with a comma: `(x,)`.",
        """
        y, dy = atled.jvp(jnp.sin, 0.0, 1.0)  # here
        """,
        """
        y, dy = atled.jvp(jnp.sin, (0.0,), (1.0,))
        assert dy == 1.0
        """,
    ),
    Mistake(
        "cotangent-of-another-shape",
        "A cotangent of another shape",
        "TypeError",
        r"vjp: the cotangent of an output f32\[3\] must be f32\[3\]; got ~f32\[\]",
        r"try: numpy\.ones_like\(y\)",
        "The cotangent weighs each element of the result, so it must have the result's shape.",
        """
        y, pull = atled.vjp(jnp.sin, jnp.zeros(3))
        (dx,) = pull(1.0)  # here
        """,
        """
        y, pull = atled.vjp(jnp.sin, jnp.zeros(3))
        (dx,) = pull(jnp.ones_like(y))
        assert dx[0] == 1.0
        """,
    ),
    Mistake(
        "too-few-cotangents-of-a-custom-rule",
        "Too few cotangents from a custom rule",
        "TypeError",
        r"custom_vjp: bwd of scale must return a tuple with a cotangent for each of 2 arguments; got 1 of them",
        r"try: None for an argument that has no derivative",
        "The backward rule returns a cotangent for every argument of the function, in order; None for zero.",
        """
        @atled.custom_vjp
        def scale(x, factor):
            return x * factor

        scale.defvjp(lambda x, factor: (x * factor, factor), lambda factor, g: (g * factor,))
        atled.grad(scale)(2.0, 3.0)  # here
        """,
        """
        @atled.custom_vjp
        def scale(x, factor):
            return x * factor

        scale.defvjp(lambda x, factor: (x * factor, factor), lambda factor, g: (g * factor, None))
        assert atled.grad(scale)(2.0, 3.0) == 3.0
        """,
    ),
    Mistake(
        "custom-rule-that-gives-another-shape",
        "A custom rule that gives another shape",
        "TypeError",
        r"custom_vjp: the rule of total must give a cotangent f32\[3\]; got f32\[\]",
        r"try: numpy\.broadcast_to\(g, \(3,\)\)",
        "A cotangent must have the shape of its argument, even where, as here, all its elements are equal.",
        """
        @atled.custom_vjp
        def total(x):
            return x.sum()

        total.defvjp(lambda x: (x.sum(), None), lambda _, g: (g,))
        atled.grad(total)(jnp.ones(3))  # here
        """,
        """
        @atled.custom_vjp
        def total(x):
            return x.sum()

        total.defvjp(lambda x: (x.sum(), None), lambda _, g: (jnp.broadcast_to(g, (3,)),))
        assert atled.grad(total)(jnp.ones(3))[0] == 1.0
        """,
    ),
    Mistake(
        "custom-jvp-without-a-rule",
        "`custom_jvp` without a rule",
        "AttributeError",
        r"custom_jvp: cube must have a rule before it is differentiated; it has none yet",
        r"try: decorate the rule with @cube\.defjvp",
        "The decorator declares a custom derivative; `defjvp` defines it.",
        """
        @atled.custom_jvp
        def cube(x):
            return x**3

        atled.grad(cube)(2.0)  # here
        """,
        """
        @atled.custom_jvp
        def cube(x):
            return x**3

        @cube.defjvp
        def rule(primals, tangents):
            (x,), (t,) = primals, tangents
            return cube(x), 3 * x**2 * t

        assert atled.grad(cube)(2.0) == 12.0
        """,
    ),
    Mistake(
        "forward-mode-through-a-reverse-rule",
        "Forward mode through a reverse-mode rule",
        "TypeError",
        r"custom_vjp: forward mode \(jvp\) cannot differentiate a function that has only a reverse-mode rule",
        r"try: custom_jvp, which supports both modes",
        "A reverse-mode rule (`custom_vjp`) does not define forward mode. The converse works: a forward-mode rule "
        "(`custom_jvp`) is transposed.",
        """
        @atled.custom_vjp
        def cube(x):
            return x**3

        cube.defvjp(lambda x: (x**3, x), lambda x, g: (3 * x**2 * g,))
        atled.jvp(cube, (2.0,), (1.0,))  # here
        """,
        """
        @atled.custom_jvp
        def cube(x):
            return x**3

        cube.defjvp(lambda primals, tangents: (cube(*primals), 3 * primals[0] ** 2 * tangents[0]))
        assert atled.jvp(cube, (2.0,), (1.0,))[1] == 12.0
        assert atled.grad(cube)(2.0) == 12.0
        """,
    ),
    Mistake(
        "callback-of-another-dtype",
        "A callback that returns another dtype",
        "TypeError",
        r"callback: totals must return f32\[3\], as declared; it returned f64\[3\]",
        r"try: np\.asarray\(result, 'float32'\)",
        "The program was compiled for the declared type, so the result buffer has that size. NumPy "
        "computes in float64 by default.",
        """
        def totals(x):
            return np.cumsum(x, dtype=np.float64)

        result = atled.ShapeDtypeStruct((3,), jnp.float32)
        y = atled.pure_callback(totals, result, jnp.ones(3))  # here
        """,
        """
        def totals(x):
            return np.asarray(np.cumsum(x, dtype=np.float64), "float32")

        result = atled.ShapeDtypeStruct((3,), jnp.float32)
        y = atled.pure_callback(totals, result, jnp.ones(3))
        assert y[2] == 3.0
        """,
    ),
    Mistake(
        "derivative-of-a-callback",
        "The derivative of a callback",
        "TypeError",
        r"callback: the derivative of sin, a function on the host, is not known",
        r"try: wrap the call in a function with custom_jvp or custom_vjp",
        "A host callback is not traced, so its derivative is unknown. Define it with a custom rule.",
        """
        result = atled.ShapeDtypeStruct((), jnp.float32)

        def wave(x):
            return atled.pure_callback(np.sin, result, x)  # here

        atled.grad(wave)(0.0)
        """,
        """
        result = atled.ShapeDtypeStruct((), jnp.float32)

        @atled.custom_jvp
        def wave(x):
            return atled.pure_callback(np.sin, result, x)

        wave.defjvp(lambda primals, tangents: (wave(*primals), jnp.cos(primals[0]) * tangents[0]))
        assert atled.grad(wave)(0.0) == 1.0
        """,
    ),
    Mistake(
        "in-axes-too-large",
        "`in_axes` of an axis that does not exist",
        "ValueError",
        r"vmap: in_axes asks for axis 1 of f32\[3\], which has 1 axis",
        r"try: an axis from -1 to 0",
        "`in_axes` says which axis of the argument runs over the examples, counted from 0.",
        """
        x = jnp.ones(3)
        y = atled.vmap(jnp.sin, in_axes=1)(x)  # here
        """,
        """
        x = jnp.ones(3)
        y = atled.vmap(jnp.sin, in_axes=0)(x)
        assert y.shape == (3,)
        """,
    ),
    Mistake(
        "vmap-over-a-number",
        "`vmap` over a number",
        "ValueError",
        r"vmap: in_axes asks for axis 0 of ~f32\[\], which has 0 axes \(argument \[1\]\)",
        r"try: in_axes=None to pass the same value to all examples",
        "By default every argument has an entry for each example. An argument that is the same for all "
        "examples is marked with None.",
        """
        x = jnp.ones((5, 2))
        y = atled.vmap(lambda row, factor: row * factor)(x, 2.0)  # here
        """,
        """
        x = jnp.ones((5, 2))
        y = atled.vmap(lambda row, factor: row * factor, in_axes=(0, None))(x, 2.0)
        assert y.shape == (5, 2)
        """,
    ),
    Mistake(
        "in-axes-for-too-few-arguments",
        "`in_axes` for too few arguments",
        "ValueError",
        r"vmap: in_axes must have an entry for each argument; got 1 for 2 arguments",
        r"try: an entry for each, None where there is no batch axis",
        "A tuple in `in_axes` has one entry for each positional argument.",
        """
        x = jnp.ones((5, 2))
        w = jnp.ones(2)
        y = atled.vmap(jnp.dot, in_axes=(0,))(x, w)  # here
        """,
        """
        x = jnp.ones((5, 2))
        w = jnp.ones(2)
        y = atled.vmap(jnp.dot, in_axes=(0, None))(x, w)
        assert y.shape == (5,)
        """,
    ),
    Mistake(
        "batches-of-different-sizes",
        "Batches of different sizes",
        "ValueError",
        r"vmap: mapped axes must have the same size; got 3 for f32\[3\] along axis 0 .*, and 4 for f32\[4\] "
        "along axis 0",
        r"try: in_axes=\(0, None\).*two vmaps for all pairs",
        "`vmap` goes through all mapped arguments together: the first example of each, the second of each, and so on.",
        """
        x = jnp.ones(3)
        y = jnp.ones(4)
        z = atled.vmap(jnp.multiply)(x, y)  # here
        """,
        """
        x = jnp.ones(3)
        y = jnp.ones(4)
        z = atled.vmap(lambda a: atled.vmap(lambda b: a * b)(y))(x)
        assert z.shape == (3, 4)
        """,
    ),
    Mistake(
        "vmap-over-nothing",
        "`vmap` over nothing",
        "ValueError",
        r"vmap: at least one argument must be mapped, because it gives the batch size; got no axis in in_axes",
        r"try: in_axes=0 for an argument, or axis_size=n",
        "Without a mapped argument, the number of examples is unknown.",
        """
        x = jnp.ones(3)
        y = atled.vmap(jnp.sin, in_axes=None)(x)  # here
        """,
        """
        x = jnp.ones(3)
        y = atled.vmap(jnp.sin, in_axes=None, axis_size=2)(x)
        assert y.shape == (2, 3)
        """,
    ),
    Mistake(
        "out-axes-none-for-a-mapped-result",
        "`out_axes=None` for a result that differs",
        "ValueError",
        r"vmap: out_axes may be None for a result that is the same for all examples; got f32\[\], which differs",
        r"try: out_axes=0, and \.mean\(axis=0\)",
        "Every example has its own result. To get a single result, reduce over the batch afterwards.",
        """
        x = jnp.ones(3)
        y = atled.vmap(jnp.sin, out_axes=None)(x)  # here
        """,
        """
        x = jnp.ones(3)
        y = atled.vmap(jnp.sin, out_axes=0)(x).mean(axis=0)
        assert y.shape == ()
        """,
    ),
    Mistake(
        "collective-over-an-unknown-axis",
        "A collective over an unknown axis name",
        "NameError",
        r"collective: there is no axis named 'batch' here; the axes in scope are: none",
        r"try: vmap\(f, axis_name='batch'\)",
        "`lax.pmean` reduces over the examples of the enclosing `vmap` with that axis name.",
        """
        def centered(x):
            return x - lax.pmean(x, "batch")  # here

        atled.vmap(centered)(jnp.arange(3.0))
        """,
        """
        def centered(x):
            return x - lax.pmean(x, "batch")

        y = atled.vmap(centered, axis_name="batch")(jnp.arange(3.0))
        assert y[0] == -1.0
        """,
    ),
    Mistake(
        "branches-of-different-types",
        "Branches of different types",
        "TypeError",
        r"cond: the branches must return the same types; result: false_fun gives ~i32\[\], true_fun gives f32\[\]",
        r"try: x\.astype\('float32'\), or a Python number of that kind",
        "Which branch runs is decided at run time, and the code after it must work with either, so both must return "
        "the same type. `0` is an integer, `0.0` is not.",
        """
        x = jnp.float32(3.0)
        y = lax.cond(x > 0, lambda x: x, lambda x: 0, x)  # here
        """,
        """
        x = jnp.float32(3.0)
        y = lax.cond(x > 0, lambda x: x, lambda x: 0.0, x)
        assert y == 3.0
        """,
    ),
    Mistake(
        "branches-of-different-trees",
        "Branches that return different pytrees",
        "TypeError",
        r"cond: the branches must return the same tree; false_fun gives TreeDef\(None\), true_fun gives ",
        r"try: return the same tree from each branch",
        "The code after a `cond` must work for either branch, so both must return the same pytree structure.",
        """
        x = jnp.float32(3.0)
        y = lax.cond(x > 0, lambda x: jnp.log(x), lambda x: None, x)  # here
        """,
        """
        x = jnp.float32(3.0)
        y = lax.cond(x > 0, lambda x: jnp.log(x), lambda x: jnp.zeros_like(x), x)
        assert y > 1.0
        """,
    ),
    Mistake(
        "values-as-branches",
        "Values where `cond` expects functions",
        "TypeError",
        r"cond: the branches must be functions; got f32\[\]",
        r"try: y = jnp\.where\(x > 0, x, -x\)",
        "`cond` chooses what to compute, so it takes functions. To choose between values that are already "
        "computed, `where` is enough.",
        """
        x = jnp.float32(-3.0)
        y = lax.cond(x > 0, x, -x)  # here
        """,
        """
        x = jnp.float32(-3.0)
        y = jnp.where(x > 0, x, -x)
        assert y == 3.0
        """,
    ),
    Mistake(
        "cond-on-an-array",
        "`cond` on an array",
        "TypeError",
        r"cond: the predicate must be a scalar; got bool\[3\]",
        r"try: numpy\.where to choose element by element",
        "`cond` runs one branch or the other, as a whole. To choose for each element, use `where`.",
        """
        x = jnp.array([1.0, -2.0, 3.0])
        y = lax.cond(x > 0, lambda x: x, lambda x: -x, x)  # here
        """,
        """
        x = jnp.array([1.0, -2.0, 3.0])
        y = jnp.where(x > 0, x, -x)
        assert y[1] == 2.0
        """,
    ),
    Mistake(
        "carry-that-changes-its-shape",
        "A carry that changes its shape",
        "TypeError",
        r"scan: the carry must keep its type; carry: starts as f32\[\], the body gives f32\[3\]",
        r"try: total, _ = lax\.scan\(add, jnp\.full\(\(3,\), 0\.0\), rows\)",
        "One compiled body runs for every step, so the carry that it returns must have the type of the carry that "
        "it receives.",
        """
        def add(total, row):
            return total + row, None

        rows = jnp.ones((5, 3))
        total, _ = lax.scan(add, 0.0, rows)  # here
        """,
        """
        def add(total, row):
            return total + row, None

        rows = jnp.ones((5, 3))
        total, _ = lax.scan(add, jnp.full((3,), 0.0), rows)
        assert total[0] == 5.0
        """,
    ),
    Mistake(
        "carry-that-changes-its-dtype",
        "A carry that changes its dtype",
        "TypeError",
        r"scan: the carry must keep its type; carry: starts as i32\[\], the body gives f32\[\]: int32 became float32",
        r"try: total, _ = lax\.scan\(add, start\.astype\('float32'\), xs\)",
        "Integers and floats add up to floats, and the carry must have the same dtype in all steps. Python "
        "numbers take the dtype of the result; arrays keep theirs.",
        """
        def add(total, x):
            return total + x, None

        start, xs = jnp.int32(0), jnp.ones(5)
        total, _ = lax.scan(add, start, xs)  # here
        """,
        """
        def add(total, x):
            return total + x, None

        start, xs = jnp.int32(0), jnp.ones(5)
        total, _ = lax.scan(add, start.astype("float32"), xs)
        assert total == 5.0
        """,
    ),
    Mistake(
        "scan-over-different-lengths",
        "`scan` over arrays of different lengths",
        "ValueError",
        r"scan: all arrays must have the same length along the first axis; got f32\[5\] in xs, f32\[4\] in xs",
        r"try: x\[:4\] for the longer arrays",
        "`scan` takes one slice of every array in each step, so they must have the same number of slices.",
        """
        def step(total, pair):
            x, y = pair
            return total + x * y, None

        total, _ = lax.scan(step, 0.0, (jnp.ones(5), jnp.ones(4)))  # here
        """,
        """
        def step(total, pair):
            x, y = pair
            return total + x * y, None

        total, _ = lax.scan(step, 0.0, (jnp.ones(5)[:4], jnp.ones(4)))
        assert total == 4.0
        """,
    ),
    Mistake(
        "scan-body-without-a-pair",
        "A body of `scan` that returns no pair",
        "TypeError",
        r"scan: the function must return a pair \(carry, y\); got f32\[\]",
        r"try: return carry, None if there is nothing to stack",
        "The body returns the carry for the next step, and the output of this step.",
        """
        def add(total, x):
            return total + x

        total, _ = lax.scan(add, 0.0, jnp.ones(5))  # here
        """,
        """
        def add(total, x):
            return total + x, None

        total, _ = lax.scan(add, 0.0, jnp.ones(5))
        assert total == 5.0
        """,
    ),
    Mistake(
        "while-loop-on-an-array",
        "A `while_loop` whose condition is an array",
        "TypeError",
        r"while_loop: the condition must be a single boolean; cond_fun returns bool\[2\]",
        r"try: .*\(x > 0\)\.any\(\) or \(x > 0\)\.all\(\)",
        "The loop continues or stops as a whole. With `vmap` around it, every example has its own loop.",
        """
        x = jnp.array([1.0, 3.0])
        y = lax.while_loop(lambda x: x < 10, lambda x: 2 * x, x)  # here
        """,
        """
        x = jnp.array([1.0, 3.0])
        y = lax.while_loop(lambda x: (x < 10).any(), lambda x: 2 * x, x)
        assert y[0] == 16.0
        """,
    ),
    Mistake(
        "reverse-mode-through-a-while-loop",
        "Reverse mode through a `while_loop`",
        "ValueError",
        r"while_loop: linearize and reverse mode would have to store every step, but the number of steps is not known",
        r"try: while_loop\(\.\.\., max_steps=n\)",
        "Reverse mode needs the residuals of every step, so the number of steps must be bounded: pass `max_steps`.",
        """
        def doubled(x):
            return lax.while_loop(lambda x: x < 10, lambda x: 2 * x, x)  # here

        atled.grad(doubled)(1.0)
        """,
        """
        def doubled(x):
            return lax.while_loop(lambda x: x < 10, lambda x: 2 * x, x, max_steps=8)

        assert atled.grad(doubled)(1.0) == 16.0
        """,
    ),
]

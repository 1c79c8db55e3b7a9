"""Mistakes with shapes and axes."""

from __future__ import annotations

from mistake import Mistake

SHAPES = [
    Mistake(
        "transposed-operands",
        "Transposed operands",
        "ValueError",
        r"multiply: shapes \(2, 3\) and \(3, 2\) do not broadcast together; got f32\[2,3\] and f32\[3,2\]",
        r"try: z = x \* y\.T",
        "Elementwise operations match axes by position, and the axes of these two arrays are in opposite order.",
        """
        x = jnp.ones((2, 3))
        y = jnp.ones((3, 2))
        z = x * y  # here
        """,
        """
        x = jnp.ones((2, 3))
        y = jnp.ones((3, 2))
        z = x * y.T
        assert z.shape == (2, 3)
        """,
    ),
    Mistake(
        "matmul-of-shapes-that-do-not-fit",
        "`@` of shapes that do not match",
        "ShapeError",
        r"matmul: the last axis of f32\[8,3\] and the second to last axis of f32\[4,3\] must have the same length; "
        r"got 3 and 4",
        r"try: y = x @ w\.T",
        "A matrix product sums over the last axis of the first operand and the second to last of the second. Weights "
        "are often stored as [outputs, inputs], and then have to be transposed.",
        """
        x = jnp.ones((8, 3))
        w = jnp.ones((4, 3))
        y = x @ w  # here
        """,
        """
        x = jnp.ones((8, 3))
        w = jnp.ones((4, 3))
        y = x @ w.T
        assert y.shape == (8, 4)
        """,
    ),
    Mistake(
        "matmul-with-a-number",
        "`@` with a number",
        "ValueError",
        r"matmul: operands must have at least one axis; got f32\[2,2\] and ~f32\[\]",
        r"try: \* instead of @",
        "`@` is the matrix product, and a number has no axis to sum over.",
        """
        x = jnp.ones((2, 2))
        y = x @ 2.0  # here
        """,
        """
        x = jnp.ones((2, 2))
        y = x * 2.0
        assert y.shape == (2, 2)
        """,
    ),
    Mistake(
        "convolution-channels",
        "Channels of a convolution",
        "TypeError",
        r"conv: x has 3 features, the kernel takes 1; got f32\[1,8,8,3\].* and f32\[3,3,1,16\]",
        r"try: a kernel whose axis 2 is 3 long",
        "The kernel has a weight for every channel of the image. `dimension_numbers` says which axis holds "
        "the channels: the `I` of the kernel must be as long as the `C` of the image.",
        """
        image = jnp.ones((1, 8, 8, 3))
        kernel = jnp.ones((3, 3, 1, 16))
        axes = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=axes)  # here
        """,
        """
        image = jnp.ones((1, 8, 8, 3))
        kernel = jnp.ones((3, 3, 3, 16))
        axes = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=axes)
        assert y.shape == (1, 8, 8, 16)
        """,
    ),
    Mistake(
        "concatenate-along-the-wrong-axis",
        "`concatenate` along the wrong axis",
        "TypeError",
        r"concatenate: operands must have equal shapes except along axis 0; got f32\[2,3\], f32\[2,4\]",
        r"try: z = jnp\.concatenate\(\[x, y\], axis=1\)",
        "The arrays are put one after another along one axis, so all the other axes must have the same length.",
        """
        x = jnp.ones((2, 3))
        y = jnp.ones((2, 4))
        z = jnp.concatenate([x, y])  # here
        """,
        """
        x = jnp.ones((2, 3))
        y = jnp.ones((2, 4))
        z = jnp.concatenate([x, y], axis=1)
        assert z.shape == (2, 7)
        """,
    ),
    Mistake(
        "concatenate-without-a-list",
        "`concatenate` without a list",
        "TypeError",
        r"concatenate: the arrays must be in one list, followed by the axis; got f32\[3\] as the axis",
        r"try: z = jnp\.concatenate\(\[x, y\]\)",
        "The first argument is the list of all arrays; the second is the axis.",
        """
        x = jnp.ones(3)
        y = jnp.ones(3)
        z = jnp.concatenate(x, y)  # here
        """,
        """
        x = jnp.ones(3)
        y = jnp.ones(3)
        z = jnp.concatenate([x, y])
        assert z.shape == (6,)
        """,
    ),
    Mistake(
        "stack-of-different-shapes",
        "`stack` of different shapes",
        "ValueError",
        r"stack: arrays must have the same shape; got f32\[3\], f32\[4\]",
        r"try: concatenate to join them along an existing axis",
        "`stack` adds a new axis with one entry for each array, so all arrays must have the same shape.",
        """
        x = jnp.ones(3)
        y = jnp.ones(4)
        z = jnp.stack([x, y])  # here
        """,
        """
        x = jnp.ones(3)
        y = jnp.ones(4)
        z = jnp.concatenate([x, y])
        assert z.shape == (7,)
        """,
    ),
    Mistake(
        "reshape-to-a-wrong-size",
        "`reshape` to a wrong size",
        "TypeError",
        r"reshape: the number of elements must stay the same; got f32\[2,3\] .* for shape \(4, 2\), 8 elements",
        r"try: -1 for one of the lengths",
        "`reshape` puts the same elements into another shape; it adds and drops none.",
        """
        x = jnp.ones((2, 3))
        y = x.reshape(4, 2)  # here
        """,
        """
        x = jnp.ones((2, 3))
        y = x.reshape(-1, 2)
        assert y.shape == (3, 2)
        """,
    ),
    Mistake(
        "broadcast-to-a-shape",
        "`broadcast_to` an incompatible shape",
        "ValueError",
        r"broadcast_to: lengths must be equal, or 1; got f32\[3\] .* for shape \(3, 4\)",
        r"try: y = jnp\.broadcast_to\(x\[:, None\], \(3, 4\)\)",
        "Axes are lined up from the right, so the 3 is matched with the 4. A new axis of length 1 makes x a column.",
        """
        x = jnp.ones(3)
        y = jnp.broadcast_to(x, (3, 4))  # here
        """,
        """
        x = jnp.ones(3)
        y = jnp.broadcast_to(x[:, None], (3, 4))
        assert y.shape == (3, 4)
        """,
    ),
    Mistake(
        "split-into-unequal-parts",
        "`split` into unequal parts",
        "ValueError",
        r"split: 7 elements cannot be split into 3 equal parts",
        r"try: array_split",
        "`split` makes parts of equal length. `array_split` allows the first parts to be longer by one.",
        """
        x = jnp.arange(7)
        parts = jnp.split(x, 3)  # here
        """,
        """
        x = jnp.arange(7)
        parts = jnp.array_split(x, 3)
        assert [len(p) for p in parts] == [3, 2, 2]
        """,
    ),
    Mistake(
        "sum-over-an-axis-that-is-not-there",
        "`sum` over an axis that does not exist",
        "AxisError",
        r"sum: axis 2 is out of bounds for an array with 2 axes",
        r"try: an axis from -2 to 1",
        "Axes are counted from 0; negative ones count from the end, so -1 is always the last.",
        """
        x = jnp.ones((2, 3))
        y = x.sum(axis=2)  # here
        """,
        """
        x = jnp.ones((2, 3))
        y = x.sum(axis=1)
        assert y.shape == (2,)
        """,
    ),
    Mistake(
        "argmax-over-an-axis-that-is-not-there",
        "`argmax` over an axis that does not exist",
        "AxisError",
        r"argmax: axis 1 is out of bounds for an array with 1 axis",
        r"try: an axis from -1 to 0",
        "A single example has one axis fewer than a batch of examples. Axis -1 is the last one in both cases.",
        """
        scores = jnp.array([0.1, 0.7, 0.2])
        best = jnp.argmax(scores, axis=1)  # here
        """,
        """
        scores = jnp.array([0.1, 0.7, 0.2])
        best = jnp.argmax(scores, axis=-1)
        assert best == 1
        """,
    ),
    Mistake(
        "squeeze-of-an-axis-that-is-longer",
        "`squeeze` of an axis that is longer than one",
        "ValueError",
        r"squeeze: only axes of length one can be removed; got f32\[5,1\] and axis 0",
        r"try: axis=1, of length 1",
        "`squeeze` removes only axes of length one, because removing a longer axis would lose elements.",
        """
        x = jnp.ones((5, 1))
        y = jnp.squeeze(x, axis=0)  # here
        """,
        """
        x = jnp.ones((5, 1))
        y = jnp.squeeze(x, axis=1)
        assert y.shape == (5,)
        """,
    ),
    Mistake(
        "transpose-with-too-few-axes",
        "`transpose` with too few axes",
        "ValueError",
        r"transpose: \(1, 0\) is not a permutation of the 3 axes of f32\[2,3,4\]",
        r"try: each of \(0, 1, 2\) once, or swapaxes",
        "The permutation must contain every axis once, including axes that do not move.",
        """
        x = jnp.ones((2, 3, 4))
        y = jnp.transpose(x, (1, 0))  # here
        """,
        """
        x = jnp.ones((2, 3, 4))
        y = jnp.transpose(x, (1, 0, 2))
        assert y.shape == (3, 2, 4)
        """,
    ),
    Mistake(
        "einsum-with-a-wrong-subscript",
        "`einsum` with a wrong subscript",
        "ValueError",
        r"einsum: every axis must have a label; got 3 labels 'ijk' for f32\[2,3\], which has 2 axes",
        r"try: 'ij'",
        "Every axis of every operand has one letter; letters that are missing after the arrow are summed over.",
        """
        x = jnp.ones((2, 3))
        y = jnp.einsum("ijk->i", x)  # here
        """,
        """
        x = jnp.ones((2, 3))
        y = jnp.einsum("ij->i", x)
        assert y.shape == (2,)
        """,
    ),
    Mistake(
        "einsum-of-lengths-that-differ",
        "`einsum` of lengths that differ",
        "ValueError",
        r"einsum: axes with the same label must have the same length; got 3 and 4 for 'j' in 'ij,jk->ik'",
        r"try: the labels in the order of the axes",
        "Axes with the same letter are indexed together, so they must have the same length.",
        """
        x = jnp.ones((2, 3))
        y = jnp.ones((4, 3))
        z = jnp.einsum("ij,jk->ik", x, y)  # here
        """,
        """
        x = jnp.ones((2, 3))
        y = jnp.ones((4, 3))
        z = jnp.einsum("ij,kj->ik", x, y)
        assert z.shape == (2, 4)
        """,
    ),
    Mistake(
        "solve-of-a-matrix-that-is-not-square",
        "`solve` of a matrix that is not square",
        "ValueError",
        r"solve: expected square matrices on the last two axes; got f32\[3,2\]",
        r"try: numpy\.linalg\.lstsq\(a, b\)",
        "With more equations than unknowns there is in general no exact solution; `lstsq` minimizes the error.",
        """
        a = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        x = jnp.linalg.solve(a, jnp.ones(3))  # here
        """,
        """
        a = jnp.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        x = jnp.linalg.lstsq(a, jnp.ones(3))[0]
        assert x.shape == (2,)
        """,
    ),
    Mistake(
        "cholesky-of-a-matrix-that-is-not-square",
        "`cholesky` of a matrix that is not square",
        "ValueError",
        r"cholesky: expected square matrices on the last two axes; got f32\[2,3\]",
        r"try: a @ a\.T, which is square and positive",
        "A Cholesky factor exists for symmetric positive definite matrices, such as a covariance matrix, but "
        "not for a data matrix.",
        """
        data = jnp.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
        factor = jnp.linalg.cholesky(data)  # here
        """,
        """
        data = jnp.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
        factor = jnp.linalg.cholesky(data @ data.T)
        assert factor.shape == (2, 2)
        """,
    ),
    Mistake(
        "take-along-axis-with-too-few-axes",
        "`take_along_axis` with too few axes",
        "ValueError",
        r"take_along_axis: array and indices must have the same number of axes; got f32\[2,3\] and i32\[2\]",
        r"try: top = jnp\.take_along_axis\(scores, best\[:, None\], axis=1\)",
        "`argmax` removes the axis. `take_along_axis` needs it, with the number of elements to take as its length.",
        """
        scores = jnp.ones((2, 3))
        best = jnp.argmax(scores, axis=1)
        top = jnp.take_along_axis(scores, best, axis=1)  # here
        """,
        """
        scores = jnp.ones((2, 3))
        best = jnp.argmax(scores, axis=1)
        top = jnp.take_along_axis(scores, best[:, None], axis=1)
        assert top.shape == (2, 1)
        """,
    ),
    Mistake(
        "length-of-a-number",
        "`len` of a number",
        "TypeError",
        r"len: a 0-d array has no length; got f32\[\]",
        r"try: x\.size",
        "A 0-d array is one number. `size` counts the elements of any array.",
        """
        x = jnp.float32(3.0)
        n = len(x)  # here
        """,
        """
        x = jnp.float32(3.0)
        n = x.size
        assert n == 1
        """,
    ),
    Mistake(
        "shape-given-as-two-arguments",
        "A shape given as two arguments",
        "TypeError",
        r"zeros: the shape must be one tuple, followed by the dtype; got 3 as the dtype",
        r"try: x = jnp\.zeros\(\(2, 3\)\)",
        "The second argument is the dtype, as in NumPy.",
        """
        x = jnp.zeros(2, 3)  # here
        """,
        """
        x = jnp.zeros((2, 3))
        assert x.shape == (2, 3)
        """,
    ),
    Mistake(
        "shape-that-is-a-float",
        "A shape that is a float",
        "TypeError",
        r"zeros: a shape is an int or a sequence of ints; got 5\.0",
        r"try: n // 2 instead of n / 2",
        "`/` gives a float in Python, even if the division is exact; `//` gives an int.",
        """
        n = 10
        x = jnp.zeros(n / 2)  # here
        """,
        """
        n = 10
        x = jnp.zeros(n // 2)
        assert x.shape == (5,)
        """,
    ),
]

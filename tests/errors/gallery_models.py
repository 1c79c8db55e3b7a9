"""Mistakes with models; beside ours, what Flax says, where the mistake can be made there."""

from __future__ import annotations

from mistake import NO_PEER, Mistake

MODELS = [
    Mistake(
        "assigned-and-not-returned",
        "State that is assigned and not returned",
        "UserWarning",
        r"BatchNorm\.mean: assigned in loss, which does not return the model, so it is lost",
        r"try: train\.gradients\(loss\), return the model with has_aux=True, or model\.eval\(\)",
        "A transformed function works on a copy of the model. An assignment persists only if the function returns "
        "the model, as `train.gradients` does. This is a warning by default; in this example, warnings are errors.",
        """
        import warnings
        from atled import nn

        def loss(model, x):
            return jnp.mean(model(x) ** 2)

        model, x = nn.BatchNorm(2), jnp.ones((4, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            grads = atled.grad(loss)(model, x)  # here
        """,
        """
        from atled import nn, train

        def loss(model, x):
            return jnp.mean(model(x) ** 2)

        value, model, grads = train.gradients(loss)(nn.BatchNorm(2), jnp.ones((4, 2)))
        assert model.mean[0] > 0
        """,
        """
        from flax import nnx

        graph, params, rest = nnx.split(nnx.BatchNorm(2, rngs=nnx.Rngs(0)), nnx.Param, ...)

        def loss(params, rest, x):
            return jnp.mean(nnx.merge(graph, params, rest)(x) ** 2)

        grads = jax.grad(loss)(params, rest, jnp.ones((4, 2)))
        """,
    ),
    Mistake(
        "dropout-without-a-key",
        "Dropout without a key",
        "TypeError",
        r"Dropout: a key must be given while training",
        r"try: .*key=key.*model\.eval\(\)",
        "Randomness is an argument. In training mode dropout needs a key; in evaluation mode it needs none. The "
        "same error appears if `eval()` was forgotten.",
        """
        from atled import nn

        drop = nn.Dropout(0.5)
        y = drop(jnp.ones(3))  # here
        """,
        """
        from atled import nn

        drop = nn.Dropout(0.5)
        y = drop(jnp.ones(3), key=random.key(0))
        assert (drop.eval()(jnp.ones(3)) == 1.0).all()
        """,
        """
        from flax import nnx

        drop = nnx.Dropout(0.5)
        y = drop(jnp.ones(3))
        """,
    ),
    Mistake(
        "state-of-a-model-from-outside",
        "A model from outside that keeps a traced value",
        "UnexpectedTracerError",
        r"BatchNorm\.mean: the module comes from outside of jit, and cannot keep a value that is traced there",
        r"try: pass the module as an argument and return it",
        "Under `jit` values are tracers. A model that is not an argument of the function would keep a leaked "
        "tracer. Reading such a model is fine.",
        """
        from atled import nn

        norm = nn.BatchNorm(2)

        @atled.jit
        def run(x):
            return norm(x)  # here

        run(jnp.ones((4, 2)))
        """,
        """
        from atled import nn

        norm = nn.BatchNorm(2)

        @atled.jit
        def run(norm, x):
            return norm(x), norm

        y, norm = run(norm, jnp.ones((4, 2)))
        assert norm.mean[0] > 0
        """,
        """
        from flax import nnx

        norm = nnx.BatchNorm(2, rngs=nnx.Rngs(0))

        @jax.jit
        def run(x):
            return norm(x)

        run(jnp.ones((4, 2)))
        """,
    ),
    Mistake(
        "array-that-is-not-declared",
        "An array that is not declared",
        "TypeError",
        r"Line\.slope: arrays must be declared",
        r"try: nn\.Param\(x\) if it is trained, nn\.Buffer\(x\) if it is not",
        "An array is declared trainable or not where it is assigned. An undeclared array is almost always a "
        "parameter that would silently not be trained.",
        """
        from atled import nn

        class Line(nn.Module):
            def __init__(self):
                self.slope = jnp.ones(3)  # here

        line = Line()
        """,
        """
        from atled import nn

        class Line(nn.Module):
            def __init__(self):
                self.slope = nn.Param(jnp.ones(3))

        line = Line()
        assert line.slope.shape == (3,)
        """,
        """
        from flax import nnx

        class Line(nnx.Module):
            def __init__(self):
                self.slope = jnp.ones(3)

        line = Line()
        """,
    ),
    Mistake(
        "array-in-a-list-that-is-not-declared",
        "An array in a list that is not declared",
        "TypeError",
        r"Sum\.terms\['first'\]\[1\]: arrays must be declared",
        r"try: nn\.Param\(x\) if it is trained, nn\.Buffer\(x\) if it is not",
        "Arrays in lists and dicts are declared one by one, or all together: `nn.Param([x, y])`. NumPy arrays must "
        "be declared, too.",
        """
        from atled import nn

        class Sum(nn.Module):
            def __init__(self):
                self.terms = {"first": [nn.Param(jnp.ones(3)), np.ones(3)]}

        model = Sum()  # here
        """,
        """
        from atled import nn

        class Sum(nn.Module):
            def __init__(self):
                self.terms = nn.Param({"first": [jnp.ones(3), np.ones(3, "float32")]})

        assert Sum().terms["first"][1].shape == (3,)
        """,
        """
        from flax import nnx

        class Sum(nnx.Module):
            def __init__(self):
                self.terms = {"first": [nnx.Param(jnp.ones(3)), np.ones(3)]}

        model = Sum()
        """,
    ),
    Mistake(
        "static-value-that-changes-with-each-call",
        "A static value that changes with each call",
        "RuntimeError",
        r"jit: run has reached max_compiles=1, .*net\.calls was 0 and is 1",
        r"try: .*pass static values that vary as arrays",
        "Attributes that are neither declared arrays nor modules are static, so each new value recompiles. Declare "
        "a counter as a `Buffer`.",
        """
        from atled import nn

        class Net(nn.Module):
            def __init__(self):
                self.calls = 0

            def __call__(self, x):
                self.calls += 1
                return x

        @atled.jit(max_compiles=1)
        def run(net, x):
            return net(x), net

        net = Net()
        for _ in range(3):
            y, net = run(net, 1.0)  # here
        """,
        """
        from atled import nn

        class Net(nn.Module):
            def __init__(self):
                self.calls = nn.Buffer(0)

            def __call__(self, x):
                self.calls += 1
                return x

        @atled.jit(max_compiles=1)
        def run(net, x):
            return net(x), net

        net = Net()
        for _ in range(3):
            y, net = run(net, 1.0)
        assert net.calls == 3
        """,
        """
        from flax import nnx

        class Net(nnx.Module):
            def __init__(self):
                self.calls = 0

            def __call__(self, x):
                self.calls += 1
                return x

        @nnx.jit
        def run(net, x):
            return net(x)

        net = Net()
        for _ in range(3):
            y = run(net, 1.0)
        """,
    ),
    Mistake(
        "one-array-at-two-places",
        "One array in two places of a model",
        "ValueError",
        r"Tied: tokens/weight and head/weight are the same array; in a pytree they would become two copies",
        r"try: let one module own it.*self\.tokens\.attend\(x\)",
        "A model is a pytree of arrays. An array that occurs twice would get two gradients, and two states in the "
        "optimizer. Let one module own it, and call that module from the other place.",
        """
        from atled import nn

        class Tied(nn.Module):
            def __init__(self, key):
                k1, k2 = random.split(key)
                self.tokens = nn.Embedding(10, 10, key=k1)
                self.head = nn.Linear(10, 10, key=k2)
                self.head.weight = self.tokens.weight

        model = Tied(random.key(0))  # here
        """,
        """
        from atled import nn

        class Tied(nn.Module):
            def __init__(self, key):
                self.tokens = nn.Embedding(10, 10, key=key)

            def __call__(self, ids):
                return self.tokens.attend(self.tokens(ids))

        assert Tied(random.key(0))(jnp.arange(3)).shape == (3, 10)
        """,
        """
        from flax import nnx

        class Tied(nnx.Module):
            def __init__(self, rngs):
                self.tokens = nnx.Embed(10, 10, rngs=rngs)
                self.head = nnx.Linear(10, 10, rngs=rngs)
                self.head.kernel = self.tokens.embedding

        model = Tied(nnx.Rngs(0))
        """,
    ),
    Mistake(
        "model-as-a-static-argument",
        "A model as a static argument",
        "ValueError",
        r"jit: static arguments must be hashable, and may hold no arrays; argument model of run is Linear",
        r"try: leave it dynamic; models are pytrees",
        "A static argument is a part of the program. Weights should not be static: they would become "
        "constants, and every training step would recompile.",
        """
        from functools import partial
        from atled import nn

        @partial(atled.jit, static_argnums=0)
        def run(model, x):
            return model(x)

        run(nn.Linear(2, 3, key=random.key(0)), jnp.ones(2))  # here
        """,
        """
        from atled import nn

        @atled.jit
        def run(model, x):
            return model(x)

        assert run(nn.Linear(2, 3, key=random.key(0)), jnp.ones(2)).shape == (3,)
        """,
        """
        from functools import partial
        from flax import nnx

        @partial(jax.jit, static_argnums=0)
        def run(model, x):
            return model(x)

        run(nnx.Linear(2, 3, rngs=nnx.Rngs(0)), jnp.ones(2))
        """,
    ),
    Mistake(
        "features-of-another-number",
        "A wrong number of features",
        "ValueError",
        r"Linear: the last axis of the input must have length 3; got f32\[2,5\]",
        r"try: Linear\(5, …\), or move another axis last",
        "A layer is created for a fixed number of features: the length of the last axis of its input.",
        """
        from atled import nn

        layer = nn.Linear(3, 4, key=random.key(0))
        y = layer(jnp.ones((2, 5)))  # here
        """,
        """
        from atled import nn

        layer = nn.Linear(5, 4, key=random.key(0))
        assert layer(jnp.ones((2, 5))).shape == (2, 4)
        """,
        """
        from flax import nnx

        layer = nnx.Linear(3, 4, rngs=nnx.Rngs(0))
        y = layer(jnp.ones((2, 5)))
        """,
    ),
    Mistake(
        "layer-without-a-key",
        "A layer without a key",
        "TypeError",
        r"Linear: a key must be given, for its initial values",
        r"try: …, key=random\.key\(0\)\)",
        "Initial values are random, and randomness is an argument. Each call of `nn.Keys` returns a new key.",
        """
        from atled import nn

        layer = nn.Linear(3, 4)  # here
        """,
        """
        from atled import nn

        keys = nn.Keys(0)
        layers = [nn.Linear(3, 4, key=keys()), nn.Linear(4, 4, key=keys())]
        """,
        """
        from flax import nnx

        layer = nnx.Linear(3, 4)
        """,
    ),
    Mistake(
        "old-keyword",
        "An old keyword",
        "TypeError",
        r"Linear: 'inputs' was renamed to 'in_features' in 0\.1\.",
        r"try: in_features=…",
        "Many parameters were renamed in 0.1, to the terms of other libraries. Until 0.2, an old name raises an "
        "error that gives the new one.",
        """
        from atled import nn

        layer = nn.Linear(inputs=2, outputs=3, key=random.key(0))  # here
        """,
        """
        from atled import nn

        layer = nn.Linear(in_features=2, out_features=3, key=random.key(0))
        assert layer(jnp.ones(2)).shape == (3,)
        """,
        NO_PEER,
    ),
    Mistake(
        "window-of-one-number",
        "One number as the window of `Conv`",
        "TypeError",
        r"Conv: kernel_size must have a length for each axis, or the number of axes is unknown; got 3",
        r"try: Conv1d or Conv2d or Conv3d; or kernel_size=\(3, 3\) for images",
        "`Conv` slides over as many axes as `kernel_size` has entries, so one number is ambiguous. `Conv2d` always has "
        "two axes, so one number is the length along both. The same holds for transposed convolutions and for "
        "pooling.",
        """
        from atled import nn

        layer = nn.Conv(3, 8, 3, key=random.key(0))  # here
        """,
        """
        from atled import nn

        keys, image = nn.Keys(0), jnp.ones((1, 5, 5, 3))
        for layer in (nn.Conv2d(3, 8, 3, key=keys()), nn.Conv(3, 8, (3, 3), key=keys())):
            assert layer(image).shape == (1, 5, 5, 8)
        """,
        """
        from flax import nnx

        layer = nnx.Conv(3, 8, 3, rngs=nnx.Rngs(0))
        y = layer(jnp.ones((1, 5, 5, 3)))
        """,
    ),
    Mistake(
        "padding-that-is-not-known",
        "An unknown padding mode",
        "ValueError",
        r"Conv: padding must be SAME, VALID, CAUSAL, CIRCULAR, REFLECT, REPLICATE, or pairs of numbers; got 'same'",
        r"try: 'SAME'",
        "Padding modes are written in capitals. Numbers give the padding before and after, for each axis.",
        """
        from atled import nn

        layer = nn.Conv(3, 8, (3, 3), padding="same", key=random.key(0))  # here
        """,
        """
        from atled import nn

        layer = nn.Conv(3, 8, (3, 3), padding="SAME", key=random.key(0))
        assert layer(jnp.ones((1, 5, 5, 3))).shape == (1, 5, 5, 8)
        """,
        """
        from flax import nnx

        layer = nnx.Conv(3, 8, (3, 3), padding="same", rngs=nnx.Rngs(0))
        y = layer(jnp.ones((1, 5, 5, 3)))
        """,
    ),
    Mistake(
        "heads-that-do-not-divide-features",
        "Heads that do not divide features",
        "ValueError",
        r"MultiHeadAttention: num_heads must divide in_features; got 4 for 10",
        r"try: num_heads=2",
        "Each head gets an equal share of the features.",
        """
        from atled import nn

        attention = nn.MultiHeadAttention(10, 4, key=random.key(0))  # here
        """,
        """
        from atled import nn

        attention = nn.MultiHeadAttention(10, 2, key=random.key(0))
        assert attention(jnp.ones((1, 3, 10))).shape == (1, 3, 10)
        """,
        """
        from flax import nnx

        attention = nnx.MultiHeadAttention(4, 10, rngs=nnx.Rngs(0))
        """,
    ),
    Mistake(
        "pattern-that-matches-nothing",
        "A pattern that matches nothing",
        "ValueError",
        r"nn\.freeze: a pattern must match something; 'encoder' matches no path",
        r"try: one of the paths of the model: query_proj/weight, query_proj/bias",
        "A pattern with a typo would silently freeze, replace or split nothing, so a pattern without matches "
        "is an error.",
        """
        from atled import nn

        model = nn.MultiHeadAttention(8, 2, key=random.key(0))
        frozen = nn.freeze(model, "encoder")  # here
        """,
        """
        from atled import nn

        model = nn.MultiHeadAttention(8, 2, key=random.key(0))
        frozen = nn.freeze(model, "query_proj")
        assert atled.grad(lambda m: m(jnp.ones((1, 1, 8))).sum())(frozen).query_proj.weight is None
        """,
        """
        from flax import nnx

        model = nnx.MultiHeadAttention(2, 8, rngs=nnx.Rngs(0))
        frozen = nnx.state(model, nnx.PathContains("encoder"))
        """,
    ),
    Mistake(
        "keys-as-an-argument",
        "`Keys` as an argument of a transformed function",
        "TypeError",
        r"argument keys of draw must be an array, a number, or a tree of these; got Keys",
        r"try: the key itself, and nn\.Keys\(key\) inside of the function",
        "Each call of `Keys` changes its state, but a transformed function cannot change its arguments. Pass a key "
        "into the function, and create `Keys` inside.",
        """
        from atled import nn

        @atled.jit
        def draw(keys):
            return random.normal(keys()) + random.normal(keys())

        draw(nn.Keys(0))  # here
        """,
        """
        from atled import nn

        @atled.jit
        def draw(key):
            keys = nn.Keys(key)
            return random.normal(keys()) + random.normal(keys())

        draw(random.key(0))
        """,
        """
        from flax import nnx

        @jax.jit
        def draw(rngs):
            return random.normal(rngs()) + random.normal(rngs())

        draw(nnx.Rngs(0))
        """,
    ),
    Mistake(
        "images-with-channels-first",
        "Images with channels first",
        "ValueError",
        r"Conv: the last axis of the input must have length 3; got f32\[1,3,8,8\]",
        r"try: .*another axis last",
        "Features are the last axis everywhere: images are (batch, height, width, features).",
        """
        from atled import nn

        image = jnp.ones((1, 3, 8, 8))
        y = nn.Conv(3, 4, (3, 3), key=random.key(0))(image)  # here
        """,
        """
        from atled import nn

        image = jnp.moveaxis(jnp.ones((1, 3, 8, 8)), 1, -1)
        assert nn.Conv(3, 4, (3, 3), key=random.key(0))(image).shape == (1, 8, 8, 4)
        """,
        """
        from flax import nnx

        image = jnp.ones((1, 3, 8, 8))
        y = nnx.Conv(3, 4, (3, 3), rngs=nnx.Rngs(0))(image)
        """,
    ),
    Mistake(
        "kinds-mixed-in-one-list",
        "Kinds that are mixed in one list",
        "TypeError",
        r"Net\.numbers: the arrays of one list or dict must have the same kind; got Buffer and Param",
        r"try: a list for each kind",
        "An attribute has one kind. Use separate attributes for trained and untrained arrays.",
        """
        from atled import nn

        class Net(nn.Module):
            def __init__(self):
                self.numbers = [nn.Param(1.0), nn.Buffer(2.0)]

        net = Net()  # here
        """,
        """
        from atled import nn

        class Net(nn.Module):
            def __init__(self):
                self.trained, self.kept = [nn.Param(1.0)], [nn.Buffer(2.0)]

        net = Net()
        """,
        NO_PEER,
    ),
    Mistake(
        "embedding-of-floats",
        "An embedding of floats",
        "TypeError",
        r"Embedding: the input must be integers; got f32\[2\]",
        r"try: ids\.astype\('int32'\)",
        "An embedding looks up rows by integer index.",
        """
        from atled import nn

        tokens = nn.Embedding(10, 4, key=random.key(0))
        x = tokens(jnp.array([1.0, 2.0]))  # here
        """,
        """
        from atled import nn

        tokens = nn.Embedding(10, 4, key=random.key(0))
        x = tokens(jnp.array([1.0, 2.0]).astype("int32"))
        """,
        """
        from flax import nnx

        tokens = nnx.Embed(10, 4, rngs=nnx.Rngs(0))
        x = tokens(jnp.array([1.0, 2.0]))
        """,
    ),
    Mistake(
        "buffer-that-is-made-in-a-loop",
        "A buffer that is created in a loop",
        "TypeError",
        r"scan: the carry must keep its tree; it starts as TreeDef\(Memory\(count=\*\)\), and the body gives",
        r"carry\.last starts as None, and becomes an array",
        "A model in a loop carry must keep its structure. Create all buffers in `__init__`.",
        """
        from atled import nn

        class Memory(nn.Module):
            def __init__(self):
                self.count = nn.Buffer(0)
                self.last = None

        def body(memory, x):
            memory.last = nn.Buffer(x)
            return memory, None

        memory, _ = lax.scan(body, Memory(), jnp.arange(3.0))  # here
        """,
        """
        from atled import nn

        class Memory(nn.Module):
            def __init__(self):
                self.count = nn.Buffer(0)
                self.last = nn.Buffer(0.0)

        def body(memory, x):
            memory.last = x
            return memory, None

        memory, _ = lax.scan(body, Memory(), jnp.arange(3.0))
        assert memory.last == 2.0
        """,
        """
        from flax import nnx

        class Memory(nnx.Module):
            def __init__(self):
                self.count = nnx.Variable(jnp.array(0))
                self.last = None

        @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
        def body(memory, x):
            memory.last = nnx.Variable(x)
            return memory

        memory = body(Memory(), jnp.arange(3.0))
        """,
    ),
    Mistake(
        "parts-of-two-models",
        "Parts of two models",
        "TreeError",
        r"nn\.merge: the parts must come from the same model; at \.training, one has True, and another False",
        r"try: both from the same model: nn\.params\(model\), nn\.buffers\(model\)",
        "Parts can be merged only if they come from the same model in the same mode.",
        """
        from atled import nn

        model = nn.BatchNorm(2)
        joined = nn.merge(nn.params(model), nn.buffers(model.eval()))  # here
        """,
        """
        from atled import nn

        model = nn.BatchNorm(2)
        joined = nn.merge(nn.params(model), nn.buffers(model))
        assert joined.mean is model.mean
        """,
        """
        from flax import nnx

        graph, params, rest = nnx.split(nnx.BatchNorm(2, rngs=nnx.Rngs(0)), nnx.Param, ...)
        _, other = nnx.split(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))
        joined = nnx.merge(graph, params, other)
        """,
    ),
    Mistake(
        "vmap-over-the-weights",
        "`vmap` over the weights of a model",
        "ValueError",
        r"vmap: mapped axes must have the same size; got 2 for f32\[2,4\] along axis 0 \(argument "
        r"\[0\]\.weight\).* 3 for",
        r"try: in_axes=",
        "`vmap` maps over the first axis of each argument, including the weights. For a model that all "
        "examples share, the axis is None; most layers take batches anyway.",
        """
        from atled import nn

        model = nn.Linear(2, 4, key=random.key(0))
        y = atled.vmap(lambda model, x: model(x))(model, jnp.ones((3, 2)))  # here
        """,
        """
        from atled import nn

        model = nn.Linear(2, 4, key=random.key(0))
        y = atled.vmap(lambda model, x: model(x), in_axes=(None, 0))(model, jnp.ones((3, 2)))
        assert (abs(y - model(jnp.ones((3, 2)))) < 1e-6).all()
        """,
        """
        from flax import nnx

        model = nnx.Linear(2, 4, rngs=nnx.Rngs(0))
        y = nnx.vmap(lambda model, x: model(x))(model, jnp.ones((3, 2)))
        """,
    ),
]

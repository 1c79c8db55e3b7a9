"""Mistakes with optimizers, train steps and weights; beside ours, what Flax and optax say."""

from __future__ import annotations

from mistake import NO_PEER, Mistake

TRAINING = [
    Mistake(
        "trees-of-training-and-of-use",
        "Pytrees of a model in training mode and in evaluation mode",
        "TreeError",
        r"SGD: the tree must match that of the model; at \.training, the model has True, but the tree has False",
        r"try: both from the same model",
        "The mode is part of the tree structure, because it changes the computation. Gradients of an `eval()` "
        "copy do not match the model in training mode.",
        """
        from atled import nn, optim

        model, sgd = nn.Linear(2, 2, key=random.key(0)), optim.SGD(0.1)
        grads = atled.grad(lambda m: m(jnp.ones(2)).sum())(model.eval())
        model, memory = sgd.step(model, grads, sgd.init(model))  # here
        """,
        """
        from atled import nn, optim

        model, sgd = nn.Linear(2, 2, key=random.key(0)), optim.SGD(0.1)
        grads = atled.grad(lambda m: m(jnp.ones(2)).sum())(model)
        model, memory = sgd.step(model, grads, sgd.init(model))
        """,
        NO_PEER,
    ),
    Mistake(
        "donated-model-used-again",
        "A donated model used again",
        "RuntimeError",
        r"deleted array: argument state\.model\.weight, f32\[2,2\], was deleted or donated",
        r"try: use the result of the call to which it was donated",
        "`train.step` donates the state: its memory is reused for the next state. Rebind the name to the new state, "
        "or pass `donate=False`.",
        """
        from atled import nn, optim, train

        def loss(model, x):
            return model(x).sum()

        state = train.State(nn.Linear(2, 2, key=random.key(0)), optim.SGD(0.1))
        step = train.step(loss)
        first, metrics = step(state, jnp.ones(2))
        second, metrics = step(state, jnp.ones(2))  # here
        """,
        """
        from atled import nn, optim, train

        def loss(model, x):
            return model(x).sum()

        state = train.State(nn.Linear(2, 2, key=random.key(0)), optim.SGD(0.1))
        step = train.step(loss)
        for _ in range(2):
            state, metrics = step(state, jnp.ones(2))
        assert state.step == 2
        """,
        """
        from flax import nnx

        graph, state = nnx.split(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))
        step = jax.jit(lambda state: jax.tree.map(lambda p: p - 0.1, state), donate_argnums=0)
        first = step(state)
        second = step(state)
        """,
    ),
    Mistake(
        "optimizer-state-of-another-model",
        "The optimizer state of another model",
        "TreeError",
        r"Adam, first: the tree must match that of the model; at \.out_features, the model has 4, but the tree has 3",
        r"try: both from the same model",
        "The state holds an array for each parameter of the model that it was made for. A model with another head or "
        "with other frozen parts needs a new state.",
        """
        from atled import nn, optim

        adam = optim.Adam(1e-3)
        memory = adam.init(nn.Linear(2, 3, key=random.key(0)))
        model = nn.Linear(2, 4, key=random.key(1))
        grads = atled.grad(lambda m: m(jnp.ones(2)).sum())(model)
        model, memory = adam.step(model, grads, memory)  # here
        """,
        """
        from atled import nn, optim

        adam = optim.Adam(1e-3)
        model = nn.Linear(2, 4, key=random.key(1))
        grads = atled.grad(lambda m: m(jnp.ones(2)).sum())(model)
        model, memory = adam.step(model, grads, adam.init(model))
        """,
        """
        import optax
        from flax import nnx

        adam = optax.adam(1e-3)
        memory = adam.init(nnx.state(nnx.Linear(2, 3, rngs=nnx.Rngs(0))))
        model = nnx.Linear(2, 4, rngs=nnx.Rngs(1))
        grads = nnx.grad(lambda m: m(jnp.ones(2)).sum())(model)
        updates, memory = adam.update(grads, memory, nnx.state(model))
        """,
    ),
    Mistake(
        "value-and-gradients-as-gradients",
        "Value and gradients where gradients are expected",
        "TreeError",
        r"Adam: the tree must match that of the model; at the root, the model has a Linear, but the tree has a tuple",
        r"try: both from the same model",
        "`value_and_grad` returns a pair, `train.gradients` three values: the value, the model, and the gradients.",
        """
        from atled import nn, optim

        adam, model = optim.Adam(1e-3), nn.Linear(2, 4, key=random.key(1))
        grads = atled.value_and_grad(lambda m: m(jnp.ones(2)).sum())(model)
        model, memory = adam.step(model, grads, adam.init(model))  # here
        """,
        """
        from atled import nn, optim, train

        adam, model = optim.Adam(1e-3), nn.Linear(2, 4, key=random.key(1))
        value, model, grads = train.gradients(lambda m: m(jnp.ones(2)).sum())(model)
        model, memory = adam.step(model, grads, adam.init(model))
        """,
        """
        import optax
        from flax import nnx

        model = nnx.Linear(2, 4, rngs=nnx.Rngs(1))
        optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
        grads = nnx.value_and_grad(lambda m: m(jnp.ones(2)).sum())(model)
        optimizer.update(model, grads)
        """,
    ),
    Mistake(
        "weights-under-other-names",
        "Weights under other names",
        "ValueError",
        r"nn\.load_state_dict: names and shapes must match the model; missing: weight \(weight\), bias \(bias\); "
        r"unused: fc\.weight, fc\.bias",
        r"try: rename=\{'our/path': 'their\.name'\}",
        "Every array of the model must be found, and every given array must be used: a part that keeps its initial "
        "values is easily overlooked. `rename` maps module paths to the names in the state.",
        """
        from atled import nn

        theirs = {"fc.weight": np.ones((3, 2), "f"), "fc.bias": np.zeros(3, "f")}
        model = nn.load_state_dict(nn.Linear(2, 3, key=random.key(0)), theirs)  # here
        """,
        """
        from atled import nn

        theirs = {"fc.weight": np.ones((3, 2), "f"), "fc.bias": np.zeros(3, "f")}
        model = nn.load_state_dict(nn.Linear(2, 3, key=random.key(0)), theirs, {"": "fc"})
        assert model(jnp.ones(2))[0] == 2.0
        """,
        """
        from flax import nnx

        model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
        theirs = {"fc": {"kernel": jnp.ones((2, 3)), "bias": jnp.zeros(3)}}
        nnx.update(model, theirs)
        """,
    ),
    Mistake(
        "weights-of-another-shape",
        "Weights of another shape",
        "ValueError",
        r"nn\.load_state_dict: names and shapes must match the model; of another shape: weight is f32\[2,3\], and "
        r"weight gives \(4, 2\)",
        r"try: rename=",
        "Weights are transposed according to the layout, by default PyTorch's. If the shapes still differ, "
        "the layer has a different size.",
        """
        from atled import nn

        theirs = {"weight": np.ones((2, 4), "f"), "bias": np.zeros(3, "f")}
        model = nn.load_state_dict(nn.Linear(2, 3, key=random.key(0)), theirs)  # here
        """,
        """
        from atled import nn

        theirs = {"weight": np.ones((4, 2), "f"), "bias": np.zeros(4, "f")}
        model = nn.load_state_dict(nn.Linear(2, 4, key=random.key(0)), theirs)
        """,
        """
        from flax import nnx

        model = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
        nnx.update(model, {"kernel": jnp.ones((4, 2)), "bias": jnp.zeros(3)})
        """,
    ),
    Mistake(
        "parameters-in-no-group",
        "Parameters that are in no group",
        "ValueError",
        r"optim\.partition: every parameter must be in a group; key_proj/weight matches no pattern",
        r"try: a last group '\*\*' for the rest",
        "Each parameter has one optimizer, or None. The last pattern is usually `**`.",
        """
        from atled import nn, optim

        model = nn.MultiHeadAttention(8, 2, key=random.key(0))
        memory = optim.partition({"query_proj": optim.SGD(0.1)}).init(model)  # here
        """,
        """
        from atled import nn, optim

        model = nn.MultiHeadAttention(8, 2, key=random.key(0))
        memory = optim.partition({"query_proj": optim.SGD(0.1), "**": None}).init(model)
        """,
        """
        import optax
        from flax import nnx

        params = nnx.state(nnx.MultiHeadAttention(2, 8, rngs=nnx.Rngs(0)), nnx.Param)
        label = lambda path, x: "query" if "query" in str(path) else "rest"
        labels = jax.tree.map_with_path(label, params)
        memory = optax.partition({"query": optax.sgd(0.1)}, labels).init(params)
        """,
    ),
    Mistake(
        "loss-with-a-key-and-state-without",
        "A loss that needs a key, and a state without one",
        "TypeError",
        r"train\.State: the state has no key",
        r"try: train\.State\(model, optimizer, key=random\.key\(0\)\)",
        "`train.step` passes the key of the step, derived from the key of the run, to a loss with a parameter `key`.",
        """
        from atled import nn, optim, train

        def loss(model, x, key):
            return model(x + random.normal(key)).sum()

        state = train.State(nn.Linear(2, 2, key=random.key(0)), optim.SGD(0.1))
        state, metrics = train.step(loss)(state, jnp.ones(2))  # here
        """,
        """
        from atled import nn, optim, train

        def loss(model, x, key):
            return model(x + random.normal(key)).sum()

        state = train.State(nn.Linear(2, 2, key=random.key(0)), optim.SGD(0.1), key=random.key(1))
        state, metrics = train.step(loss)(state, jnp.ones(2))
        """,
        NO_PEER,
    ),
    Mistake(
        "class-instead-of-an-optimizer",
        "A class instead of an optimizer",
        "TypeError",
        r"train\.State: the second argument must be an optimizer; got type",
        r"try: optim\.AdamW\(1e-3\)",
        "An optimizer is an instance with its hyperparameters: call the class.",
        """
        from atled import nn, optim, train

        state = train.State(nn.Linear(2, 2, key=random.key(0)), optim.Adam)  # here
        """,
        """
        from atled import nn, optim, train

        state = train.State(nn.Linear(2, 2, key=random.key(0)), optim.Adam(1e-3))
        """,
        """
        import optax
        from flax import nnx

        optimizer = nnx.Optimizer(nnx.Linear(2, 2, rngs=nnx.Rngs(0)), optax.adam, wrt=nnx.Param)
        """,
    ),
]

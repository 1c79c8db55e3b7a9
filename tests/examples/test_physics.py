"""The creature of springs runs forwards after a few steps along the gradient."""

import physics


def test_gradients_make_it_run():
    metres = physics.main(physics.Config(steps=30, seconds=1.0, batch=2, hidden=16, rate=1e-2, run=None, picture=None))
    assert abs(metres["untrained"]) < 0.05
    assert metres["gradients"] > 0.4
    assert metres["gradients"] > metres["random search"]

"""The neural ODE finds a law that predicts new paths, longer than those it has seen."""

import neural_ode


def test_it_predicts_better_than_a_linear_law(tmp_path):
    picture = tmp_path / "neural_ode.png"
    config = neural_ode.Config(
        steps=400, paths=32, points=12, batch=16, noise=0.02, rate=2e-2, width=16, run=None, picture=str(picture)
    )
    errors = neural_ode.main(config)
    assert errors["network"] < 0.22
    assert errors["network"] < 0.75 * errors["linear"]
    assert picture.stat().st_size > 1000

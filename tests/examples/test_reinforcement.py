"""Agents learn to balance the pole for longer than chance would."""

import reinforcement


def test_agents_learn(tmp_path):
    picture = tmp_path / "reinforcement.png"
    config = reinforcement.Config(iterations=9, agents=2, games=8, length=64, batch=64, rate=5e-3, picture=str(picture))
    result = reinforcement.main(config)
    assert result["by chance"] < 40
    assert result["trained, worst"] > 80
    assert picture.stat().st_size > 1000

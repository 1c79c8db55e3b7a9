"""Balancing a pole with reinforcement learning (PPO): environments, training and agents in one compiled program.

Each of 8 agents balances the pole for 500 of 500 steps in 100 new episodes; random actions, for 22. Half a minute.

    python examples/reinforcement.py

Environments of a cart with a pole run in parallel (`vmap`) and step by step (`scan`); another `vmap` trains the agents.
"""

import dataclasses

import atled
import atled.numpy as jnp
from atled import lax, nn, optim, random, train

LIMIT, DISCOUNT = 500, 0.99  # maximum steps of an episode; discount factor


@dataclasses.dataclass
class Config:
    iterations: int = 120
    agents: int = 8
    games: int = 16  # parallel environments of each agent
    length: int = 128  # steps of each environment in an iteration
    epochs: int = 4  # passes over these steps in an iteration
    batch: int = 512
    rate: float = 2e-3
    picture: str | None = "examples/pictures/reinforcement.png"


class Agent(nn.Module):
    """Two networks: the actor, which returns logits of the actions, and the critic, which returns a value."""

    def __init__(self, *, key):
        keys = nn.Keys(key)
        self.actor = nn.Sequential(nn.Linear(4, 64, key=keys()), jnp.tanh, nn.Linear(64, 2, key=keys()))
        self.critic = nn.Sequential(nn.Linear(4, 64, key=keys()), jnp.tanh, nn.Linear(64, 1, key=keys()))

    def __call__(self, x):
        return self.actor(x), self.critic(x)[..., 0]


def new_games(key, count):
    return random.uniform(key, (count, 4), minval=-0.05, maxval=0.05), jnp.zeros(count, int)


def advance(game, action, fresh):
    """A step of 0.02 s; restarts after an episode. The cart weighs 1 kg, the pole weighs 0.1 kg and is 1 m long."""
    x, age = game
    _, speed, angle, turning = x  # the first entry is the position of the cart
    sine, cosine = jnp.sin(angle), jnp.cos(angle)
    push = (jnp.where(action == 1, 10, -10) + 0.05 * turning**2 * sine) / 1.1
    falling = (9.8 * sine - cosine * push) / (2 / 3 - 0.05 * cosine**2 / 1.1)
    x = x + 0.02 * jnp.stack([speed, push - 0.05 * falling * cosine / 1.1, turning, falling])
    has_failed = (jnp.abs(x[0]) > 2.4) | (jnp.abs(x[2]) > 12 * jnp.pi / 180)
    is_over = has_failed | (age + 1 == LIMIT)
    game = jnp.where(is_over, fresh, x), jnp.where(is_over, 0, age + 1)
    return game, {"after": x, "failed": has_failed, "over": is_over, "age": age + 1}


def play(agent, games, key, length):
    """Run all environments for `length` steps; returns their states, and a record of every step, by step and game."""

    def step(games, key):
        keys = nn.Keys(key)
        logits, value = agent(games[0])
        action = random.categorical(keys(), logits)
        after, seen = atled.vmap(advance)(games, action, new_games(keys(), len(action))[0])
        return after, {"x": games[0], "action": action, "logits": logits, "value": value, **seen}

    return lax.scan(step, games, random.split(key, length))


def judged(agent, seen):
    """The record with advantages (`better`), by generalized advantage estimation, and targets for the critic."""
    # The reward of a step is 1 - DISCOUNT, so that values lie between 0 and 1. The value after a failure is 0.
    surprise = 1 - DISCOUNT + DISCOUNT * agent(seen["after"])[1] * ~seen["failed"] - seen["value"]

    def back(later, now):
        better = now[0] + 0.95 * DISCOUNT * later * ~now[1]
        return better, better

    better = lax.scan(back, 0 * surprise[0], (surprise, seen["over"]), reverse=True)[1]
    return {**seen, "better": better / better.std(), "target": better + seen["value"]}


def loss(agent, batch):
    """The clipped PPO loss of the actor, plus the squared error of the critic."""
    logits, value = agent(batch["x"])
    chances, before = nn.log_softmax(logits), nn.log_softmax(batch["logits"])
    ratio = jnp.exp((nn.one_hot(batch["action"], 2) * (chances - before)).sum(1))
    gain = jnp.minimum(ratio * batch["better"], jnp.clip(ratio, 0.8, 1.2) * batch["better"])
    return -gain.mean() + nn.losses.squared_error(value, batch["target"])


def trained(config, key):
    """A trained agent, and the mean length of episodes in each iteration of playing and learning."""
    keys, count = nn.Keys(key), config.length * config.games
    rate = optim.linear(config.rate, config.iterations * config.epochs * (count // config.batch))
    state = train.State(Agent(key=keys()), optim.chain(optim.clip_by_global_norm(0.5), optim.Adam(rate)))

    def iterate(carry, key):
        (state, games), keys = carry, nn.Keys(key)
        games, seen = play(state.model, games, keys(), config.length)
        steps = atled.tree.map(lambda x: x.reshape(count, *x.shape[2:]), judged(state.model, seen))

        def learn(state, chosen):
            _, agent, grads = train.gradients(loss)(state.model, atled.tree.map(lambda x: x[chosen], steps))
            return state.apply_gradients(agent, grads), None

        orders = atled.vmap(lambda key: random.permutation(key, count))(random.split(keys(), config.epochs))
        state = lax.scan(learn, state, orders.reshape(-1, config.batch))[0]
        return (state, games), (seen["age"] * seen["over"]).sum() / seen["over"].sum()

    games = new_games(keys(), config.games)
    (state, _), lasted = lax.scan(iterate, (state, games), random.split(keys(), config.iterations))
    return state.model, lasted


def main(config):
    agents, curves = atled.jit(atled.vmap(lambda key: trained(config, key)))(random.split(random.key(0), config.agents))
    test = atled.vmap(lambda agent, keys: play(agent, new_games(keys[0], 100), keys[1], LIMIT)[1])
    result, angles = {}, []
    for name, players in [("by chance", atled.tree.map(jnp.zeros_like, agents)), ("trained", agents)]:  # 0: uniform
        seen = test(players, random.split(random.key(1), (config.agents, 2)))
        lasted = seen["over"].argmax(1).mean(1) + 1  # length of the first episode
        print(
            f"{name}: {lasted.mean():.0f} steps on average, {lasted.min():.0f} by the worst of {config.agents} agents"
        )
        result |= {name: float(lasted.mean()), f"{name}, worst": float(lasted.min())}
        angles.append(jnp.where(jnp.cumsum(seen["over"], 1) == 0, seen["after"][..., 2] * 180 / jnp.pi, jnp.nan)[0])
    if config.picture:
        draw(curves, angles, config)
    return result


def draw(curves, angles, config):
    """Plot episode lengths during training, and the angle of the pole in 30 episodes before and after it."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    left.plot(config.games * config.length * jnp.arange(1, config.iterations + 1), curves.T, linewidth=0.8)
    left.set(xlabel="steps played", ylabel="steps of an episode", title=f"learning: {config.agents} agents")
    right.plot(angles[0][:, :30], "tab:red", angles[1][:, :30], "tab:green", linewidth=0.6)
    right.set(xlabel="step", ylabel="angle of the pole, degrees", title="30 random episodes (red), 30 trained (green)")
    figure.savefig(config.picture, dpi=90)


if __name__ == "__main__":
    main(Config())

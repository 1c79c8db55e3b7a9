"""An optimizer is plain data, and back: what a resumed run goes on with."""

import json

import pytest
from optimizer_cases import CASES

import atled.numpy as jnp
from atled import optim
from atled.core.tree_registry import static, struct
from atled.optim.serialization import UnknownError, changed_functions, recalled, record


def there_and_back(optimizer, now):
    return recalled(json.loads(json.dumps(record(optimizer))), now)


@pytest.mark.parametrize("name", CASES)
def test_data_and_back(name):
    found = there_and_back(CASES[name], optim.SGD(0.5))
    assert found == CASES[name]
    assert repr(found) == repr(CASES[name])


def test_every_difference_is_one_of_records():
    records = [json.dumps(record(x)) for x in CASES.values()]
    assert len(set(records)) == len(records)
    pairs = [(optim.SGD(0.1), optim.SGD(0.1, nesterov=True)), (optim.SGD(1), optim.SGD(1.0)),
             (optim.SGD(optim.linear(0.1, 10)), optim.SGD(optim.linear(0.1, 11)))]  # fmt: skip
    assert all([record(a) != record(b) for a, b in pairs])


def test_numbers_keep_their_kind():
    import numpy as np

    for rate in (np.float32(0.1), float("inf"), 3, True, None, np.float64(0.1)):
        found = there_and_back(optim.SGD(rate), None).learning_rate
        assert type(found) is type(rate)
        assert found == rate


def test_functions_are_those_of_now():
    first = optim.chain(optim.clip_by_global_norm(1.0), optim.SGD(lambda t: 0.1 * t))
    now = optim.chain(optim.clip_by_global_norm(2.0), optim.SGD(lambda t: 0.2 * t))
    found = there_and_back(first, now)
    assert found.parts[0] == optim.clip_by_global_norm(1.0)
    assert found.parts[1].learning_rate is now.parts[1].learning_rate
    (changed,) = changed_functions(record(first), now)
    assert "lambda" in changed
    assert not changed_functions(record(first), first)
    assert not changed_functions(record(now), found)


def made(rate):
    return optim.SGD(lambda t: rate * t)


def test_what_a_function_closes_over_counts():
    assert changed_functions(record(made(0.1)), made(0.2))
    assert not changed_functions(record(made(0.1)), made(0.1))


def test_classes_of_the_user():
    class Signs(optim.Rule):
        numbers = ()

        def rule(self, g, p, s, h):
            return -jnp.sign(g), {}

    assert type(there_and_back(Signs(), None)) is Signs
    unknown = {"class": "elsewhere:Signs", "fields": {}}
    for found in (unknown, {"class": "SGD", "fields": {"speed": 1}}, {"function": "f", "hash": ""}):
        with pytest.raises(UnknownError):
            recalled(found, optim.SGD(0.1))


@struct
class WithDecay(optim.AdamW):
    """A class of the user, with a field of a name that `AdamW` had."""

    decay: float = static(default=0.5)


def test_a_field_of_today_is_not_taken_for_a_former_name():
    found = there_and_back(WithDecay(0.1, weight_decay=0.25, decay=0.75), None)
    assert (found.weight_decay, found.decay) == (0.25, 0.75)


def test_errors_of_fields_name_the_users_line():
    """Not the constructor that `dataclass` writes."""
    with pytest.raises(TypeError) as raised:
        optim.Chain((1,))  # the line
    assert "# the line" in str(raised.value)

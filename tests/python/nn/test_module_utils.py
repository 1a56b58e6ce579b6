"""cresset.nn.modules.utils: tuples of sizes and prefixes of state dicts."""

from cresset import nn

utils = nn.modules.utils


def test_prefixes_of_state_dicts():
    net = nn.Sequential(nn.Linear(1, 1))
    wrapped = nn.Module()
    wrapped.module = net
    state = wrapped.state_dict()
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == list(net.state_dict()) and set(state._metadata) == set(net.state_dict()._metadata)
    net.load_state_dict(state)
    plain = {"module.a": 1, "b": 2}
    utils.consume_prefix_in_state_dict_if_present(plain, "module.")
    assert plain == {"b": 2, "a": 1}


def test_tuples_of_sizes():
    assert utils._pair(3) == (3, 3) and utils._triple([1, 2, 3]) == (1, 2, 3) and utils._single("ab") == ("a", "b") and utils._quadruple.__name__ == "_quadruple"
    assert utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)

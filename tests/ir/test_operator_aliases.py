"""The names that scripts replace by one (src/ir/frontend/operator_aliases.cpp) agree with the aliases of the operator table."""

import re
import tomllib
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"


def test_aliases_of_the_table_are_replaced():
    text = (SOURCE / "ir/frontend/operator_aliases.cpp").read_text()
    pairs = re.findall(r'\{"(\w+)", "(\w+)"\}', text)
    replaced = dict(pairs)
    assert len(replaced) == len(pairs) > 40 and [name for name, _ in pairs] == sorted(replaced)  # they are searched by halves
    table = {}
    for file in sorted((SOURCE / "ops").glob("*.toml")):
        for row in tomllib.loads(file.read_text()).get("op", []):
            table |= dict.fromkeys(row.get("aliases", []), re.match(r"\w+", row["schema"])[0])
    assert len(table) > 40
    for alias, name in table.items():
        assert replaced[alias] == replaced.get(name, name), alias
    # A canonical name is not replaced again.
    assert not {name for name in replaced.values() if name in replaced}

"""The figures of benchmarks/which_method_real_costs.py, and the amounts in which_method_real.yaml."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from shipped_files import SHIPPED
from which_method_real_costs import BUDGETS, Generator, Priced, bought, record_usd

FILE = SHIPPED["which_method_real"]


def test_a_record_costs_the_tokens_of_its_prompts_and_answers() -> None:
    """Two requests of 150 tokens and a premise of 8 letters each; answers of 4 and 12 letters."""
    written = Generator("", {}, {"yes": ("premise",), "no": ("premise",)}, Priced(1e6, 1e7, "a day"))
    prompt, answer, usd = record_usd([{"premise": "eight888", "yes": "four", "no": "twelve121212"}], written)
    assert (prompt, answer) == (2 * 150 + 2 * 2, 1 + 3)
    assert usd == pytest.approx(304 + 4 * 10)


def test_the_file_buys_each_budgets_records_or_all_published_ones(real_data: Path) -> None:
    document: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    sources, prices = document["sources"], document["table"]["record_usd"]
    for name, (number, usd) in bought(real_data).items():
        for budget, dollars in BUDGETS.items():
            source = f"{name}-{budget}"
            assert prices[source] == pytest.approx(usd, rel=0.005), source
            amount = sources[source]["sample"]["size"]
            assert amount == pytest.approx(min(number, dollars / usd), rel=0.02), source

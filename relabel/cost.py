"""What judging costs: a price per token, a guess of tokens before, the true count after, and a budget.

Prices come from the package ``genai-prices``, which follows the providers' published lists, or are given.
An endpoint that is on no list has no price until one is given: nothing is ever assumed to be free.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from audit.errors import ArgumentError

__all__ = ["DEFAULT_BASE_URL", "Budget", "Price", "TokenRate", "find_price"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars per million tokens read (``input``) and written (``output``), and who says so."""

    input: float
    output: float
    source: str

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """US dollars for so many tokens."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6

    def to_dict(self) -> dict[str, Any]:
        """The two prices and their source."""
        return {"input": self.input, "output": self.output, "source": self.source}


def find_price(
    model: str, *, base_url: str, price_in: float | None = None, price_out: float | None = None
) -> Price | None:
    """The price of a model at an endpoint: the given one, else the list's, else None."""
    if (price_in is None) != (price_out is None):
        raise ArgumentError(
            "a price has two parts; give both --price-in and --price-out (dollars per million tokens)"
        )
    if price_in is not None and price_out is not None:
        if not (price_in >= 0 and price_out >= 0):
            raise ArgumentError("a price is a number and not negative; give dollars per million tokens")
        return Price(input=price_in, output=price_out, source="given")
    from genai_prices import Usage, calc_price  # here: it loads a price list of 1.6 MB

    usage = Usage(
        input_tokens=1000, output_tokens=1000
    )  # small: some prices rise with the length of a prompt
    try:
        found = calc_price(usage, model_ref=model, provider_api_url=base_url)
    except LookupError:
        return None
    return Price(
        input=float(found.input_price) * 1000,
        output=float(found.output_price) * 1000,
        source=f"genai-prices {version('genai-prices')}, {found.provider.id}/{found.model.id}",
    )


class TokenRate:
    """Guesses tokens from text, and learns from what endpoints report.

    Until something was reported a token is taken for four bytes of UTF-8, and a reply for 80 tokens.
    """

    def __init__(self) -> None:
        self._bytes, self._prompt, self._completion, self._replies = 0, 0, 0, 0

    def learn(self, size: int, *, prompt_tokens: int, completion_tokens: int) -> None:
        """One reply: a prompt of ``size`` bytes was so many tokens, and so many came back."""
        if prompt_tokens > 0 and size > 0:
            self._bytes += size
            self._prompt += prompt_tokens
        self._completion += completion_tokens
        self._replies += 1

    def prompt(self, size: float) -> float:
        """Likely tokens of a prompt of ``size`` bytes."""
        return size * self._prompt / self._bytes if self._prompt else size / 4

    @property
    def completion(self) -> float:
        """Likely tokens of a reply."""
        return self._completion / self._replies if self._replies else 80.0


class Budget:
    """Money paid and promised. A request is only let through if even its longest reply stays inside the limit.

    Parameters
    ----------
    limit:
        US dollars, or None for no limit.
    spent:
        US dollars already paid, by earlier runs of the same journal.

    ``promised`` is what the ``promises`` requests under way may still cost.
    """

    def __init__(self, limit: float | None = None, *, spent: float = 0.0) -> None:
        if limit is not None and not limit >= 0:
            raise ArgumentError(f"--budget {limit} is negative or no number; give US dollars")
        self.limit = limit
        self.spent = spent
        self.promised = 0.0
        self.promises = 0

    def reserve(self, amount: float) -> bool:
        """Promise ``amount`` to a request; False, and nothing promised, where it would pass the limit."""
        if self.limit is not None and self.spent + self.promised + amount > self.limit:
            return False
        self.promised += amount
        self.promises += 1
        return True

    def settle(self, reserved: float, paid: float) -> None:
        """A request is done: what was promised becomes what was paid."""
        self.promises -= 1
        self.promised = self.promised - reserved if self.promises else 0.0
        self.spent += paid

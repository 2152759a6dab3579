"""TRL's GRPO trainer, with rows that teach nothing left out of the update, and with every rollout handed on.

A group whose rewards are all equal has advantage 0 in every row, and a row that the mask of truncated completions
covers has no token in the loss: neither moves a parameter. TRL pays a forward and a backward pass for them all the
same. Here they are sliced away after the rewards are known and before the pass, with the columns of padding that no
row left needs. The gradient stays the same; what it costs does not.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import PrinterCallback
from trl import GRPOConfig, GRPOTrainer

from audit.errors import ArgumentError

__all__ = ["LOSS_TYPES", "LeanGRPOTrainer", "check_loss", "check_skip", "informative_part"]

#: Losses whose gradient stays the same without the rows that teach nothing. TRL's others differ from these off policy.
LOSS_TYPES = ("dapo", "grpo", "bnpo", "dr_grpo")
_OTHER_LOSSES = ("cispo", "luspo", "sapo", "vespo")

#: What a batch may hold, and which of its tensors have a column for each token of the completion.
_COMPLETION = ("completion_ids", "completion_mask", "old_per_token_logps", "sampling_per_token_logps",
               "importance_sampling_ratio")  # fmt: skip
_KNOWN = {*_COMPLETION, "prompt_ids", "prompt_mask", "advantages", "num_items_in_batch"}
#: The most logits to hold at once off a GPU, half a GiB; where there are more, TRL's way takes a slice at a time.
_MOST_LOGITS = 1 << 27


def informative_part(
    inputs: dict[str, Any], *, loss_type: str, rows: int = 1, trim_prompts: bool = True
) -> tuple[dict[str, Any], float]:
    """The rows of a batch that can move a parameter, and the factor that keeps their loss what it was.

    Parameters
    ----------
    inputs:
        A batch of TRL's: prompts padded on the left, completions on the right, one advantage a row.
    loss_type:
        One of :data:`LOSS_TYPES`. The mean over rows of ``grpo`` and ``dr_grpo`` is scaled by the share of rows kept,
        that over tokens of ``bnpo`` by the share of tokens; ``dapo`` divides by a number fixed before.
    rows:
        Keep so many at least, the shortest of the others where too few teach something.
    trim_prompts:
        Also drop the columns in which every prompt kept is padded. That shifts all positions alike, which a model
        of relative positions does not see.
    """
    odd = sorted(set(inputs) - _KNOWN)
    if odd:
        raise ArgumentError(
            f"a batch with {odd[0]!r} cannot be cut to its rows: set grpo.skip_uniform = false"
        )
    advantages, mask = inputs["advantages"], inputs["completion_mask"]
    lengths = mask.sum(1)
    teaches = (advantages != 0) & (lengths > 0)
    total = len(advantages)
    kept = min(max(int(teaches.sum()), rows, 1), total)
    if kept == total:
        picked = torch.arange(total, device=mask.device)
    else:
        cost = lengths + inputs["prompt_mask"].sum(1)
        picked = (
            torch.argsort(torch.where(teaches, cost.new_tensor(-1), cost), stable=True)[:kept].sort().values
        )
    part = {
        name: value[picked] if torch.is_tensor(value) and value.dim() else value
        for name, value in inputs.items()
    }
    need = part["completion_mask"][teaches[picked]] if bool(teaches.any()) else part["completion_mask"]
    width, right = mask.size(1), max(int(need.sum(1).max()), 1)
    for name in _COMPLETION:
        if name in part and part[name].size(1) == width:
            part[name] = part[name][:, :right]
    if trim_prompts:
        prompts = part["prompt_mask"]
        left = prompts.size(1) - max(int(prompts.sum(1).max()), 1)
        part["prompt_ids"], part["prompt_mask"] = part["prompt_ids"][:, left:], prompts[:, left:]
    if loss_type in ("grpo", "dr_grpo"):
        return part, kept / total
    if loss_type == "bnpo":
        tokens = max(int(part["completion_mask"].sum()), 1)
        return part, tokens / max(int(mask.sum()), 1)
    return part, 1.0


class LeanGRPOTrainer(GRPOTrainer):  # type: ignore[misc] # TRL's types are not read
    """GRPO that does not pay for rows without a gradient.

    TRL's ``entropy`` and ``clip_ratio`` metrics are then those of the rows kept; all others are those of all rows.

    Parameters
    ----------
    skip_uniform:
        Leave rows that teach nothing out of the update. Ranks keep the same number of rows, that of the rank with
        the most to learn, so that they stay in step.
    tokenize:
        Gives the token ids of one chat, so that the prompts are those of the evaluation; None uses TRL's own way.
    on_rollouts:
        Called after each generation with the step (1, 2, ...), the advantages of this process's rows in their order,
        and the seconds that generating and scoring took.
    **rest:
        As in ``GRPOTrainer``.

    Raises
    ------
    ArgumentError
        The settings give rows without an advantage a gradient of their own, so that none can be skipped.
    """

    def __init__(
        self,
        *,
        args: GRPOConfig,
        skip_uniform: bool = True,
        tokenize: Callable[[Any], Sequence[int]] | None = None,
        on_rollouts: Callable[[int, list[float], float], None] | None = None,
        **rest: Any,
    ) -> None:
        if skip_uniform:
            check_skip(args)
        super().__init__(args=args, **rest)
        if skip_uniform and self.aux_loss_enabled:
            raise ArgumentError(
                "the experts' balancing loss needs every row: set router_aux_loss_coef to 0 or grpo.skip_uniform to "
                "false"
            )
        self.remove_callback(PrinterCallback)
        self.skip_uniform = skip_uniform
        self._prompt_ids = tokenize
        self._on_rollouts = on_rollouts
        text = self.model.config.get_text_config()
        self._trim_prompts = getattr(text, "rope_parameters", None) is not None

    def _tokenize_prompts(self, prompts: list[Any]) -> tuple[list[list[int]], None, dict[str, Any]]:
        if self._prompt_ids is None:
            return super()._tokenize_prompts(prompts)  # type: ignore[no-any-return]
        return [list(self._prompt_ids(prompt)) for prompt in prompts], None, {}

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        with _unwarned():
            return super()._calculate_rewards(*args, **kwargs)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        started = time.perf_counter()
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if self._on_rollouts is not None and self.model.training:
            seconds = time.perf_counter() - started
            self._on_rollouts(self.state.global_step + 1, output["advantages"].tolist(), seconds)
        return output

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        compute_entropy: bool = False,
        compute_aux_loss: bool = False,
        **rest: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """As TRL's; off a GPU without the logits of the prompt, which with a large vocabulary cost a third more."""
        size = len(input_ids) * (logits_to_keep + 1) * self.model.config.get_text_config().vocab_size
        usual = (
            compute_aux_loss or self._entropy_bonus_enabled or any(one is not None for one in rest.values())
        )
        if usual or self.accelerator.device.type != "cpu" or size > _MOST_LOGITS:
            return super()._get_per_token_logps_and_entropies(  # type: ignore[no-any-return]
                model,
                input_ids,
                attention_mask,
                logits_to_keep,
                batch_size,
                compute_entropy,
                compute_aux_loss,
                **rest,
            )
        logits = model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            logits_to_keep=logits_to_keep + 1,
            use_cache=False,
        ).logits
        logs = (logits[:, :-1].float() / self.temperature).log_softmax(-1)
        kept = attention_mask[:, -logits_to_keep:]
        logps = logs.gather(-1, input_ids[:, -logits_to_keep:, None])[..., 0] * kept
        with torch.no_grad():
            entropies = -(logs.exp() * logs).sum(-1) * kept if compute_entropy else None
        return logps, entropies, None

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        if not self.skip_uniform or not self.model.training:
            return super()._compute_loss(model, inputs)
        rows = (inputs["advantages"] != 0) & (inputs["completion_mask"].sum(1) > 0)
        most = int(self.accelerator.gather(rows.sum().reshape(1)).max())
        part, factor = informative_part(
            inputs, loss_type=self.loss_type, rows=most, trim_prompts=self._trim_prompts
        )
        return super()._compute_loss(model, part) * factor


def check_loss(loss_type: str) -> None:
    """Refuse a loss that TRL does not know, which it would find out after the first completions."""
    if loss_type not in (*LOSS_TYPES, *_OTHER_LOSSES):
        raise ArgumentError(
            f"grpo.loss_type {loss_type!r} is none of TRL's: choose among {', '.join(LOSS_TYPES)}"
        )


def check_skip(args: GRPOConfig) -> None:
    """Refuse settings that give rows without an advantage a gradient of their own."""
    off = "set grpo.skip_uniform to false"
    if args.loss_type not in LOSS_TYPES:
        raise ArgumentError(
            f"grpo.loss_type {args.loss_type!r} does not go with skipping: choose among {', '.join(LOSS_TYPES)}, or "
            f"{off}"
        )
    if args.beta or args.entropy_coef or args.use_adaptive_entropy:
        raise ArgumentError(f"β and an entropy bonus give every row a gradient: set both to 0, or {off}")
    if args.top_entropy_quantile < 1:
        raise ArgumentError(f"top_entropy_quantile is taken over all rows: set it to 1, or {off}")


@contextmanager
def _unwarned() -> Iterator[None]:
    """Without the warning that a completion has no reward: leaving it out of the baseline is meant here."""
    logger = logging.getLogger("trl.trainer.grpo_trainer")

    def keep(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("All reward functions returned None")

    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)

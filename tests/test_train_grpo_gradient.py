"""GRPO's update: the same gradient with and without the rows that teach nothing, and as a plain loop has it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from trl import GRPOTrainer  # noqa: E402

from audit.errors import ArgumentError  # noqa: E402
from tests import grpo_pieces as pieces  # noqa: E402
from tests import naive_grpo  # noqa: E402
from tests.grpo_pieces import CAP, CUT, GROUP, PROMPTS, Lean, Stock  # noqa: E402
from train.grpo_trainer import LOSS_TYPES, informative_part  # noqa: E402
from train.models import quiet  # noqa: E402

CASES = [
    *[(loss, scale, "zero", 2) for loss in LOSS_TYPES for scale in ("group", "batch", "none")],
    *[(loss, "none", mode, n) for loss in LOSS_TYPES for mode, n in (("mask", 1), ("exclude", 2))],
    *[("dapo", scale, "exclude", 1) for scale in ("group", "batch")],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiny") / "model"


@pytest.fixture(scope="module", autouse=True)
def no_sweeping() -> Iterator[None]:
    """Every training ends with a collection of garbage over all that was ever imported: .4 s."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows stay in their order, so that the loop knows which of them share a pass."""
    monkeypatch.setattr("trl.trainer.grpo_trainer.shuffle_sequence_dict", lambda rows: rows)


def step(kind: type, folder: Path, out: Path, *, mode: str = "zero", **options: Any) -> Any:
    model, tokenizer = pieces.fresh(folder)
    told = options.pop("told", None) or pieces.completions()
    given = options.pop("given", None) or pieces.rewards(mode)
    return pieces.train(kind, model, tokenizer, out, told=told, given=given, truncated=mode, **options)


def far(one: dict[str, Any], other: dict[str, Any]) -> float:
    assert one.keys() == other.keys()
    return max(float((one[name] - other[name]).abs().max()) for name in one)


@pytest.mark.usefixtures("in_order")
@pytest.mark.parametrize(("loss", "scale", "mode", "passes"), CASES)
def test_gradient_is_that_of_trl_and_of_a_plain_loop(
    folder: Path, tmp_path: Path, loss: str, scale: str, mode: str, passes: int
) -> None:
    options = {"mode": mode, "accumulation": passes, "loss_type": loss, "scale_rewards": scale}
    lean = step(Lean, folder, tmp_path, **options)
    stock = step(Stock, folder, tmp_path, **options)
    model, _ = pieces.fresh(folder)
    weights = naive_grpo.advantages(pieces.rewards(mode), GROUP, scale)
    loop = naive_grpo.gradient(
        model, [PROMPTS[k // GROUP] for k in range(len(CUT))], pieces.completions(), weights, loss=loss,
        masked=[cut and mode != "zero" for cut in CUT], cap=CAP, temperature=0.8, micro=passes,
    )  # fmt: skip
    assert lean.advantages == pytest.approx(weights, abs=1e-6)
    assert max(float(g.abs().max()) for g in loop.values()) > 1e-3  # there is something to compare
    assert far(lean.gradients[0], stock.gradients[0]) < 1e-6
    assert far(lean.gradients[0], loop) < 1e-6
    paid, full = (sum(rows for rows, _ in one.trainer.shapes) for one in (lean, stock))
    teach = sum(w != 0 and not (cut and mode != "zero") for w, cut in zip(weights, CUT, strict=True))
    assert full == len(CUT)
    assert teach <= paid <= teach + passes  # a pass with nothing to learn keeps one row


@pytest.mark.parametrize("loss", LOSS_TYPES)
@pytest.mark.parametrize("passes", [1, 2])
def test_equal_rewards_give_no_gradient(folder: Path, tmp_path: Path, loss: str, passes: int) -> None:
    found = step(Lean, folder, tmp_path, given=[1.0] * len(CUT), loss_type=loss, accumulation=passes)
    assert [rows for rows, _ in found.trainer.shapes] == [1] * passes
    assert max(float(g.abs().max()) for g in found.gradients[0].values()) == 0.0
    assert found.logs[0]["loss"] == 0.0


def test_all_left_out_is_no_crash(folder: Path, tmp_path: Path) -> None:
    told = [[5 + k, 6, 7, 8, 9] for k in range(8)]
    found = step(Lean, folder, tmp_path, told=told, given=[None] * 8, mode="exclude", scale_rewards="group")
    assert found.advantages == [0.0] * 8
    assert max(float(g.abs().max()) for g in found.gradients[0].values()) == 0.0


#: Group one: right, cut, wrong, right. Group two: all cut but one. sd([1,0,0,1]) = sd([1,0,1]) = 1/sqrt 3.
HAND = {
    ("zero", "none"): [0.5, -0.5, -0.5, 0.5, 0.75, -0.25, -0.25, -0.25],
    ("mask", "none"): [0.5, -0.5, -0.5, 0.5, 0.75, -0.25, -0.25, -0.25],
    ("exclude", "none"): [1 / 3, 0, -2 / 3, 1 / 3, 0, 0, 0, 0],
    ("zero", "group"): [0.865875, -0.865875, -0.865875, 0.865875, 1.499700, -0.499900, -0.499900, -0.499900],
    ("mask", "group"): [0.865875, -0.865875, -0.865875, 0.865875, 1.499700, -0.499900, -0.499900, -0.499900],
    ("exclude", "group"): [0.577250, 0, -1.154501, 0.577250, 0, 0, 0, 0],
    # sd over the batch: of [1,0,0,1,1,0,0,0] it is .517549, of what was scored, [1,0,1,1], it is .5
    ("zero", "batch"): [0.965905, -0.965905, -0.965905, 0.965905, 1.448858, -0.482953, -0.482953, -0.482953],
    ("exclude", "batch"): [0.666533, 0, -1.333067, 0.666533, 0, 0, 0, 0],
}


@pytest.mark.parametrize(("mode", "scale"), HAND)
def test_advantages_with_cut_completions_by_hand(folder: Path, tmp_path: Path, mode: str, scale: str) -> None:
    cut = [False, True, False, False, False, True, True, True]
    right = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    told = [[9 + k] * CAP if c else [9 + k, pieces.END] for k, c in enumerate(cut)]
    given = [None if c and mode == "exclude" else r for r, c in zip(right, cut, strict=True)]
    found = step(Lean, folder, tmp_path, told=told, given=given, mode=mode, scale_rewards=scale)
    assert found.advantages == pytest.approx(HAND[mode, scale], abs=1e-5)
    # what is passed through the model: rows with an advantage, and under a mask only those that ended
    teach = [a != 0 and not (c and mode != "zero") for a, c in zip(HAND[mode, scale], cut, strict=True)]
    assert found.trainer.shapes[0][0] == sum(teach)
    # without cut rows no column beyond the end of the ended ones is paid for
    prompts = {len(PROMPTS[k // GROUP]) for k, t in enumerate(teach) if t}
    assert found.trainer.shapes[0][1] == max(prompts) + (CAP if mode == "zero" else 2)


def test_metrics_of_all_rows_stay_those_of_trl(folder: Path, tmp_path: Path) -> None:
    lean, stock = (step(kind, folder, tmp_path, scale_rewards="group").logs[0] for kind in (Lean, Stock))
    assert lean.keys() == stock.keys()
    own = {"step_time", "entropy", "epoch", "num_tokens"}  # entropy: of the rows kept, as documented
    assert {k: v for k, v in lean.items() if k not in own} == pytest.approx(
        {k: v for k, v in stock.items() if k not in own}, abs=1e-6
    )
    assert lean["reward"] == pytest.approx(sum(pieces.REWARDS) / len(CUT))
    assert lean["completions/clipped_ratio"] == pytest.approx(sum(CUT) / len(CUT))


def test_off_a_gpu_the_logits_of_prompts_are_left_out(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short of memory TRL's own way is taken; the gradient is the same, and so are all figures."""
    options = {"scale_rewards": "group", "mode": "mask"}
    short = step(Lean, folder, tmp_path, skip_uniform=False, **options)
    monkeypatch.setattr("train.grpo_trainer._MOST_LOGITS", 0)
    usual = step(Lean, folder, tmp_path, skip_uniform=False, **options)
    stock = step(Stock, folder, tmp_path, **options)
    assert short.trainer.shapes == usual.trainer.shapes == stock.trainer.shapes
    assert far(usual.gradients[0], stock.gradients[0]) == 0.0
    assert 0 < far(short.gradients[0], stock.gradients[0]) < 1e-6
    logs = [{k: v for k, v in one.logs[0].items() if k != "step_time"} for one in (short, stock)]
    assert logs[0] == pytest.approx(logs[1], abs=1e-5)
    assert logs[0]["entropy"] > 1


def test_five_steps_end_where_trl_ends(folder: Path, tmp_path: Path) -> None:
    told = [ids for seed in range(3) for ids in pieces.completions(seed)]
    given = pieces.rewards("zero") * 3
    ends = [
        step(kind, folder, tmp_path, told=told, given=given, steps=5, lr=1e-3).trainer.model.state_dict()
        for kind in (Lean, Stock)
    ]
    start = pieces.fresh(folder)[0].state_dict()
    assert far(start, ends[1]) > 1e-3
    assert far(*ends) < 1e-5


@pytest.mark.parametrize("shape", [(20, CAP), (20, 1)], ids=["token", "sequence"])
def test_weights_of_another_sampler_are_cut_alike(
    folder: Path, tmp_path: Path, shape: tuple[int, int]
) -> None:
    """As vLLM gives them: log-probabilities of its own, and a ratio for each token or each completion."""
    losses = []
    for kind in (Lean, Stock):
        trainer = step(kind, folder, tmp_path).trainer
        trainer.use_vllm = trainer.vllm_importance_sampling_correction = True
        rng = torch.Generator().manual_seed(1)
        told = pieces.completions()
        prompts = [PROMPTS[k // GROUP] for k in range(20)]
        wide = max(map(len, prompts))
        batch = {
            "prompt_ids": torch.tensor([[pieces.PAD] * (wide - len(p)) + p for p in prompts]),
            "prompt_mask": torch.tensor([[0] * (wide - len(p)) + [1] * len(p) for p in prompts]),
            "completion_ids": torch.tensor([c + [pieces.PAD] * (CAP - len(c)) for c in told]),
            "completion_mask": torch.tensor([[1] * len(c) + [0] * (CAP - len(c)) for c in told]),
            "advantages": torch.tensor(naive_grpo.advantages(pieces.rewards("zero"), GROUP, "none")),
            "num_items_in_batch": torch.tensor(sum(map(len, told))),
            "importance_sampling_ratio": 0.5 + torch.rand(*shape, generator=rng),
        }
        with torch.no_grad():
            ids, mask = (
                torch.cat([batch[f"prompt_{name}"], batch[f"completion_{name}"]], 1)
                for name in ("ids", "mask")
            )
            own = GRPOTrainer._get_per_token_logps_and_entropies(trainer, trainer.model, ids, mask, CAP)[0]
        batch["old_per_token_logps"] = own + 0.1 * torch.rand(own.shape, generator=rng)
        batch["sampling_per_token_logps"] = own + 0.1 * torch.rand(own.shape, generator=rng)
        trainer.model.train()
        trainer.model.zero_grad()
        trainer.current_gradient_accumulation_steps = 1
        loss = trainer._compute_loss(trainer.model, batch)
        loss.backward()
        grads = {name: p.grad.clone() for name, p in trainer.model.named_parameters()}
        losses.append((loss.item(), grads))
    assert losses[0][0] == pytest.approx(losses[1][0], abs=1e-6)
    assert far(losses[0][1], losses[1][1]) < 1e-6
    assert abs(losses[0][0]) > 1e-3


def test_too_few_rows_are_filled_with_the_shortest() -> None:
    told = pieces.completions()
    mask = torch.tensor([[1] * len(c) + [0] * (CAP - len(c)) for c in told])
    advantages = torch.zeros(20)
    advantages[[3, 17]] = torch.tensor([0.5, -0.5])
    batch = {"completion_ids": torch.arange(100).reshape(20, CAP), "completion_mask": mask, "advantages": advantages,
             "prompt_ids": torch.zeros(20, 2), "prompt_mask": torch.ones(20, 2, dtype=torch.long)}  # fmt: skip
    part, factor = informative_part(batch, loss_type="grpo", rows=4)
    assert sorted(part["advantages"].tolist()) == [-0.5, 0.0, 0.0, 0.5]
    assert factor == 4 / 20
    filled = part["completion_mask"][part["advantages"] == 0]
    assert filled.sum(1).tolist() == [2, 2]  # the shortest there are
    whole, factor = informative_part(batch, loss_type="grpo", rows=99)
    assert (whole["advantages"].tolist(), factor) == (advantages.tolist(), 1.0)
    with pytest.raises(ArgumentError, match=r"'pixel_values' cannot be cut .*skip_uniform"):
        informative_part({**batch, "pixel_values": mask}, loss_type="dapo")


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"loss_type": "luspo"}, "loss_type 'luspo'"),
        ({"loss_type": "cispo"}, "choose among dapo, grpo, bnpo, dr_grpo"),
        ({"beta": 0.1}, "set both to 0"),
        ({"entropy_coef": 0.1}, "entropy bonus"),
        ({"top_entropy_quantile": 0.5}, "top_entropy_quantile"),
    ],
)
def test_what_gives_every_row_a_gradient_is_refused(
    folder: Path, tmp_path: Path, config: dict[str, Any], told: str
) -> None:
    with pytest.raises(ArgumentError, match=told):
        step(Lean, folder, tmp_path, **config)


def test_a_model_with_linear_attention(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The architecture of the default model: its state runs through the padding too, which the trimming takes away."""
    transformers = pytest.importorskip("transformers")
    if not hasattr(transformers, "Qwen3_5TextConfig"):
        pytest.skip("this transformers does not know Qwen3.5")
    monkeypatch.setattr("trl.trainer.grpo_trainer.shuffle_sequence_dict", lambda rows: rows)
    _, tokenizer = pieces.fresh(folder)
    torch.manual_seed(0)
    config = transformers.Qwen3_5TextConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=8,
        linear_value_head_dim=8, max_position_embeddings=512, pad_token_id=pieces.PAD, eos_token_id=pieces.END,
    )  # fmt: skip
    assert {"linear_attention", "full_attention"} == set(config.layer_types)
    with quiet():
        transformers.Qwen3_5ForCausalLM(config).save_pretrained(tmp_path / "model")
        tokenizer.save_pretrained(tmp_path / "model")
    lean, stock = (step(kind, tmp_path / "model", tmp_path, mode="mask") for kind in (Lean, Stock))
    loop = naive_grpo.gradient(
        pieces.fresh(tmp_path / "model")[0], [PROMPTS[k // GROUP] for k in range(len(CUT))], pieces.completions(),
        lean.advantages, loss="dapo", masked=CUT, cap=CAP, temperature=0.8,
    )  # fmt: skip
    assert lean.trainer.shapes != stock.trainer.shapes
    assert far(lean.gradients[0], stock.gradients[0]) < 1e-6
    assert far(lean.gradients[0], loop) < 1e-6
    assert max(float(g.abs().max()) for g in loop.values()) > 1e-3

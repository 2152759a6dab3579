"""The alarm about annotators who label higher or lower than the others."""

from __future__ import annotations

from audit.offsets import AnnotatorOffsets
from audit.results import Alarm

__all__ = ["offset_alarm", "standing_out"]

#: An offset is told as an alarm where it is this large against the noise without offsets, and no chance.
_LARGE, _CHANCE = 0.5, 0.05


def standing_out(found: AnnotatorOffsets) -> list[tuple[str, float]]:
    """Annotators whose offset is half of σ_e or more and significant (Holm, .05), with their offsets; the worst first.

    The worst is taken out before the next is looked at, so that one who is far off does not make the others look off
    as well: its offset is from those not taken out. At most half of the annotators can stand out.
    """
    noise = found.noise_sd.estimate
    if noise is None:
        return []
    count = len(found.annotators)
    left = {part.value: (part.estimate or 0.0) * (count - 1.0) / count for part in found.annotators}
    clear = {part.value for part in found.annotators if part.p_holm is not None and part.p_holm < _CHANCE}
    out: list[tuple[str, float]] = []
    while len(out) < count // 2:
        summed = sum(left.values())
        offsets = {name: a - (summed - a) / (len(left) - 1.0) for name, a in left.items()}
        worst = max(offsets, key=lambda name: (abs(offsets[name]), offsets[name]))
        if abs(offsets[worst]) < max(_LARGE * noise, 1e-12) or worst not in clear:
            break
        out.append((worst, offsets[worst]))
        del left[worst]
    return out


def offset_alarm(found: AnnotatorOffsets, *, unit: str = "") -> Alarm | None:
    """The alarm that annotators stand out; ``unit`` is what the offsets are in, such as ``steps``."""
    out = standing_out(found)
    noise, total = found.noise_sd.estimate, found.total_sd.estimate
    if not out or noise is None or total is None:
        return None
    unit = f" {unit}" if unit else ""
    told = ", ".join(
        f"{name[:40]}{'…' * (len(name) > 40)} labels {abs(delta):.3g}{unit} {'higher' if delta > 0 else 'lower'}"
        for name, delta in out[:3]
    )
    more = f" and {len(out) - 3} more" if len(out) > 3 else ""
    rest = len(found.annotators) - len(out)
    others = "the other annotator" if rest == 1 else f"the other {rest:,} annotators"
    return Alarm(
        code="annotator_offset",
        severity="warning",
        message=(
            f"on the same items {told}{more} than {others}, beyond chance; without the offsets of annotators the noise "
            f"is {noise:.4g}{unit}, not {total:.4g}"
        ),
        action=(
            "take the offsets out of the labels, or leave these labels out, and audit again; ask what was understood "
            "by the scale"
        ),
        figures={
            "offsets": dict(out[:20]), "noise_sd": noise, "total_sd": total,
            "share": found.share,
        },
    )  # fmt: skip

"""From what somebody pays to how soon their videos are made."""

from contracts.states import Tier


def resolve_tier(tier: str | None, is_paid: bool) -> Tier:
    """Name the tier that a video waits with: what is not paid for waits with the free ones, as does what nobody knows.

    A bulk retranscode is behind them all, whoever pays.
    """
    try:
        known = Tier(tier or Tier.FREE)
    except ValueError:
        return Tier.FREE
    return known if is_paid or known.priority >= Tier.FREE.priority else Tier.FREE


def resolve_task_priority(tier: str | None, is_paid: bool) -> int:
    """Give Temporal's priority key, lower first: viral 1, creator 2, hobby 3, trial and free 4, bulk 5."""
    return resolve_tier(tier, is_paid).priority

"""The base of everything that travels between processes."""

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """A frozen fact or request.

    Unknown fields are ignored so that a history written by newer code still replays on older code
    during a rolling upgrade, and a field that was dropped does not break an old history.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

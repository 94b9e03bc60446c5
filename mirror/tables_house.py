"""What housekeeping remembers between two runs."""

from datetime import datetime

from sqlalchemy import String, func
from sqlalchemy.orm import Mapped, mapped_column

from mirror.base import Base


class Mark(Base):
    """A moment or a place worth remembering: when an API last started, how far a long round has come."""

    __tablename__ = "housekeeping_marks"

    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    at: Mapped[datetime] = mapped_column(server_default=func.now())
    place: Mapped[int] = mapped_column(server_default="0")


class EventCountRow(Base):
    """How often an event happened, over all lines that have settled, purged ones included: see mirror/counting.py."""

    __tablename__ = "event_counts"

    event: Mapped[str] = mapped_column(String(100), primary_key=True)
    code: Mapped[str] = mapped_column(String(50), primary_key=True, server_default="")
    count: Mapped[int]
    seconds: Mapped[float] = mapped_column(server_default="0")

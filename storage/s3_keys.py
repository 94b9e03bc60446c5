"""Who we are to an S3 server: the keys that somebody wrote down, or those that the machine lends us for a while."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from contracts.errors import StorageUnavailable

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from obstore.store import S3Credential

# obstore asks again when less than five minutes are left: so every half minute, and a change is soon heard of. botocore
# renews keys that have less than ten minutes left before it hands them out, so that they hold for longer than we say.
LENT_FOR = timedelta(minutes=5, seconds=30)
NOT_LENT = "Nobody lends us keys for S3."
NOBODY = (
    "Storage is on S3, and nothing says who we are there: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set,"
    " and there is no profile or role that lends us keys."
)


@dataclass(frozen=True)
class Keys:
    key_id: str
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)  # of keys that end by themselves

    async def now(self) -> "Keys":
        return self


class LentKeys:
    """Keys of a profile or a role, which end and are renewed in time. botocore finds them as Amazon's own tools do."""

    def __init__(self, lender: "Credentials") -> None:
        self._lender = lender

    async def now(self) -> Keys:
        return await asyncio.to_thread(self._ask)  # it may have to fetch new ones

    def __call__(self) -> "S3Credential":
        """Answer obstore, which asks from a thread of its own."""
        keys = self._ask()
        return {
            "access_key_id": keys.key_id,
            "secret_access_key": keys.secret,
            "token": keys.token,
            "expires_at": datetime.now(UTC) + LENT_FOR,
        }

    def _ask(self) -> Keys:
        try:
            lent = self._lender.get_frozen_credentials()
        # It lets through whatever its many ways to new keys meet, which has no name in common: a refusal of STS is a
        # ClientError and no BotoCoreError, a token that cannot be read an OSError, new keys that have ended, too, a
        # RuntimeError. None of them is a fault of the step that asks.
        except Exception as error:
            raise StorageUnavailable(NOT_LENT, detail=str(error)) from error
        return Keys(lent.access_key, lent.secret_key, lent.token or None)


def find_keys(environment: Mapping[str, str], region: str) -> Keys | LentKeys:
    """Take Amazon's two variables, or else what lends keys here; raises StorageUnavailable where nothing does."""
    key_id, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
    if key_id and secret:
        return Keys(key_id, secret, environment.get("AWS_SESSION_TOKEN") or None)
    if key_id or secret:
        raise StorageUnavailable("Of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set.")
    return _borrow(region)


def _borrow(region: str) -> LentKeys:
    # Not before it is needed: it is large, and most services have keys of their own.
    from botocore.session import Session

    try:
        session = Session()
        if session.get_config_variable("region") is None:
            # It does not read AWS_REGION, and without a region it knows no STS that could lend a role's keys.
            session.set_config_variable("region", region)
        lender = session.get_credentials()
    except Exception as error:  # as above
        raise StorageUnavailable(NOBODY, detail=str(error)) from error
    if lender is None:
        raise StorageUnavailable(NOBODY)
    return LentKeys(lender)

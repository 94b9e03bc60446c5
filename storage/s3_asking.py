"""How obstore is asked: with bounds on every request, and with what goes wrong in storage's words."""

from collections.abc import Awaitable
from datetime import timedelta
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, PreconditionError
from obstore.exceptions import UnauthenticatedError as Unauthenticated
from obstore.store import S3Store as Bucket

from contracts.errors import ObjectMissing, StorageUnavailable
from contracts.layout import MIME
from storage.s3_keys import NOT_LENT, Keys, LentKeys
from storage.s3_place import S3Place
from storage.store import ObjectFacts

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import S3Config

R = TypeVar("R")

REQUEST_S = 60.0
CONNECT_S = 5.0


class Changed(Exception):
    """The object was replaced while we read it."""


async def asked(question: Awaitable[R]) -> R:
    """Wait for obstore, and speak storage's language about what goes wrong."""
    try:
        return await question
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise StorageUnavailable("The bucket does not exist.") from error
        raise ObjectMissing("A stored file is missing.") from error
    except PreconditionError as error:
        raise Changed from error
    except AlreadyExistsError:
        raise
    except BaseError as error:
        # obstore quotes the whole conversation; of that only the first line is for people.
        said = str(error)
        if NOT_LENT in said:
            raise StorageUnavailable(NOT_LENT, detail=said) from error
        if isinstance(error, PermissionDeniedError | Unauthenticated) or "403 Forbidden" in said:
            raise StorageUnavailable("Storage refuses our key.", detail=said) from error
        if "NoSuchBucket" in said:
            raise StorageUnavailable("The bucket does not exist.", detail=said) from error
        raise StorageUnavailable("Storage did not answer.", detail=said) from error


def open_bucket(place: S3Place, endpoint: str, patience_s: float) -> Bucket:
    config: S3Config = {"endpoint": endpoint, "region": place.region, "virtual_hosted_style_request": False}
    if isinstance(place.keys, Keys):
        config |= {"access_key_id": place.keys.key_id, "secret_access_key": place.keys.secret}
        if place.keys.token:
            config |= {"session_token": place.keys.token}
    return Bucket(
        place.bucket,
        prefix=place.prefix or None,
        config=config,
        credential_provider=place.keys if isinstance(place.keys, LentKeys) else None,
        client_options={
            "allow_http": endpoint.startswith("http://"),  # whoever wrote it meant it
            "timeout": timedelta(seconds=REQUEST_S),
            "connect_timeout": timedelta(seconds=CONNECT_S),
        },
        retry_config={
            "max_retries": 10,
            "retry_timeout": timedelta(seconds=patience_s),
            "backoff": {"init_backoff": timedelta(seconds=0.2), "max_backoff": timedelta(seconds=5), "base": 2},
        },
    )


def facts_of(meta: "ObjectMeta") -> ObjectFacts:
    etag = (meta["e_tag"] or "").strip('"')
    return ObjectFacts(meta["path"], meta["size"], meta["last_modified"], etag)


def content_type(key: str) -> str:
    return MIME.get(PurePosixPath(key).suffix, "application/octet-stream")

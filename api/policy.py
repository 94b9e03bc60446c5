"""What a browser may do with a page of ours: nothing inline, nothing from elsewhere, and who may put it in a frame."""

from urllib.parse import urlsplit

from contracts.layout import segment_name, video_prefix
from storage.store import Store

_ALWAYS = "base-uri 'none'; form-action 'self'; object-src 'none'"

# The page with its scripts: a player feeds itself through blob: addresses.
SCRIPTED = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "media-src 'self' blob:; connect-src 'self'; worker-src 'self' blob:; manifest-src 'self'"
)


async def elsewhere(store: Store) -> str | None:
    """Name the server that segments are fetched from, where it is not this one."""
    link = await store.link(video_prefix("any") + segment_name(0))
    return "{0.scheme}://{0.netloc}".format(urlsplit(link)) if link else None


def scripted(segments: str | None) -> str:
    return SCRIPTED.replace("connect-src 'self'", f"connect-src 'self' {segments}") if segments else SCRIPTED


def page_headers(policy: str, *, framed_by: str = "'none'") -> dict[str, str]:
    """Give the headers of a page; only one that is made for it may be put in a frame of another site."""
    headers = {
        "Content-Security-Policy": f"{policy}; {_ALWAYS}; frame-ancestors {framed_by}",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "strict-origin-when-cross-origin",
        "Cache-Control": "no-cache",
    }
    if framed_by == "'none'":
        headers |= {"X-Frame-Options": "DENY", "Cross-Origin-Opener-Policy": "same-origin"}
    return headers

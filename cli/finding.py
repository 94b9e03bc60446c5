"""Which service a command means, and how a person calls the command."""

import os
import shlex
import shutil
import sys
from pathlib import Path

from runtime.home import is_held, read_run
from runtime.settings import Settings, load_settings

CHECKOUT_HOME = ".vlog"  # what `make up` and `make demo` use


def client_settings() -> Settings:
    """Load the settings of a command that talks to a running service.

    With no VLOG_HOME set, a service that runs in `./.vlog` is meant: the one `make up` started in this checkout.
    """
    settings = load_settings()
    if "home" in settings.model_fields_set:
        return settings
    here = Path(CHECKOUT_HOME).absolute()
    return load_settings(home=here) if _runs_for_us(here) else settings


def _runs_for_us(home: Path) -> bool:
    """Tell whether a service of ours runs there right now.

    Any folder may hold a run.json, a cloned one or a stranger's, and the admin secret goes where it points: so the
    file must be this user's, and the lock must be held this moment.
    """
    try:
        if (home / "run.json").stat().st_uid != os.geteuid():
            return False
        return is_held(home) and read_run(home) is not None
    except OSError:
        return False


def called() -> str:
    """Give this command as it was called, ready to be pasted."""
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        return shlex.join([sys.executable, "-m", "cli"])
    found = shutil.which("vlog")
    if program.name != "vlog" or (found and Path(found).absolute() == program.absolute()):
        return "vlog"
    return shlex.quote(str(program))


def command_for(settings: Settings, words: str) -> str:
    """Give a command that reaches this service from any terminal standing where this one stands."""
    usual = Settings.model_construct().home.expanduser().absolute()
    home = "" if settings.home == usual else f"VLOG_HOME={shlex.quote(str(settings.home))} "
    return f"{home}{called()} {words}"

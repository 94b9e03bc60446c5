from tests.unit.cli.fake_api import api as api

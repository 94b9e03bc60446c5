"""The API's own description as a page: what /openapi.json says, for people. Pure.

Our own, because the usual ones fetch their script from another server: blank on a machine without the internet.
"""

import json
import re
from html import escape
from typing import Any

Schema = dict[str, Any]

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h2 { margin-top: 2.5rem } h3 { margin-bottom: .2rem } h3 code { font-size: 1rem }
code, pre { font: 14px/1.4 ui-monospace, monospace } pre { background: #f4f4f4; padding: .7rem; overflow-x: auto }
td, th { text-align: left; vertical-align: top; padding: .1rem 1rem .1rem 0 } summary { cursor: pointer }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } pre { background: #262626 }
a { color: #8ab4f8 } }
"""


def shell(title: str, body: str) -> str:
    """Put a page around its body, which is HTML already."""
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    style = '<link rel="stylesheet" href="/docs.css">'
    return f'<!doctype html><html lang="en"><head>{head}{style}</head><body>{body}</body></html>'


def reference(openapi: Schema) -> str:
    """Render every route below its tag: parameters, body, answers, an example."""
    info = openapi["info"]
    parts = [f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>", *_paragraphs(info.get("description", ""))]
    parts.append('<p><a href="/openapi.json">/openapi.json</a> says the same to programs.</p>')
    routes = [
        (method, path, route)
        for path, methods in openapi["paths"].items()
        for method, route in methods.items()
        if method != "head"  # a GET without its body
    ]
    for tag in openapi.get("tags", []):
        parts.append(f'<h2 id="{escape(tag["name"])}">{escape(tag["name"])}</h2><p>{_text(tag["description"])}</p>')
        parts += [_route(*each, openapi) for each in routes if tag["name"] in each[2].get("tags", [])]
    return shell(f"{info['title']} API", "".join(parts))


def _route(method: str, path: str, route: Schema, openapi: Schema) -> str:
    parts = [f"<h3><code>{method.upper()} {escape(path)}</code></h3><p><b>{_text(route['summary'])}.</b> "]
    parts.append(f"{_text(route.get('description', ''))}</p>")
    rows = [(p["name"], p["in"], p.get("schema", {}), p.get("description", "")) for p in route.get("parameters", [])]
    for kind, content in route.get("requestBody", {}).get("content", {}).items():
        fields = content.get("schema", {}).get("properties", {})
        rows += [(name, kind, schema, schema.get("description", "")) for name, schema in fields.items()]
        if not fields:
            rows.append(("(body)", kind, {}, route["requestBody"].get("description", "")))
    if rows:
        parts.append("<table>")
        parts += [
            f"<tr><td><code>{escape(name)}</code><td>{escape(place)}<td>{_text(about)} {escape(_kind(schema))}"
            for name, place, schema, about in rows
        ]
        parts.append("</table>")
    for status, answer in route["responses"].items():
        example = _example(answer, openapi)
        line = f"<b>{escape(status)}</b> {_text(answer.get('description', ''))}"
        if example is None:
            parts.append(f"<div>{line}</div>")
        else:
            shown = escape(json.dumps(example, indent=2, ensure_ascii=False))
            open_ = " open" if status.startswith("2") else ""
            parts.append(f"<details{open_}><summary>{line}</summary><pre>{shown}</pre></details>")
    return "".join(parts)


def _example(answer: Schema, openapi: Schema) -> Any:
    content = answer.get("content", {}).get("application/json", {})
    return content["example"] if "example" in content else _example_of(content.get("schema", {}), openapi)


def _example_of(schema: Schema, openapi: Schema) -> Any:
    """Find an example, or put one together for a list and for a page of a list."""
    if "$ref" in schema:
        schema = openapi["components"]["schemas"][schema["$ref"].rsplit("/", 1)[-1]]
    if schema.get("examples"):
        return schema["examples"][0]
    if schema.get("type") == "array":
        return [_example_of(schema.get("items", {}), openapi)]
    if schema.get("type") == "object":
        return {name: _example_of(field, openapi) for name, field in schema.get("properties", {}).items()}
    return None


def _kind(schema: Schema) -> str:
    """Say in a few words what a parameter may hold."""
    schema = next((one for one in schema.get("anyOf", []) if one.get("type") != "null"), schema) | {
        key: value for key, value in schema.items() if key == "default"
    }
    names = {"minimum": "from", "maximum": "to", "maxLength": "at most", "default": "by default"}
    facts = [f"{words} {schema[name]}" for name, words in names.items() if schema.get(name) not in (None, "")]
    return f"({', '.join([schema.get('format') or schema.get('type', ''), *facts]).strip(', ')})" if schema else ""


def _paragraphs(text: str) -> list[str]:
    return [f"<p>{_text(part)}</p>" for part in text.split("\n\n")]


def _text(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))

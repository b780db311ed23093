"""jinja2 set up as the transformers library sets it up for chat templates."""
import datetime
import json

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

NOW = datetime.datetime(2024, 7, 26, 9, 5, 3)  # what strftime_now sees


class RaisedByTemplate(Exception):
    pass


class Generation(jinja2.ext.Extension):
    """{% generation %}: a scope whose text is passed on."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_text", [])
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def raise_exception(message):
    raise RaisedByTemplate(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(env, template, values):
    """(text, None) or (None, name of our error code)."""
    try:
        return env.from_string(template).render(**values), None
    except RaisedByTemplate:
        return None, "bad argument"
    except OverflowError:
        return None, "over a limit"
    except Exception:
        return None, "malformed file"

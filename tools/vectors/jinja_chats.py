"""Makes tests/data/jinja/chats.json: what jinja2 makes of conversations with the templates there.

{"chats": [values], "expected": {template: [text, or {"error": name}]}}, one per chat."""
import json
import pathlib

from jinja_env import environment, render

SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": "Hi"}
REPLY = {"role": "assistant", "content": "Hello!"}
THOUGHT = {"role": "assistant", "content": "<think>\nhm\n</think>\n\nYo"}
WEIRD = {"role": "user", "content": "  Grüße, 世界 🎉 <b>&\"' \n\n"}
TOOL = {"type": "function", "function": {
    "name": "weather", "description": "Weather of a <city>",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "Name"}}, "required": ["city"]}}}
CALL = {"role": "assistant", "content": "", "tool_calls": [{
    "id": "abcdef123", "type": "function",
    "function": {"name": "weather", "arguments": {"city": "Łódź"}}}]}
RESULT = {"role": "tool", "name": "weather", "tool_call_id": "abcdef123", "content": "20 °C"}
CHATS = [
    [[USER], True, None],
    [[SYSTEM, USER], True, None],
    [[SYSTEM, USER, THOUGHT, USER], True, None],
    [[USER, REPLY, {"role": "user", "content": ""}], True, None],
    [[WEIRD], True, None],
    [[USER, REPLY], False, None],
    [[REPLY, USER], True, None],
    [[USER], True, [TOOL]],
    [[SYSTEM, USER, CALL, RESULT], True, [TOOL]],
]


def main():
    env = environment()
    data = pathlib.Path(__file__).parents[2] / "tests/data/jinja"
    chats = [{"messages": m, "add_generation_prompt": g, "tools": t, "documents": None,
              "bos_token": "<s>", "eos_token": "</s>"} for m, g, t in CHATS]
    expected = {}
    for path in sorted(data.glob("*.jinja")):
        rows = [render(env, path.read_text(), c) for c in chats]
        expected[path.stem] = [{"error": e} if e else text for text, e in rows]
        print(path.stem, "".join("e" if e else "." for _, e in rows))
    dump = lambda x: json.dumps(x, ensure_ascii=False)
    body = ",\n".join('"%s": %s' % (k, dump(v)) for k, v in expected.items())
    (data / "chats.json").write_text('{"chats": %s,\n"expected": {\n%s\n}}\n' % (dump(chats), body))


main()

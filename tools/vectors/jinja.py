"""Makes tests/data/jinja/cases.json: small templates with what jinja2 makes of them.

Each row is [template, values, text or null, error or null]."""
import json
import pathlib

from jinja_env import environment, render

V = {
    "s": "Hello World", "e": "", "u": "Grüße, 世界 🎉", "ws": "  a b \n", "q": "it's", "dq": 'say "hi"',
    "n": 7, "m": -7, "z": 0, "f": 2.5, "t": True, "no": False, "nil": None, "l": [3, 1, 2],
    "ls": ["b", "A", "c"], "d": {"b": 1, "a": [1, 2], "items": "x"}, "em": [], "ed": {},
    "ms": [{"role": "user", "content": "Hi", "n": 2}, {"role": "assistant", "content": "Yo", "n": 1},
           {"role": "user", "content": "Bye", "n": 3}],
    "html": "<a href=\"x\">&'</a>", "big": 123456789012345, "lines": "one\ntwo\n\nfour",
}

EXPRESSIONS = r"""
s
u
e
n
f
t
nil
no
l
ls
d
ms[0]
q
[q, dq, 'a\nb\t\\', "it's \"x\""]
(1,)
(1, 2)
()
1, 2
{}
{'a': 1, 'b': none, 2: true, 1.5: 'x'}
[1.0, 1e20, 1e16, 1e15, 0.1, 1e-5, 0.0001, -0.0, 123456.789, 3.0e100]
1_000 + 2
1.5e3
'a' 'b' "c"
'\x41\u00e9\101\q'
'é' ~ "世"
1 + 2 * 3 - 4
7 // 2
m // 2
7 % 3
m % 3
7 / 2
6 / 2
2 ** 10
2 ** 3 ** 2
2 ** -1
-2 ** 2
7.5 // 2
m % 2.5
-n
+n
- f
not n
not not e
1 + true
'a' + 'b' * 3
3 * 'ab'
[1] * 2 + [2]
(1, 2) + (3,)
'a' ~ 1 ~ 2.0 ~ none ~ true
1 < 2
1 < 2 < 3
1 < 3 < 2
1 == 1.0
true == 1
'a' < 'b'
'Z' < 'a'
[1, 2] < [1, 3]
[1, 2] == [1, 2]
[1] == (1,)
{'a': 1} == {'a': 1.0}
n != 7
n >= 7 and n <= 7
'ell' in s
'x' not in s
3 in l
'b' in d
'z' in d
2 not in (1, 2)
1 or 2
0 or 'x'
0 and 1
e or none or []
1 if t else 2
1 if no else 2
1 if no
(1 if no) is defined
'a' if e else 'b' if no else 'c'
s[0]
s[-1]
u[-1]
u[0:3]
s[1:4]
s[::-1]
s[-3:]
s[:-6]
s[::2]
s[4:1:-1]
s[100]
s[5:100]
l[0]
l[-1]
l[9]
l[1:]
l[::-1]
l[:-1]
l[-2:]
l[5:]
l[none:2]
(1, 2, 3)[1:]
d.b
d['b']
d.a[1]
d['items']
d.nope
d.nope is defined
d.get('b')
d.get('zz')
d.get('zz', 5)
d.items() | list
d.keys() | list
d.values() | list
d | items | list
d | dictsort
d | list
d | length
ms[0].role
ms[-1]['content']
ms.0.role
nope
nope is defined
nope | default('x')
nope.x
nope['x']
nope + 1
nope ~ 'x'
nope == nope
nope()
nope | length
nope | list
[nope]
nope < 1
-nope
'a' in nope
e | default('x')
e | default('x', true)
e | d('x', boolean=true)
nil | default('x')
nil.x
n.x
n.x.y
s | upper
s | lower
'hELLO wORLD' | title
'hELLO wORLD' | capitalize
"they're bill's (friends) a-b" | title
"they're bill's".title()
u | upper
'ПРИВЕТ Ωmega' | lower
'straße' | upper
ws | trim
'xxaxx' | trim('x')
'\u00a0a\u3000' | trim
ws.strip() ~ '|'
ws.lstrip() ~ '|'
ws.rstrip() ~ '|'
'--a-'.strip('-')
'abc'.lstrip('ba')
'abc\n\n'.rstrip('\n')
'a,b,,c'.split(',')
'a,b,,c'.split(',', 1)
' a  b c '.split()
' a  b c '.split(none, 1)
'a,b,c'.rsplit(',', 1)
''.split()
''.split(',')
'a'.split('')
'one\ntwo\r\nthree'.splitlines()
s.startswith('Hell')
s.endswith(('x', 'ld'))
s.replace('l', 'L')
s.replace('l', 'L', 1)
s | replace('o', '0')
s | replace('l', 'L', 2)
'abc' | replace('', '-')
s.find('World')
u.find('世')
s.find('zz')
s.rfind('o')
s.count('l')
s.upper()
s.lower()
'abc'.capitalize()
'12'.isdigit()
'1a'.isalnum()
'ab'.isalpha()
' \n'.isspace()
'AB1'.isupper()
'x'.join(ls)
'prefix-x'.removeprefix('prefix-')
'a.txt'.removesuffix('.txt')
ls | join(', ')
l | join
ms | join(', ', attribute='role')
[1, [2, 'x']] | join('-')
l | first
l | last
em | first
s | first
l | sort
ls | sort
ls | sort(case_sensitive=true)
l | sort(reverse=true)
ms | sort(attribute='n') | map(attribute='n') | list
l | reverse | list
s | reverse
[1, 2, 1, 'a', 'A'] | unique | list
s | list
l | min
l | max
ls | max
em | min
l | sum
ms | sum(attribute='n')
ms | map(attribute='role') | list
ms | map(attribute='zz', default='?') | list
ls | map('upper') | join
ls | map('replace', 'b', 'z') | list
ms | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(',')
ms | selectattr('role', 'eq', 'nobody') | list | length
ms | rejectattr('role', 'in', ['user']) | list | length
ms | selectattr('n', '>', 1) | list | length
ms | selectattr('zz') | list
ms | selectattr('zz', 'defined') | list
[0, 1, '', 'a', none] | select | list
[1, 2, 3] | select('odd') | list
[1, 2, 3] | reject('divisibleby', 3) | list
(ms | selectattr('role', 'eq', 'nobody')) is true
'y' if em | select else 'n'
'42' | int
' 42 ' | int
'4.7' | int
'x' | int
'x' | int(-1)
4.7 | int
-4.7 | int
none | int
'2.5' | float
'x' | float
3 | float
2.5 | round
3.5 | round
2.675 | round(2)
2.1 | round(method='ceil')
2.9 | round(0, 'floor')
1234 | round(-2)
5 | round
-3 | abs
2.5 | abs
'x' | abs
5 | string
l | string
lines | indent
lines | indent(2, true)
lines | indent('> ', blank=true)
'a\n' | indent
html | escape
html | e | safe
(html | safe) + '<'
('<' | safe) ~ '<'
['<' | safe]
d | tojson
u | tojson
u | tojson(ensure_ascii=true)
d | tojson(indent=2)
{'a': [], 'b': {}, 'c': [{}, 1]} | tojson(indent=4)
d | tojson(separators=(',', ':'))
d | tojson(sort_keys=true)
{'k': 1, 2: 'x', none: 1.5, true: 'é"\\\n\u0001'} | tojson
[1.0, 1e100, none, true, (1, 2)] | tojson
html | tojson
nope | tojson
'a/b' | tojson
s is string
n is number
t is number
t is integer
n is integer
f is float
t is boolean
d is mapping
l is iterable
s is iterable
n is iterable
l is sequence
d.items() is sequence
nil is none
n is none
t is true
no is false
n is true
nope is undefined
n is not none
n is not string
n is odd
n is even
n is divisibleby 7
n is divisibleby(2)
n is eq 7
n is ne 7
n is gt 6
n is in l
3 is in [3]
'abc' is lower
'ABC' is upper
range is callable
s is defined and s is string or no
not s is defined
'upper' is filter
n is sameas 7
range(3) | list
range(1, 10, 3) | list
range(3, 0, -1) | list
range(5)[1:3] | list
range(200000)
range(3) | length
dict(a=1, b='x')
dict({'a': 1}, b=2)
strftime_now('%d %b %Y')
strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %p %I %y')
strftime_now('%-d/%-m')
raise_exception('no ' ~ n)
1 / 0
1 % 0
'a' + 1
1 + 'a'
[1] + (1,)
'a' < 1
l.append(4)
d.update({})
l | zzz if no else 1
nil | length
nil[0]
l['x']
'abc'['x']
{[1]: 2}
{'a': 1}['a']
{'a': {'b': 2}}.a.b
s.nope()
n()
big * 1000
(1 == 1) ~ (1 is defined)
'%' ~ n
'a' is in 'abc'
{'a': 1, **d}
dict(**{'x': 1})
range(*[1, 3]) | list
'x' * -1
'x' if 1 is defined else 'y'
[1, 2, 3,]
(1 + 2) * 3
'a' | upper ~ 'b'
-1 | abs
[[1, 2], [3]] | map('length') | list
[[1, 2], [3]] | map(attribute=0) | list
'{"a": 1}' | tojson
[{'a': {'b': 1}}, {'a': {'b': 2}}] | map(attribute='a.b') | list
[{'a': {'b': 1}}] | selectattr('a.b', 'eq', 1) | list
"a" ~ 'b' if t
s|upper|lower|title
s.split(' ')[-1].strip('d')
'</think>' in '<think>x</think>y'
'<think>x</think>y'.split('</think>')[0].split('<think>')[-1]
'<think>x</think>y'.split('</think>')[-1].lstrip('\n')
"""

STATEMENTS = [
    "{% if t %}a{% endif %}",
    "{% if no %}a{% elif n == 7 %}b{% else %}c{% endif %}",
    "{% if no %}a{% elif no %}b{% else %}c{% endif %}",
    "{% for x in l %}{{ x }}{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}"
    "{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }};{% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem is defined }}{{ loop.nextitem is not defined }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ x }}{{ loop.last }}{% endfor %}",
    "{% for x in em %}x{% else %}none{% endfor %}",
    "{% for x in l if x > 9 %}x{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }};{% endfor %}",
    "{% for c in u %}{{ c }}.{% endfor %}",
    "{% for x in nope %}a{% else %}b{% endfor %}",
    "{% for x in nil %}a{% endfor %}",
    "{% for x in n %}a{% endfor %}",
    "{% for a, b in [(1, 2), (3, 4)] %}{{ a + b }} {% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for x in 1, 2 %}{{ x }}{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}!",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}!",
    "{% for x in [1] %}{% for y in [1, 2] %}{% break %}{% endfor %}k{% endfor %}",
    "{% break %}",
    "{% set x = 1 %}{% for y in l %}{% set x = y %}{% endfor %}{{ x }}",
    "{% set x = 1 %}{% for y in l %}{{ x }}{% set x = y %}{{ x }};{% endfor %}",
    "{% set x = 1 %}{% if t %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set ns = namespace(x=1, found=false) %}{% for y in l %}{% set ns.x = ns.x + y %}{% endfor %}{{ ns.x }}{{ ns.found }}",
    "{% set ns = namespace() %}{% set ns.a = 'q' %}{{ ns.a }}{{ ns.b is defined }}",
    "{% set d2 = {} %}{% set d2.x = 1 %}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a = 1, 2 %}{{ a }}",
    "{% set a, b = 1 %}",
    "{% set x %}a{{ n }}b{% endset %}[{{ x }}]",
    "{% set x | upper | trim %} a{{ n }}b {% endset %}[{{ x }}]",
    "{% set none = 1 %}",
    "{% set x = 1 if t else 2 %}{{ x }}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(b=5, a=4) }} {{ m() }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(c=2) }}",
    "{% macro m(a) %}{{ a }}{{ kwargs }}{{ varargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}",
    "{% macro m(a, b=a ~ 'x') %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m() %}{{ x }}{% endmacro %}{% set x = 5 %}{{ m() }}",
    "{% macro m() %}{% set n = 9 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}",
    "{% macro r(i) %}{{ i }}{% if i > 0 %}{{ r(i - 1) }}{% endif %}{% endmacro %}{{ r(5) }}",
    "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}in{{ n }}{% endcall %}",
    "{% macro m() %}{% for i in [1, 2] %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(x) m() %}[{{ x }}]{% endcall %}",
    "{% macro m() %}x{% endmacro %}{{ m() | upper }}{{ m.name }}",
    "{% macro m(x) %}{% if x is mapping %}{% for k, v in x.items() %}{{ k }}:{{ m(v) }},{% endfor %}{% else %}{{ x }}{% endif %}{% endmacro %}{{ m({'a': {'b': 1}, 'c': 2}) }}",
    "{% filter upper %}abc{{ s }}{% endfilter %}",
    "{% filter replace('a', 'b') | upper %}abc{% endfilter %}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% with %}{% set z9 = 1 %}{{ z9 }}{% endwith %}{{ z9 }}",
    "{% generation %}a{% set g = 1 %}{{ g }}{% endgeneration %}b{{ g }}",
    "{% raw %}{{ x }} {% if %}{% endraw %}!",
    "a {%- raw -%} {{ x }} {%- endraw -%} b",
    "{# c #}a{#- c -#} b {# {{ x }} #}",
    # blanks
    "a\n{% if t %}\nb\n{% endif %}\nc\n",
    "a\n  {% if t %}\n  b\n  {% endif %}\n  c",
    "a  {% if t %}  b  {% endif %}  c",
    "a \n {%- if t -%} \n b \n {%- endif -%} \n c",
    "a\n  {{ n }}\n  b",
    "a \n {{- n -}} \n b",
    "  {%+ if t %}x{%+ endif %}  y",
    "x {% if t +%}\ny{% endif +%}\nz",
    "{% if t %}\n\n  x\n{% endif %}\n\n",
    "a\n\t {# c #}\nb",
    "a {# c #}\nb",
    "  {# c -#}\n\n b",
    "a\n   {#- c #}\nb",
    "{% for x in l %}\n  - {{ x }}\n{% endfor %}\nend",
    "{%- for x in l -%}\n  {{ x }}\n{%- endfor -%}\nend",
    "{% set x = 1 %}\n\n{{ x }}\n",
    "\n{{ n }}\n\n",
    "a\r\n{% if t %}\r\nb\r{% endif %}c\r\n",
    "  {% set a = 1 %}  {% set b = 2 %}\n  {{ a }}",
    "{{ 'a' }}\n{{ 'b' }}",
    "{%- if t %}\n  x\n{%- else %}\n y\n{%- endif %}\n",
    "\u00a0{%- if t %}x{% endif -%}\u3000y",
    "{% raw %}\n a\n{% endraw %}\n b",
    "  {% raw %}x{% endraw %}  \n",
    "{{ '{{' }}{{ '%}' }}{{ \"}}\" }}",
    "{{ {'a': {'b': 1}} }}",
    "{{ {'a': {'b': 1}}['a']['b']}}",
    "{{-n-}} x",
    "{ { n } } {% if t %}{{n}}{% endif %}%}",
    "no tags at all",
    "",
    "\n",
    # errors
    "{{ n", "{% if t %}", "{% if %}x{% endif %}", "{% endif %}", "{{ }}", "{% for x l %}{% endfor %}",
    "{{ 'abc }}", "{# abc", "{% raw %}abc", "{{ n | }}", "{{ (1, 2 }}", "{{ [1, 2) }}", "{{ 1 2 }}",
    "{{ a.b. }}", "{{ $ }}", "{% if t %}{% else %}{% else %}{% endif %}", "{% for x in l %}{% endif %}",
    "{{ n is }}", "{{ n + }}", "{% set = 1 %}", "{% set 1 = 1 %}", "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m %}{% endmacro %}", "{% call 1 %}{% endcall %}", "{{ 1 if }}", "{{ 'a'.'b' }}", "{% %}",
    "{{ 1 is odd is even }}", "{{ n }}\n{{ n }}\n{{ nope.x }}", "{{ f(a=1, 2 }}", "{% if t }}{% endif %}",
]


def main():
    env = environment()
    rows = []
    for e in EXPRESSIONS.strip("\n").split("\n"):
        rows.append(["{{ " + e + " }}", *render(env, "{{ " + e + " }}", V)])
    rows += [[t, *render(env, t, V)] for t in STATEMENTS]
    out = pathlib.Path(__file__).parents[2] / "tests/data/jinja/cases.json"
    text = ",\n".join(json.dumps(r, ensure_ascii=False) for r in rows)
    out.write_text('{"values": %s,\n"cases": [\n%s\n]}\n' % (json.dumps(V, ensure_ascii=False), text))
    print(len(rows), "cases,", sum(r[1] is None for r in rows), "of them errors")


main()

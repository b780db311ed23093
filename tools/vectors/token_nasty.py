"""The nasty strings: what breaks tokenizers. Written to tests/data/token/nasty.txt, one a line, with
\\xNN, \\n, \\r, \\t and \\\\ as escapes; bytes, not always valid UTF-8."""
import random

PLAIN = r"""
Hello, world!
The quick brown fox jumps over the lazy dog.
I'm you're he's they've we'll I'd can't I'M YOU'RE HE'S THEY'VE WE'LL I'D CAN'T
don't'sthe 'twas 'S 'x '' ''' 'll'll'LL 'lL 'Re 've'd
'
's
'r
a'
ſ'ſ 'ſ 'K
camelCaseWords HTTPServer XMLHttpRequest iPhone eBay McDonald ABCdef abcDEF
Abc ABC aBC ABc éÉé ÉÉÉ ÉééÉ AÉa ΑΒΓαβγ АБВабв ÉAB ABÉ AÉB éAB
snake_case __init__ kebab-case dot.separated a/b/c C:\\path\\to\\file
0
12
123
1234567890 12 345 6,789.00 1e-10 0x1F 1.2.3 3.14159265358979
12a34b ١٢٣٤٥ ०१२३४ 一二三四 ⅣⅫ ½¾ x²y³ ①②③ 𝟏𝟐𝟑𝟒 ௧௨௩
v1.0.0-rc1+build5 192.168.100.255 2026-11-30T12:34:56Z +1 (555) 123-4567
$100 €200 £300 ¥400 ₹500 100% 5‰ №7 §8 ¶9 #10 @11
!!! ??? ... ,,, ;;; ::: --- === +++ *** ~~~ ``` ||| ^^^ &&& %%% <<< >>>
<=>^~|`$+ `code` $x+y$ a<b>c a=b^c~d|e
!"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~
(a)[b]{c}<d>"e"'f' .gitignore #include @decorator $var _x /usr/bin
a!\n\nb?\r\nc.\r\rd;\n/e //comment\n/* c */\n
if (x) {\n\treturn 0;\n}\n\nint main(void) {\n    printf("hi\\n");\n}\n
def f(x):\n    if x:\n        return [i for i in range(10)]\n\n\n
{"key": "value", "n": [1, 2, 3], "s": null}
<html><body class="x">&amp;&lt;</body></html>
SELECT * FROM t WHERE id = 1; -- comment
\\frac{1}{2} \\sum_{i=0}^{n} x_i
https://example.com/path?q=1&r=2#frag user@example.org
# Heading\n\n- item 1\n- item 2\n\n1. one\n2. two\n\n```c\nint x;\n```\n
\x20
\x20\x20
\x20\x20\x20
\x20\x20\x20\x20\x20\x20\x20\x20
\x20leading
\x20\x20leading two
\x20\x20\x20leading three
trailing\x20
trailing two\x20\x20
a b
a  b
a   b
a    b     c      d       e
\n
\n\n
\n\n\n
\r
\r\n
\r\n\r\n
\r\r\n\n\r
\t
\t\t
\t\tx\t y\t\tz
\x20\n
\n\x20
\x20\n\x20
\x20\x20\n\x20\x20\n\x20\x20
a\nb
a \n b
a  \n  b
a\r\nb\r\n
line one\nline two\n\nline four\r\n\r\nline six
\n\n\x20\x20x
\x20\t\n\x20\tx
x\x0by\x0cz\x0b\x0b \x0c
a\x00b
\x00
\x01\x02\x03\x1b[0m\x7f
x\x00\x00y \x00 1\x002
a\x85b\u0085\u0085c
a\u00a0b\u00a0\u00a0c \u00a0d\u00a0 e
a\u1680b\u2003c\u2003\u2003d\u2009e\u202ff\u205fg
a\u2028b\u2029c\u2028\u2028d
a\u3000b\u3000\u3000c\u3000。\u3000、x \u3000y
\u3000\u3000\u3000
\u3000
\ufeffBOM zero\u200bwidth\u200cnon\u200djoin\u2060er soft\u00adhyphen
\u202eright to left\u202c \u061cmark \u200e\u200f
Voilà, où est l'été? Ça va? Œuvre, naïve, façade, coöperate, ÀÉÎÕÜ
¿Dónde está el niño? ¡Aquí! El pingüino bebió güisqui.
Größe, Straße, Übermaß, ÄÖÜäöüß, GROẞ
Zażółć gęślą jaźń; Příliš žluťoučký kůň; Árvíztűrő tükörfúrógép
İstanbul'da ığdır; TÜRKÇE'nin ŞÇĞ ışık
Tiếng Việt: Trăm năm trong cõi người ta, chữ tài chữ mệnh khéo là ghét nhau
Þetta er íslenska; Føroyskt; Sámegiella đ ŋ ŧ
Съешь же ещё этих мягких французских булок, да выпей чаю. ЙЦУКЕН
Ґанок, їжак, єнот; Љубав, Његош, Џем
Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΆΈΉΊΌΎΏ ᾳ ῼ
Բարեւ աշխարհ։ Ողջույն
გამარჯობა მსოფლიო ᲒᲐᲛᲐᲠᲯᲝᲑᲐ
שלום עולם! בְּרֵאשִׁית בָּרָא אֱלֹהִים
مرحبا بالعالم! كيف حالك؟ بِسْمِ اللَّهِ ۔ ،
سلام دنیا، چطوری؟ می‌خواهم ۱۲۳۴
ܫܠܡܐ ދިވެހި ߒߞߏ
नमस्ते दुनिया। क्या हाल है? क्षत्रिय ज्ञान श्री
ওহে বিশ্ব! আমি বাংলায় গান গাই।
ਸਤ ਸ੍ਰੀ ਅਕਾਲ ગુજરાતી ଓଡ଼ିଆ
வணக்கம் உலகம் తెలుగు ಕನ್ನಡ മലയാളം සිංහල
สวัสดีชาวโลก ภาษาไทย น้ำ กำลัง ๑๒๓
ສະບາຍດີ မင်္ဂလာပါ ភាសាខ្មែរ ១២៣
བོད་སྐད། བཀྲ་ཤིས། མོང་ ᠮᠣᠩᠭᠣᠯ
አማርኛ ሰላም ልዑል። ትግርኛ
ᏣᎳᎩ ᐃᓄᒃᑎᑐᑦ ꓡꓲ ⵜⵉⴼⵉⵏⴰⵖ ꦗꦮ ᮞᮥᮔ᮪ᮓ
你好，世界！今天天气怎么样？我很好。「引号」《书名》
中文English混排123测试，a中b文c 中 文
繁體中文：臺灣、香港；龍龜鬱靈
こんにちは世界。カタカナ、ひらがな、漢字。ｶﾀｶﾅ ー々〆ヶ
日本語とEnglishとعربى、123４５６
안녕하세요 세계! 한국어 ㄱㄴㄷ ㅏㅑㅓ 가나다힣
ㄅㄆㄇㄈ 𠀀𠀁𪜀𫝀 㐀㐁 豈 ﷽ ﬁ ﬂ ﬀ
ＦＵＬＬＷＩＤＴＨ　ｔｅｘｔ！？　１２３：；～
‘single’ “double” „low“ «guillemets» ‹x› — – ‐ ‑ … ‥ •
∀x∈ℝ: ∃y ≤ x ∧ ∑∏∫√∞ ≠ ≈ → ⇒ ⟨⟩ ℂℕℙℚℤ ℵ ℏ ℓ
ħ µ Å Ω K ℃ ℉ ™ ® © ℗ ₿
┌──┐│  │└──┘ ▀▄█▌ ◆◇○● ★☆ ♠♥♦♣ ♪♫ ✓✗ ➜ ⌘⌥
😀😃😄 🎉🎊 🚀 ❤️ ☺️ ✌🏽 👍🏿
👨‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈 🏴‍☠️ 🧑‍🤝‍🧑
🇫🇷🇩🇪🇯🇵 🇺🇸 1️⃣2️⃣#️⃣ 🏴󠁧󠁢󠁥󠁮󠁧󠁿
a😀b 😀a😀 😀😀\n😀 !😀! 1😀2
e\u0301 a\u0300\u0301\u0302 n\u0303 \u0301x \u0301\u0301 1\u0301 !\u0301 \u20dd
Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!͖̬̰̙̗̿̋ͥͥ̂ͣ̐́́͜͞
𝓗𝓮𝓵𝓵𝓸 𝕎𝕠𝕣𝕝𝕕 𝔄𝔟𝔠 🅰🅱 Ⓐⓑ ᴴᵉˡˡᵒ ₁₂₃
𐐀𐐨𐒰 𐓘 𞤀𞤢 𐌰𐍂 𒀀𒁀 𓀀𓁐 𐎠𐎢
\ue000\uf8ff \U000f0000 \U0010ffff private
\uffff\ufffe \u0378 \u0380 \U000e0001 unassigned
\u1e08f𞂏𖽀𑼄𑽐𛄲 \U0001fae8\U0001f6dc \U00031350\U0002ebf0 \u0cf3\u0ece newer
ǅ ǈ ǋ ǲ ᾈ titlecase ʰʲʷ modifier ʔ ʕ ƻ ǀǁ
\xff
\x80
\xc3
\xc3(
a\xffb\xfec
\xe2\x82
\xe2\x28\xa1
\xf0\x9f\x98
\xf0\x9f\x98x\xf0\x9f
\xed\xa0\x80 \xed\xbf\xbf surrogates
\xc0\xaf \xc0\x80 \xe0\x80\xaf overlong
\xf8\x88\x80\x80\x80 \xfc \xfd
valid é then \xe9 latin1 \xe9t\xe9 \xa0\xa0
\xbf\xbf\xbf 中\xe4\xb8 文\xe6 x
1\xff2 \xff \xff\xff\n\xff
<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n
<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n
<|endoftext|>
<|endoftext|><|endoftext|>x<|endoftext|>
text<|im_end|>
<|im_start|>
<|im_start
<|im_start|
im_start|>
<|im_start|><|im_end|>
<|<|im_start|>|>
 <|im_start|> 
a <|im_end|>  b\n<|im_end|> \t c
<|im_start|>\xff<|im_end|>
<|IM_START|> <im_start> <|im_start |>
<repo_name>a/b<file_sep>c.py<reponame>d<gh_stars>12<issue_start>x<jupyter_script>
<filename>f <|begin_of_text|> <|eot_id|> [INST] hi [/INST] <<SYS>> x <</SYS>>
<s>hi</s><s> </s>\n<unk> <pad> <mask>
<start_of_turn>user\nhi<end_of_turn>\n<bos><eos>
<0x41><0x0A> <0x> <0xZZ>
<tool><tool> <tool>x</tool> <|tool|><|tool_long|> [TAG] [TAG][TAG]
▁ ▁▁ a▁b ▁The Ġ Ċ ĠThe Â Ã©
SolidGoldMagikarp petertodd rawdownloadcloneembedreportprint
antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
abababababababababababababababababababab cdcdcdcdcdcdcd eeeeeeee
////////////////////////////// ============================== ______________________________
1111111111111111111111111111111111111111
1,234,567,890.12 1'000'000 1_000_000 10⁻⁹
Mixed: Привет world 你好 مرحبا 😀 123 ½ — “ok” \t\n end
""".strip("\n").split("\n")

ALPHABET = (list("abzABZ059 '.,!/$<`_-") + [" ", " ", "\n", "\r", "\t"]
            + list("éÉßſαΩжЖאبकखกขあア中文한글०१²½Ⅳ")
            + list("\u0301\u0903\u093e\u20dd\u064b\u00a0\u3000\u2003\u0085\u200d\u00ad")
            + list("。、！～‘”…「€™→😀𝓗𐐀\ue000\u0378\ufffd")
            + ["'s", "'LL", "'re", "\r\n", "  ", "   ", "12345", "ABc", "aBC"])


def mixed(n, seed):
    """Random strings over characters of every class: the edges of the rules."""
    rng = random.Random(seed)
    return ["".join(rng.choice(ALPHABET) for _ in range(rng.randint(2, 24))).encode()
            for _ in range(n)]


def unescape(line):
    out, i = bytearray(), 0
    simple = {"n": 10, "r": 13, "t": 9, "\\": 92}
    while i < len(line):
        c = line[i]
        if c != "\\":
            out += c.encode()
            i += 1
        elif line[i + 1] == "x":
            out.append(int(line[i + 2:i + 4], 16))
            i += 4
        elif line[i + 1] in "uU":
            n = 4 if line[i + 1] == "u" else 8
            out += chr(int(line[i + 2:i + 2 + n], 16)).encode("utf-8", "surrogatepass")
            i += 2 + n
        else:
            out.append(simple[line[i + 1]])
            i += 2
    return bytes(out)


def escape(data):
    """Printable UTF-8 stays; everything else is \\xNN."""
    out = []
    for ch in data.decode("utf-8", "surrogateescape"):
        raw = ch.encode("utf-8", "surrogateescape")
        short = {10: "\\n", 13: "\\r", 9: "\\t", 92: "\\\\"}.get(raw[0])
        if len(raw) == 1 and short:
            out.append(short)
        elif ch.isprintable() and not ch.isspace() or ch == " ":
            out.append(ch)
        else:
            out.append("".join("\\x%02x" % b for b in raw))
    text = "".join(out)
    if text[:1] == " ":
        text = "\\x20" + text[1:]
    if text[-1:] == " ":
        text = text[:-1] + "\\x20"
    return text


def strings():
    written = [unescape(line) for line in PLAIN]
    return written + mixed(max(0, 230 - len(written)), 1)

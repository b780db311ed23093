"""The prompts and texts of reference.py, written for it."""

HARBOUR = """\
The harbour at Ostvik had been dredged so often that nobody remembered how deep it was meant to be. \
Every spring the barge came up from the south, dropped its bucket into the grey water, and hauled out \
whatever the winter had left there: rope, broken crates, the ribs of a rowing boat, once a brass bell \
with no name on it. The children stood along the quay and argued about each new thing as if it were a \
verdict. Marta, who kept the ledger of the port, wrote all of it down.

She was the third of her family to do so. Her grandfather had begun with a school notebook and a pencil, \
because the harbour board would not pay for ink, and his first entry said only that the wind was from the \
north and that two ships were late. By the time her mother took over, the ledger had grown to eleven \
volumes, bound in canvas against the damp, and people came from the university to copy the tables of ice. \
Marta had no great opinion of the university. She noticed that its visitors always asked about the coldest \
years and never about the ordinary ones, although it was the ordinary ones, she thought, that told you \
what a place was like.

One evening in April a man she did not know came into the office and asked whether the bell was still \
there. He was old, with a seaman's careful way of setting down his feet, and he did not sit when she \
offered him the chair. His brother, he said, had sailed in the autumn of the year she was born, on a \
trawler that was seen from the lighthouse at dusk and never again. There had been a bell on that ship. It \
had been cast too thin and rang a little sharp, so that the crew used to say it was always in a hurry.

Marta took the lamp and led him down to the shed. The bell stood on a pallet between a coil of chain and a \
stack of fish boxes, green along one side where the mud had held it. She had never tried to ring it. The \
man put out his hand, then drew it back, and asked her to do it instead. So she lifted the clapper and let \
it fall. The note went up into the rafters and stayed there for longer than seemed possible, high and \
clear, and both of them listened until there was nothing left of it but the sound of the water outside.\
"""


def report(days):
    """A station's log: the same sentences again and again with other names, numbers and weather."""
    winds = ["north", "north-east", "east", "south", "south-west", "west"]
    ships = ["Alma", "Birgit", "Cormorant", "Dagny", "Esperanza", "Fulmar", "Gudrun"]
    cargo = ["salt", "timber", "barley", "coal", "machine parts", "dried fish"]
    skies = ["clear", "overcast", "hazy at first and clear by noon", "dark with rain",
             "bright, with a few high clouds"]
    notes = ["The tide gauge was read twice and both readings agreed.",
             "A window in the upper room was mended.",
             "The lamp oil is running low and more has been ordered.",
             "Two of the children from the village came to see the instruments.",
             "Nothing else was observed."]
    out = ["Log of the station at Ostvik, copied fair.\n"]
    for day in range(1, days + 1):
        a, b = ships[day * 3 % 7], ships[(day * 5 + 2) % 7]
        out.append(
            f"Day {day}. Wind from the {winds[day * 5 % 6]}, force {1 + day * 7 % 6}; the sky was "
            f"{skies[day * 2 % 5]}. The barometer stood at {990 + day * 13 % 37} and the water at "
            f"{4 + day * 3 % 9}.{day * 7 % 10} degrees. The {a} left at {5 + day % 4}:{day * 11 % 60:02d} "
            f"with {cargo[day % 6]} and the {b} came in before dark. {notes[day * 4 % 5]}\n")
    out.append("Summary: in all, the number of ships that")
    return "\n".join(out)


CHAT = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nWhy is the sky blue? Answer in two sentences.<|im_end|>\n"
        "<|im_start|>assistant\n")

PROMPTS = [
    ("plain", "The old clock in the station hall had stopped at ten past four, and"),
    ("code", "def gcd(a: int, b: int) -> int:\n    \"\"\"Greatest common divisor.\"\"\"\n"
             "    while b:\n        a, b = b, a % b\n    return a\n\n\ndef lcm("),
    ("spanish", "La primera vez que viajé a Sevilla, lo que más me sorprendió fue"),
    ("chinese", "从前有一座山，山上有一座庙，庙里有一个"),
    ("emoji", "Our trip in five emoji: 🚂🏔️👩‍👩‍👧🍕🇮🇹 means that we"),
    ("chat", CHAT),
    ("html", "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n  <meta charset=\"utf-8\">\n"
             "  <title>Opening hours</title>\n</head>\n<body>\n  <h1>Opening hours</h1>\n  <table>\n"
             "    <tr><th>Day</th><th>Open</th><th>Close</th></tr>\n    <tr><td>Monday</td>"),
    ("arithmetic", "12 + 30 = 42\n17 + 25 = 42\n8 * 7 = 56\n100 - 37 = 63\n9 * 9 ="),
    ("list", "Things to pack for a week in the mountains:\n\n1. A warm jacket\n2. Walking boots\n3."),
    ("german-french", "Der Zug nach Lyon hatte Verspätung, also sagte ich zu meiner Freundin: « Ne t'inquiète "
                      "pas, »"),
    ("json", "{\n  \"name\": \"frit\",\n  \"version\": \"0.1.0\",\n  \"licence\": \"MIT\",\n  \"keywords\": ["),
    ("long", report(23)),
]

TEXTS = [("harbour", HARBOUR), ("harbour and log", HARBOUR + "\n\n" + report(13))]

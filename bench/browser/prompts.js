// The texts that every engine is given. SmolLM2's template is written out, so that no engine's own differs.

export const DEMO = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n" +
  "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n";
/** Goes on for hundreds of tokens. */
export const STORY = "<|im_start|>user\nTell me a long story about a lighthouse keeper and the sea.<|im_end|>\n<|im_start|>assistant\n";
/** What is verified before the clock runs: prompts, and tokens of each answer. */
export const VERIFIED = [[DEMO, 24], [STORY, 40]];

/** About n tokens of plain text. Its beginning depends on `which`, so that no engine can reuse an earlier one's cache. */
export function longPrompt(n, which) {
  const words = ("the keeper of the old stone tower wrote down each ship that passed and how the wind had turned while " +
    "rain ran along the glass and birds slept under the stairs").split(" ");
  const at = (i) => words[(i * 7 + which * 3) % words.length];
  return `Log ${"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[which % 26]}:` + Array.from({ length: n - 3 }, (_, i) => ` ${at(i)}`).join("");
}

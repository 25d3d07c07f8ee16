// Commands that make something to see.

import { state } from "./state.js";

const RULES = "rules=$(printf 'Rule %d: answer in one short sentence. ' $(seq 40))";

function curl(path, headers, body) {
  const named = ["content-type: application/json", ...headers].map((header) => `-H '${header}'`).join(" ");
  return `curl ${location.origin}${path} ${named} -d '${body}'`;
}

/** `twice`: the second answer is a hit; `scene`, `named` and `marker` show what they are called after. */
export function sample(kind) {
  const model = state.visitor?.model ?? "";
  const key = state.visitor?.has_key ? ["authorization: Bearer hpk_…"] : [];
  const system = `{"role": "system", "content": "You know all about bridges. '"$rules"'"}`;
  const question = `{"role": "user", "content": "What is a bridge for?"}`;
  const chat = `{"model": "${model}", "max_tokens": 16, "messages": [${system}, ${question}]}`;
  const marked = `{"role": "system", "content": [{"type": "text", "text": "You know all about bridges. '"$rules $rules $rules"'", "cache_control": {"type": "ephemeral"}}]}`;
  const commands = {
    twice: `${RULES}\nfor n in 1 2; do\n  ${curl("/v1/chat/completions", key, chat)}\ndone`,
    scene: `${RULES}\n${curl("/v1/chat/completions", [...key, "x-hotprefix-session: bridges@1", "x-hotprefix-prompt: bridge-rules@1"], chat)}`,
    named: `${RULES}\n${curl("/v1/caches", key, `{"name": "bridges", "ttl": 3600, "messages": [${system}]}`)}`,
    marker: `${RULES}\n${curl("/v1/chat/completions", key, `{"model": "${model}", "max_tokens": 16, "messages": [${marked}, ${question}]}`)}`,
  };
  return commands[kind];
}

#!/usr/bin/env bash
# The same request twice: the second answer's usage says that the whole prompt was cached.
# Needs curl and a server: hotprefix serve. HOTPREFIX_URL names another one.
set -euo pipefail
url="${HOTPREFIX_URL:-http://127.0.0.1:8080}"
rules=$(printf 'Rule %d: answer in one short sentence. ' $(seq 40))
body='{
  "model": "smollm2-135m-instruct",
  "messages": [
    {"role": "system", "content": "You know all about bridges. '"$rules"'"},
    {"role": "user", "content": "What is a bridge for?"}
  ],
  "max_tokens": 32,
  "temperature": 0
}'
for _ in 1 2; do
    curl --silent --show-error --fail-with-body "$url/v1/chat/completions" \
        --header 'content-type: application/json' --data "$body" | grep --only-matching '"usage":.*}'
done

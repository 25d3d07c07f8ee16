"""The Responses API, as OpenAI has it at /v1 and as Model Studio has it at /compatible-mode/v1."""

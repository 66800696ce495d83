// Plays calls with the stock client of OpenAI for Node, and tells what it sees as `sessions.py` does for Python.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { library, url, model, steps } = JSON.parse(readFileSync(0, "utf8"));
const { default: OpenAI, APIError, APIConnectionError, APIConnectionTimeoutError, APIUserAbortError } = await import(
  pathToFileURL(library).href
);
const client = new OpenAI({ baseURL: url, apiKey: "secret-key", maxRetries: 0, timeout: 20000 });

async function played(asks, aborts) {
  let seen;
  try {
    if (!asks.stream) {
      seen = seenIn(await client.chat.completions.create(asks, { timeout: aborts ? 400 : 20000 }));
    } else {
      const stream = await client.chat.completions.create(asks);
      const chunks = [];
      for await (const chunk of stream) {
        if (aborts) return { aborted: true };
        chunks.push(chunk);
      }
      seen = seenOf(chunks);
    }
  } catch (error) {
    if (error instanceof APIConnectionTimeoutError || error instanceof APIUserAbortError) return { aborted: true };
    if (error instanceof APIError && error.status)
      return { error: error.status, message: error.message, type: error.type ?? null, code: error.code ?? null };
    return { broken: error instanceof APIError && !(error instanceof APIConnectionError) };
  }
  if (seen.calls.length && !asks.messages.at(-1).tool_call_id)
    return [seen, await played({ ...asks, messages: [...asks.messages, ...results(seen)] }, false)];
  return seen;
}

function results({ content, raw }) {
  const found = raw.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "found" }));
  return [{ role: "assistant", content: content || null, tool_calls: raw }, ...found];
}

function seenIn(answer) {
  const [{ message, finish_reason }] = answer.choices;
  return {
    id: answer.id.split("-")[0],
    object: answer.object,
    dated: answer.created > 0,
    model: answer.model,
    content: message.content || "",
    reasoning: message.reasoning_content || "",
    finish: finish_reason,
    usage: tokens(answer.usage),
    ...callsIn(message.tool_calls ?? []),
  };
}

function seenOf(chunks) {
  const choices = chunks.flatMap(({ choices }) => choices);
  const deltas = choices.map(({ delta }) => delta);
  const calls = [];
  for (const { index, function: part, ...rest } of deltas.flatMap((delta) => delta.tool_calls ?? [])) {
    calls[index] ??= { type: "function", function: { name: "", arguments: "" } };
    Object.assign(calls[index], rest);
    calls[index].function.name += part?.name ?? "";
    calls[index].function.arguments += part?.arguments ?? "";
  }
  const each = (key) => [...new Set(chunks.map((chunk) => chunk[key]))].sort();
  const texts = deltas.map(({ content }) => content).filter(Boolean);
  return {
    ids: each("id").length,
    object: each("object").join(""),
    dated: chunks.every(({ created }) => created > 0),
    model: each("model").join(""),
    role: deltas[0].role,
    fragments: texts.length > 1,
    content: texts.join(""),
    reasoning: deltas.map((delta) => delta.reasoning_content || "").join(""),
    finish: choices.map(({ finish_reason }) => finish_reason || "").join(""),
    ends: Boolean(choices.at(-1).finish_reason),
    usage: tokens(chunks.at(-1).usage),
    ...callsIn(calls),
  };
}

function tokens(usage) {
  return usage ? [usage.prompt_tokens, usage.completion_tokens, usage.total_tokens] : null;
}

function callsIn(raw) {
  const calls = raw.map(({ function: { name, arguments: given } }) => [name, JSON.parse(given)]);
  return { calls, distinct: new Set(raw.map(({ id }) => id)).size === raw.length, raw };
}

const told = [];
for (const { asks, aborts } of steps) told.push(await played({ model, ...asks }, aborts));
console.log(JSON.stringify(told));

// learnt: written by `learnt install opencode`; `learnt uninstall opencode` takes it out. Changes to it are lost.
// It hands what happens to `learnt hook`, and what that says to the model. Whatever goes wrong, opencode goes on.

import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"

const COMMAND = __COMMAND__
const TIMEOUT_MS = __TIMEOUT_MS__

export const Learnt = async ({ directory }) => {
  const started = new Set() // sessions that were greeted
  const compacted = new Set() // sessions whose beginning is gone
  const kept = new Map() // session → what it was told since then, and with which message
  const parents = new Map() // sub-agent's session → the session that started it
  const agents = new Map() // session → the agent's name
  const said = new Map() // session → all its words since the last stop
  const calls = new Map() // call → its arguments
  const untold = new Map() // session → what is to be said with its next result: a call that throws has none
  const given = new Map() // session → our texts in the messages for its model since the last stop: ids, or "notice"
  let missing = false

  const tell = (hook_event_name, sessionID, more = {}) => {
    if (missing || !sessionID) return {}
    const parent = parents.get(sessionID)
    const event = {
      hook_event_name,
      client: "opencode",
      session_id: parent ?? sessionID,
      ...(parent ? { agent_id: sessionID, agent_type: agents.get(sessionID) ?? "" } : {}),
      cwd: directory,
      ...more,
    }
    try {
      const done = Bun.spawnSync({
        cmd: COMMAND,
        cwd: directory,
        stdin: new TextEncoder().encode(JSON.stringify(event)),
        stdout: "pipe",
        stderr: "ignore",
        timeout: TIMEOUT_MS,
      })
      const answer = done.exitCode === 0 ? done.stdout.toString().trim() : ""
      return (answer && JSON.parse(answer).hookSpecificOutput) || {}
    } catch (error) {
      missing = error?.code === "ENOENT"
      return {}
    }
  }

  const transcript = (sessionID) => {
    const data = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share")
    const database = join(data, "opencode", "opencode.db")
    return existsSync(database) ? { transcript_path: `${database}#${sessionID}` } : {}
  }

  const stop = (sessionID) => {
    const texts = said.get(sessionID)
    if (!texts) return
    said.delete(sessionID)
    const last_assistant_message = texts.join("\n\n")
    const name = parents.has(sessionID) ? "SubagentStop" : "Stop"
    const sent = [...(given.get(sessionID) ?? [])]
    given.delete(sessionID)
    tell(name, sessionID, { last_assistant_message, given: sent, ...transcript(sessionID) })
  }

  // Within a turn nobody writes a message after a compaction, so that nothing could be told with it.
  const tellAgain = (messages) => {
    const last = messages.findLast((message) => message.info?.role === "user")
    const sessionID = last?.info?.sessionID
    if (compacted.delete(sessionID)) {
      started.add(sessionID)
      const text = tell("SessionStart", sessionID, { source: "compact" }).additionalContext
      kept.set(sessionID, { text, messageID: last.info.id })
    }
    const { text, messageID } = kept.get(sessionID) ?? {}
    const at = messages.findIndex((one) => one.info?.id === messageID)
    if (!text || at < 0) return
    const part = { id: `${messageID}learnt`, sessionID, messageID, type: "text", text, synthetic: true }
    messages[at] = { ...messages[at], parts: [...messages[at].parts, part] }
  }

  // What is said is stored where opencode neither prints it nor gives it to its own requests, such as the one for a
  // title: in a part that is ignored, and in the metadata of a call. The model's copy of the messages shows it.
  const reveal = (part) => {
    if (part.type === "text" && part.ignored && part.id?.endsWith("learnt")) return { ...part, ignored: false }
    const text = part.type === "tool" && part.state?.metadata?.learnt
    if (typeof text !== "string" || typeof part.state.output !== "string") return part
    return { ...part, state: { ...part.state, output: `${part.state.output}\n\n${text}` } }
  }

  // Other readers may hold the same messages, so those that change are replaced and not altered.
  const revealAll = (messages) => {
    messages.forEach((message, at) => {
      const parts = message.parts?.map(reveal) ?? []
      if (parts.some((part, number) => part !== message.parts[number])) messages[at] = { ...message, parts }
    })
  }

  // Only this proves that the model was given a text: that it is stored does not.
  const noteGiven = (messages) => {
    for (const { info, parts } of messages) {
      const ours = given.get(info?.sessionID) ?? new Set()
      for (const part of parts ?? []) {
        const texts = part.type === "tool" ? [part.state?.output, part.state?.error] : [part.text]
        const isSent = part.type === "tool" ? !part.state?.time?.compacted : info?.role === "user" && !part.ignored
        for (const text of isSent ? texts.filter((one) => typeof one === "string") : [])
          for (const [, id] of text.matchAll(/<learnt(?:-brief id="(\w+)"|>)/g)) ours.add(id ?? "notice")
      }
      if (ours.size) given.set(info.sessionID, ours)
    }
  }

  const keep = (sessionID, text) => {
    if (text) untold.set(sessionID, [...(untold.get(sessionID) ?? []), text])
  }

  const takeUntold = (sessionID) => {
    const texts = untold.get(sessionID) ?? []
    untold.delete(sessionID)
    return texts
  }

  // null: it was broken off, so that nobody knows.
  const hasFailed = (output) => {
    const exit = output?.metadata?.exit
    if (exit === null || /<\/(?:shell|bash)_metadata>\s*$/.test(output?.output ?? "")) return null
    return output?.isError === true || (typeof exit === "number" && exit !== 0)
  }

  const quietly = (serve) => async (input, output) => {
    try {
      serve(input, output)
    } catch {}
  }

  return {
    event: quietly(({ event }) => {
      const told = event?.properties ?? {}
      if (event?.type === "session.created" && told.info?.parentID) parents.set(told.info.id, told.info.parentID)
      if (event?.type === "session.idle") stop(told.sessionID)
      if (event?.type === "session.compacted" && started.delete(told.sessionID)) compacted.add(told.sessionID)
    }),

    "chat.message": quietly((input, output) => {
      const { sessionID } = input
      if (input.agent) agents.set(sessionID, input.agent)
      const parts = output.parts ?? []
      const typed = parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = typed.map((part) => part.text).join("\n")
      const texts = takeUntold(sessionID)
      if (!started.has(sessionID)) {
        started.add(sessionID)
        const name = parents.has(sessionID) ? "SubagentStart" : "SessionStart"
        const source = compacted.delete(sessionID) ? "compact" : "startup"
        texts.push(tell(name, sessionID, { source }).additionalContext)
      }
      texts.push(tell("UserPromptSubmit", sessionID, { prompt }).additionalContext)
      const text = texts.filter(Boolean).join("\n\n")
      const last = parts.at(-1)
      if (text && last) {
        // An id after the last one's, so that it keeps its place.
        const { messageID } = last
        parts.push({ id: `${last.id}learnt`, sessionID, messageID, type: "text", text, synthetic: true, ignored: true })
      }
    }),

    "experimental.chat.messages.transform": quietly((input, output) => {
      const messages = output?.messages ?? []
      tellAgain(messages)
      revealAll(messages)
      noteGiven(messages)
    }),

    "tool.execute.before": async (input, output) => {
      let refusal
      try {
        const tool = { tool_name: input.tool, tool_input: output.args ?? {} }
        const answer = tell("PreToolUse", input.sessionID, tool)
        if (answer.permissionDecision === "deny") refusal = answer.permissionDecisionReason || "refused by learnt"
        else {
          calls.set(input.callID, output.args ?? {})
          keep(input.sessionID, answer.additionalContext)
        }
      } catch {}
      if (refusal) throw new Error(refusal)
    },

    "tool.execute.after": quietly((input, output) => {
      const args = calls.get(input.callID) ?? input.args ?? {}
      calls.delete(input.callID)
      const failed = hasFailed(output)
      const content = Array.isArray(output?.content) ? output.content : undefined
      const answer = tell(failed ? "PostToolUseFailure" : "PostToolUse", input.sessionID, {
        tool_name: input.tool,
        tool_input: args,
        tool_response: content ? { content } : (output?.output ?? ""),
        tool_failed: failed,
      })
      keep(input.sessionID, answer.additionalContext)
      if (!content && typeof output?.output !== "string") return
      const text = takeUntold(input.sessionID).join("\n\n")
      if (text && content) content.push({ type: "text", text })
      else if (text) output.metadata = { ...output.metadata, learnt: text }
    }),

    "experimental.text.complete": quietly((input, output) => {
      if (output?.text) said.set(input.sessionID, [...(said.get(input.sessionID) ?? []), output.text])
    }),

    dispose: quietly(() => {
      for (const sessionID of [...said.keys()]) stop(sessionID)
      for (const sessionID of started) if (!parents.has(sessionID)) tell("SessionEnd", sessionID, { reason: "other" })
    }),
  }
}

// lukasa: memory for OpenCode. `lukasa install opencode` wrote this file, and `lukasa install opencode --undo` removes it.
import { spawn } from "node:child_process"
import { mkdir, writeFile } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"

const LUKASA = ["lukasa"]
const KEPT = join(process.env.XDG_STATE_HOME || join(homedir(), ".local", "state"), "lukasa", "opencode")

// Return what a hook prints. A hook that fails or is slow adds nothing: it must not disturb the session.
function hook(moment, event) {
  return new Promise((resolve) => {
    const [program, ...options] = LUKASA
    const child = spawn(program, [...options, "hook", moment, "--format", "text", "--agent", "opencode"], {
      stdio: ["pipe", "pipe", "ignore"],
      timeout: 30000,
    })
    let said = ""
    child.stdout.on("data", (data) => (said += data))
    child.on("error", () => resolve(""))
    child.on("close", () => resolve(said))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

const words = (parts) =>
  (parts || [])
    .filter((part) => part.type === "text" && part.text && !part.synthetic)
    .map((part) => part.text)
    .join("\n")

export const Lukasa = async ({ client, directory }) => {
  const started = new Map() // by session: what the start added
  const recalled = new Map() // by session: what the last prompt added
  const about = (session, more) => ({ session_id: session, cwd: directory, ...more })

  // Write the session to a file that the observer reads later, and note where it is.
  async function keep(session, moment, name) {
    const found = await client.session.messages({ path: { id: session } }).catch(() => undefined)
    const messages = (found?.data || []).map(({ info, parts }) => ({
      id: info.id,
      role: info.role,
      content: words(parts),
      created: (info.time?.created || 0) / 1000,
    }))
    if (!messages.length) return
    const file = join(KEPT, `${session}.json`)
    await mkdir(KEPT, { recursive: true, mode: 0o700 })
    await writeFile(file, JSON.stringify({ session_id: session, messages }), { mode: 0o600 })
    await hook(moment, about(session, { hook_event_name: name, transcript_path: file }))
  }

  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      if (!started.has(sessionID)) {
        started.set(sessionID, await hook("session-start", about(sessionID, { hook_event_name: "SessionStart" })))
      }
      const prompt = words(parts)
      if (prompt) recalled.set(sessionID, await hook("prompt", about(sessionID, { prompt })))
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const texts = [started.get(sessionID), recalled.get(sessionID)].filter(Boolean)
      output.system.push(...texts)
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      await keep(sessionID, "pre-compact", "PreCompact")
      started.delete(sessionID) // the next message gets it again
    },
    event: async ({ event }) => {
      const session = event.properties?.sessionID
      if (event.type === "session.idle" && session) await keep(session, "stop", "Stop")
      if (event.type === "session.deleted" && event.properties?.info?.id) {
        await hook("session-end", about(event.properties.info.id, { hook_event_name: "SessionEnd", reason: "deleted" }))
      }
    },
  }
}

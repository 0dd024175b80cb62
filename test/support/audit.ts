// What an API server saw: its audit log, read as data.

import { randomUUID } from "node:crypto";
import { closeSync, existsSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

const lineBytesMax = 1_000_000;
const settleMsMax = 10_000;

/** One line of the log: one stage of one request. */
export type AuditEntry = {
  /** Equal for the stages of one request: a watch has two, its start and its end. */
  readonly id: string;
  readonly user: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** The HTTP status; 0 if none was sent. */
  readonly code: number;
  readonly stage: string;
  readonly requestURI: string;
  readonly userAgent: string;
  /** When the stage was reached, as RFC 3339 with microseconds. */
  readonly at: string;
};

/** A place in the log. */
export type AuditMark = number;

/** Which requests to show: of one user, with one of the verbs, after a mark. */
export type AuditQuery = {
  readonly user: string;
  readonly verbs?: readonly string[];
  readonly since?: AuditMark;
};

/** Reads one server's audit log. Everything that was answered before a call is in what the call returns. */
export type AuditLog = {
  /** The end of the log. */
  readonly mark: () => Promise<AuditMark>;
  /** What came after a mark, in the order of the log. */
  readonly since: (mark: AuditMark) => Promise<readonly AuditEntry[]>;
  /** The requests that match, each once and as it first appears. */
  readonly requests: (query: AuditQuery) => Promise<readonly AuditEntry[]>;
};

/** The user agent of the requests by which we find out how far the log is; they are left out of every answer. */
export const auditProbeAgent = "causeway-audit-probe";

/** Reads a log file. `ask` sends the server a request whose path holds the probe; false if it does not answer. */
export function openAuditLog(path: string, ask: (probe: string) => Promise<boolean>): AuditLog {
  const since = async (mark: AuditMark) => {
    await settle(path, ask);
    return parseAudit(readFrom(path, mark)).filter(({ userAgent }) => userAgent !== auditProbeAgent);
  };
  return {
    since,
    mark: async () => {
      await settle(path, ask);
      return endOf(path);
    },
    requests: async ({ user, verbs, since: mark = 0 }) => {
      const seen = new Set<string>();
      return (await since(mark)).filter((entry) => {
        if (entry.user !== user || verbs?.includes(entry.verb) === false || seen.has(entry.id)) return false;
        seen.add(entry.id);
        return true;
      });
    },
  };
}

/** The entries of a piece of a log. */
export function parseAudit(text: string): readonly AuditEntry[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => asEntry(JSON.parse(line) as Event));
}

type Event = {
  readonly auditID: string;
  readonly stage: string;
  readonly stageTimestamp: string;
  readonly requestURI: string;
  readonly verb: string;
  readonly user: { readonly username?: string };
  readonly userAgent?: string;
  readonly objectRef?: Readonly<
    Partial<Record<"apiGroup" | "resource" | "subresource" | "namespace" | "name", string>>
  >;
  readonly responseStatus?: { readonly code?: number };
};

function asEntry(event: Event): AuditEntry {
  const { objectRef = {}, responseStatus = {} } = event;
  return {
    id: event.auditID,
    user: event.user.username ?? "",
    verb: event.verb,
    group: objectRef.apiGroup ?? "",
    resource: objectRef.resource ?? "",
    subresource: objectRef.subresource ?? "",
    namespace: objectRef.namespace ?? "",
    name: objectRef.name ?? "",
    code: responseStatus.code ?? 0,
    stage: event.stage,
    requestURI: event.requestURI,
    userAgent: event.userAgent ?? "",
    at: event.stageTimestamp,
  };
}

// The server may write the line about a request after it has answered it. So we ask it something and wait for the line
// about that. A server that hangs or is down writes nothing more, and is not waited for.
async function settle(path: string, ask: (probe: string) => Promise<boolean>): Promise<void> {
  const from = endOf(path);
  const probe = randomUUID();
  if (!(await ask(probe))) return;
  for (const began = performance.now(); !readFrom(path, from).includes(probe); await sleep(5)) {
    if (performance.now() - began > settleMsMax) throw new Error(`nothing is written to ${path}`);
  }
}

/** Where the last whole line ends. */
function endOf(path: string): AuditMark {
  const from = existsSync(path) ? Math.max(0, statSync(path).size - lineBytesMax) : 0;
  return from + Buffer.byteLength(readFrom(path, from));
}

/** The whole lines of a file from an offset on; the last line may be half written. */
function readFrom(path: string, offset: number): string {
  if (!existsSync(path)) return "";
  const file = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(Math.max(0, fstatSync(file).size - offset));
    const length = readSync(file, buffer, 0, buffer.length, offset);
    return buffer.toString("utf8", 0, buffer.lastIndexOf("\n", length - 1) + 1);
  } finally {
    closeSync(file);
  }
}

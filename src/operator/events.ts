import { shortHash } from "../core/naming.ts";
import type { Resource } from "../core/resource.ts";
import { apiVersionOf } from "../core/resource.ts";
import { shown } from "../core/shown.ts";
import type { KubeApi } from "../kube/api.ts";

/** What an event says. */
export type EventNote = {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly action: string;
  readonly note: string;
};

/** What events are about, and who sends them. */
export type EventContext = {
  readonly record: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string | undefined;
    readonly home: { readonly api: Pick<KubeApi, "create">; readonly resource: Resource };
  };
  readonly nowMs: number;
  readonly identity: string;
  readonly signal: AbortSignal;
};

const events: Resource = {
  group: "events.k8s.io",
  version: "v1",
  plural: "events",
  kind: "Event",
  namespaced: true,
};

/** The name the old operator reported under. */
const reportingController = "clustermesh-controller";
/** A server takes 1,024 bytes, and no event at all if there are more. */
const noteBytesMax = 1_024;

function noteOf(text: string): string {
  let note = shown(text);
  for (let chars = note.length; Buffer.byteLength(note) > noteBytesMax; chars -= 16) note = shown(text, chars);
  return note;
}

/** Sends events about an intent; one that is not accepted is lost, and that stops nothing. Answers how many were. */
export async function sendEvents(context: EventContext, notes: readonly EventNote[]): Promise<number> {
  const { record, nowMs, identity, signal } = context;
  const { api, resource } = record.home;
  let sent = 0;
  for (const [index, { type, reason, action, note }] of notes.entries()) {
    const name = `${record.name.slice(0, 200)}.${shortHash(`${record.uid} ${reason} ${note} ${nowMs} ${index}`)}`;
    const body = {
      apiVersion: apiVersionOf(events),
      kind: events.kind,
      metadata: { name, namespace: record.namespace },
      eventTime: new Date(nowMs).toISOString().replace("Z", "000Z"),
      reportingController,
      reportingInstance: identity.slice(0, 128),
      type,
      reason,
      action,
      note: noteOf(note),
      regarding: {
        apiVersion: apiVersionOf(resource),
        kind: resource.kind,
        name: record.name,
        namespace: record.namespace,
        uid: record.uid,
      },
    };
    const answer = await api.create(events, body, signal);
    if (answer.ok) sent += 1;
  }
  return sent;
}

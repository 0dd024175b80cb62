// The API server of a cluster as the model agent knows one: what it holds, every change, and patches of Nodes. Behind it
// is a real server.

import { fieldsOf, textOf } from "../core/json.ts";
import type { AgentServer } from "../sim/agent/agent.ts";
import { storages } from "../sim/storages.ts";
import type { Change } from "../sim/store.ts";
import { type ApiAccess, follow, informersRetry, type StoredObject } from "./api-stream.ts";
import { SyncSender } from "./sync-send.ts";

type Listener = (change: Change) => void;
type Held = { readonly path: string; readonly objects: Map<string, StoredObject>; readonly listeners: Set<Listener> };

/** A mirror of the Nodes and Peers of a real API server. */
export class ApiMirror {
  readonly server: AgentServer;
  readonly #access: ApiAccess;
  readonly #ending = new AbortController();
  readonly #held = new Map<string, Held>([
    [storages.nodes, { path: "/api/v1/nodes", objects: new Map(), listeners: new Set() }],
    [storages.peers, { path: "/apis/kilo.squat.ai/v1alpha1/peers", objects: new Map(), listeners: new Set() }],
  ]);
  #revision = 0;

  constructor(access: ApiAccess) {
    this.#access = access;
    const sender = new SyncSender(access);
    this.server = {
      objects: (storage) => [...(this.#held.get(storage)?.objects.values() ?? [])],
      listen: (storage, listener) => {
        const listeners = this.#held.get(storage)?.listeners;
        listeners?.add(listener);
        return () => void listeners?.delete(listener);
      },
      handle: ({ method, path, headers, body = "" }) => {
        const type = headers["content-type"] ?? "application/json";
        const status = sender.send({ method, path, body, type });
        return { status: status === 0 ? 503 : status };
      },
    };
  }

  /** Follows the server; answers when everything was listed once. `onRelist` hears when a watch had to begin again. */
  async open(onRelist: () => void): Promise<void> {
    await Promise.all(
      Array.from(this.#held.values(), (held) => {
        let isFirst = true;
        return new Promise<void>((resolve) => {
          const follower = {
            listed: (objects: readonly StoredObject[]) => {
              held.objects.clear();
              for (const object of objects) held.objects.set(object.metadata.name, object);
              if (!isFirst) onRelist();
              isFirst = false;
              resolve();
            },
            changed: (type: Change["type"], object: StoredObject) => this.#change(held, type, object),
          };
          void follow(this.#access, held.path, follower, this.#ending.signal, informersRetry);
        });
      }),
    );
  }

  /** Follows no more. */
  close(): void {
    this.#ending.abort();
  }

  #change({ objects, listeners }: Held, type: Change["type"], object: StoredObject): void {
    const key = textOf(fieldsOf(object["metadata"])["name"]) ?? "";
    const before = objects.get(key);
    if (type === "DELETED") objects.delete(key);
    else objects.set(key, object);
    this.#revision += 1;
    for (const listener of listeners) listener({ revision: this.#revision, key, type, before, after: object });
  }
}

// A kcp in memory: shards with workspaces, and the workspace of an APIExport that lists where it is served.

import { fieldsOf } from "../../core/json.ts";
import { endpointSlices } from "../../fleet/kcp.ts";
import type { Clock } from "../../kube/runtime.ts";
import type { SimReply, SimRequest } from "../answer.ts";
import type { Chance } from "../chance.ts";
import { boundDefinitions, exportDefinitions } from "../cilium/definitions.ts";
import { createSimServer, type SimServer } from "../server.ts";
import type { SimRule } from "../users.ts";
import { hiddenNamespace, placeOf, workspaceHandler } from "./workspaces.ts";

/** What a kcp is made of. */
export type KcpOptions = {
  readonly clock: Clock;
  readonly chance: Chance;
  readonly shards: readonly string[];
  readonly exportName: string;
  readonly operatorToken: string;
};

/** What the operator may do in a virtual workspace, and with the list of addresses. */
const operatorRules: readonly SimRule[] = [
  { verbs: ["get", "list", "watch", "patch", "update"], apiGroups: ["networking.edge-portal.eu"], resources: ["*"] },
  { verbs: ["get", "list", "watch"], apiGroups: ["platform.edge-portal.eu"], resources: ["*"] },
  { verbs: ["create", "patch"], apiGroups: ["events.k8s.io"], resources: ["events"] },
  { verbs: ["get", "list", "watch"], apiGroups: [endpointSlices.group], resources: [endpointSlices.plural] },
];

const adminToken = "kcp-admin";
const slicesPath = `/apis/${endpointSlices.group}/${endpointSlices.version}/${endpointSlices.plural}`;

/** A kcp. */
export class SimKcp {
  /** The workspace that holds the export. */
  readonly home: SimServer;
  readonly shards: ReadonlyMap<string, SimServer>;
  readonly #options: KcpOptions;
  readonly #shardOf = new Map<string, string>();
  readonly #namespaces = new Set<string>();

  constructor(options: KcpOptions) {
    const { clock, chance, shards, exportName, operatorToken } = options;
    this.#options = options;
    const users = {
      [adminToken]: { name: "admin", groups: ["system:masters"] },
      [operatorToken]: { name: "causeway", rules: operatorRules },
    };
    const make = (name: string, definitions: readonly object[]): SimServer =>
      createSimServer({ name, clock, random: chance.fork(`server/${name}`).random, definitions, users });
    this.home = make("kcp", exportDefinitions);
    this.shards = new Map(shards.map((name) => [name, make(name, boundDefinitions())]));
    const slice = { apiVersion: `${endpointSlices.group}/${endpointSlices.version}`, kind: endpointSlices.kind };
    this.#askHome("POST", slicesPath, { ...slice, metadata: { name: exportName }, spec: {} });
  }

  /** The names of bound workspaces. */
  get workspaces(): readonly string[] {
    return [...this.#shardOf.keys()];
  }

  shardOf(workspace: string): string | undefined {
    return this.#shardOf.get(workspace);
  }

  /** A workspace binds the export: the address of its shard is published if it was not. */
  bind(workspace: string, shard: string): void {
    this.#shardOf.set(workspace, shard);
    this.#publish();
  }

  /** The names of what a workspace holds of a kind. */
  namesOf(
    workspace: string,
    { group, plural }: { readonly group: string; readonly plural: string },
  ): readonly string[] {
    return this.#server(workspace)
      .objects(`${group}/${plural}`)
      .filter((object) => placeOf(object)?.workspace === workspace)
      .map(({ metadata }) => String(fieldsOf(metadata)["name"]));
  }

  /** The addresses of shards that have a bound workspace, less those that are away for good. */
  #publish(): void {
    const shards = [...new Set(this.#shardOf.values())].sort();
    const endpoints = shards.map((shard) => ({ url: this.urlOf(shard) }));
    this.#askHome("PATCH", `${slicesPath}/${this.#options.exportName}/status`, { status: { endpoints } });
  }

  /** Forgets a workspace without objects; the address of a shard without workspaces is no longer published. */
  forget(workspace: string): void {
    this.#shardOf.delete(workspace);
    this.#publish();
  }

  /** The address that is published for a shard. */
  urlOf(shard: string): string {
    return `https://${shard}.sim:6443/services/apiexport/providers/${this.#options.exportName}`;
  }

  /** The servers as the operator reaches them, by name. */
  servers(): ReadonlyMap<string, SimServer> {
    const served = [...this.shards].map(([name, server]): [string, SimServer] => {
      const handle = workspaceHandler(server, (workspace) => this.#shardOf.get(workspace) === name);
      return [name, { ...server, handle }];
    });
    return new Map([["kcp", this.home], ...served]);
  }

  /** Asks as somebody who may do everything in a workspace. */
  ask(workspace: string, method: string, path: string, body?: object): SimReply {
    const server = this.#server(workspace);
    const namespace = /\/namespaces\/([^/]+)/.exec(path)?.[1];
    if (namespace !== undefined) this.#ensure(server, hiddenNamespace(workspace, namespace));
    const handle = workspaceHandler(server, () => true);
    return asked(handle, method, `/clusters/${workspace}${path}`, body);
  }

  #ensure(server: SimServer, name: string): void {
    if (this.#namespaces.has(name)) return;
    this.#namespaces.add(name);
    asked(server.handle, "POST", "/api/v1/namespaces", { metadata: { name } });
  }

  #server(workspace: string): SimServer {
    const server = this.shards.get(this.#shardOf.get(workspace) ?? "");
    if (server === undefined) throw new Error(`no workspace ${workspace}`);
    return server;
  }

  #askHome(method: string, path: string, body: object): void {
    const { status } = asked(this.home.handle, method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status}`);
  }

  close(): void {
    this.home.endWatches();
    for (const server of this.shards.values()) server.endWatches();
  }
}

function asked(
  handle: (request: SimRequest) => ReturnType<SimServer["handle"]>,
  method: string,
  path: string,
  body?: object,
): SimReply {
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const headers = { authorization: `Bearer ${adminToken}`, "content-type": type };
  const answer = handle({ method, path, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  if (answer.kind === "reply") return answer;
  throw new Error(`${path} is a watch`);
}

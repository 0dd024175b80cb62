// How KVStoreMesh, or the agents, of a cluster follow the files that name remote clusters. What was measured of the real
// ones (Cilium 1.19) is in the constants: a file appears when the kubelet brings it, and is read once; of a connection
// that stands nobody looks at the certificates again; a remote that is gone is missed after two minutes.

import { parse } from "yaml";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import type { Clock } from "../../kube/runtime.ts";
import type { Chance } from "../chance.ts";

/** A file that names a remote cluster, read. */
export type RemoteConfig = {
  readonly endpoints: readonly string[];
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  /** Names that it resolves itself, from 1.20 on. */
  readonly aliases: ReadonlyMap<string, readonly string[]>;
};

/** Who is at the other end of a connection. */
export type Far = {
  /** Changes when it was restarted: connections have to be made anew. */
  readonly epoch: number;
  readonly isUp: boolean;
};

/** Tries to connect; the answer is who is there, or why nobody can be talked to. */
export type Attempt = (
  name: string,
  config: RemoteConfig,
  caPem: string,
  files: ReadonlyMap<string, string>,
) => { readonly far: () => Far } | { readonly why: string };

/** What following files needs. */
export type RemotesOptions = {
  readonly clock: Pick<Clock, "monotonicMs" | "after">;
  readonly chance: Chance;
  /** What Cilium calls this cluster: a file of that name is not looked at. */
  readonly ownName: string;
  /** The files as the kubelet would bring them now. */
  readonly read: () => ReadonlyMap<string, string>;
  readonly attempt: Attempt;
  /** Something that others look at has changed. */
  readonly onChange: () => void;
};

type Link = {
  text: string;
  config: RemoteConfig;
  caPem: string;
  loadedMs: number;
  far: (() => Far) | undefined;
  epoch: number;
  lostMs: number | undefined;
  why: string;
};

const kubeletMs = { least: 60_000, most: 90_000 };
const drainMs = 180_000;
const missedMs = 120_000;
const checkMs = 30_000;
const giveUpMs = 900_000;
const againMs = 20_000;

/** The remote clusters as one program of a cluster sees them. */
export class Remotes {
  readonly #options: RemotesOptions;
  #files: ReadonlyMap<string, string> = new Map();
  readonly #links = new Map<string, Link>();
  readonly #drains = new Map<string, number>();
  /** Every remote that there was: its series stay. */
  readonly #series = new Set<string>();
  readonly #timers = new Map<string, () => void>();

  constructor(options: RemotesOptions) {
    this.#options = options;
  }

  /** What is mounted has changed; the kubelet brings it when it looks again. */
  changed(): void {
    const { chance } = this.#options;
    if (!this.#timers.has("mount")) this.#in(chance.int(kubeletMs.least, kubeletMs.most), "mount", () => this.#mount());
  }

  /** The program starts anew: everything is read now. */
  restart(): void {
    this.#links.clear();
    this.#drains.clear();
    this.#mount();
  }

  /** Somebody else changed: connections are tried, or missed, a little later. */
  lookAgain(): void {
    if (!this.#timers.has("again") && this.#links.size > 0) this.#in(againMs, "again", () => this.#reconsider());
  }

  /** Whether a remote is connected, and in sync. */
  isReady(name: string): boolean {
    const link = this.#links.get(name);
    return link?.far !== undefined;
  }

  /** Whether what is known of a remote is still there. */
  hasCache(name: string): boolean {
    return this.isReady(name) || (this.#drains.get(name) ?? 0) > this.#options.clock.monotonicMs();
  }

  /** The remotes that are named, and why each is not ready. */
  get troubles(): ReadonlyMap<string, string> {
    return new Map([...this.#links].map(([name, link]) => [name, link.far === undefined ? link.why : ""]));
  }

  /** The page that Prometheus would read. */
  metrics(prefix: string): string {
    const lines = [`${prefix}_remote_clusters ${this.#links.size}`];
    for (const name of this.#series) {
      lines.push(
        `${prefix}_remote_cluster_readiness_status{target_cluster="${name}"} ${this.isReady(name) ? 1 : 0}`,
        `${prefix}_remote_cluster_failures{target_cluster="${name}"} 0`,
      );
    }
    return `${lines.join("\n")}\n`;
  }

  close(): void {
    for (const callOff of this.#timers.values()) callOff();
    this.#timers.clear();
  }

  #in(ms: number, name: string, run: () => void): void {
    this.#timers.get(name)?.();
    const callOff = this.#options.clock.after(ms, () => {
      this.#timers.delete(name);
      run();
    });
    this.#timers.set(name, callOff);
  }

  #mount(): void {
    const { clock, ownName } = this.#options;
    this.#files = this.#options.read();
    const nowMs = clock.monotonicMs();
    const named = [...this.#files].filter(([name, text]) => name !== ownName && text.includes("endpoints:"));
    for (const [name, link] of this.#links) {
      if (named.some(([other]) => other === name)) continue;
      this.#links.delete(name);
      if (link.far !== undefined) this.#drain(name, nowMs + drainMs);
    }
    for (const [name, text] of named) this.#follow(name, text);
    this.#reconsider();
  }

  #drain(name: string, untilMs: number): void {
    this.#drains.set(name, untilMs);
    // Whoever comes back meanwhile has to wait until everything is gone.
    this.#in(drainMs + 1, `drain ${name}`, () => {
      this.#drains.delete(name);
      this.#mount();
    });
  }

  #follow(name: string, text: string): void {
    const link = this.#links.get(name);
    if (link?.text === text || this.#drains.has(name)) return;
    const config = readConfig(text);
    this.#series.add(name);
    const fresh: Link = {
      text,
      config,
      caPem: this.#files.get(config.caFile) ?? "",
      loadedMs: this.#options.clock.monotonicMs(),
      far: undefined,
      epoch: 0,
      lostMs: undefined,
      why: "not tried",
    };
    this.#links.set(name, fresh);
    this.#in(giveUpMs + 1, `give up ${name}`, () => this.#giveUp(name));
  }

  /** Whoever has not connected for a quarter of an hour reads the file of the authority again. */
  #giveUp(name: string): void {
    const link = this.#links.get(name);
    if (link === undefined || link.far !== undefined) return;
    link.caPem = this.#files.get(link.config.caFile) ?? "";
    this.#in(giveUpMs, `give up ${name}`, () => this.#giveUp(name));
    this.#reconsider();
  }

  #reconsider(): void {
    let isNews = false;
    for (const [name, link] of this.#links) isNews = this.#look(name, link) || isNews;
    if (isNews) this.#options.onChange();
  }

  /** Whether something is different from before. */
  #look(name: string, link: Link): boolean {
    const far = link.far?.();
    const isIntact = far !== undefined && far.isUp && far.epoch === link.epoch;
    if (isIntact) {
      link.lostMs = undefined;
      return false;
    }
    const { clock, attempt } = this.#options;
    const tried = attempt(name, link.config, link.caPem, this.#files);
    if ("far" in tried) {
      const wasReady = link.far !== undefined;
      link.far = tried.far;
      link.epoch = tried.far().epoch;
      link.lostMs = undefined;
      return !wasReady;
    }
    link.why = tried.why;
    if (link.far === undefined) return false;
    const nowMs = clock.monotonicMs();
    link.lostMs ??= nowMs;
    if (nowMs - link.lostMs < missedMs) {
      this.#in(checkMs, `miss ${name}`, () => this.#reconsider());
      return false;
    }
    link.far = undefined;
    this.#in(giveUpMs, `give up ${name}`, () => this.#giveUp(name));
    return true;
  }
}

const fileName = (path: unknown): string => (textOf(path) ?? "").replace(/^.*\//, "");

function readConfig(text: string): RemoteConfig {
  let raw: unknown;
  try {
    raw = parse(text);
  } catch {
    raw = {}; // not YAML: a file that leads nowhere
  }
  const fields = fieldsOf(raw);
  const aliases = listOf(fields["cilium-host-aliases"]).map((each) => {
    const { hostname, ips } = fieldsOf(each);
    return [textOf(hostname) ?? "", listOf(ips).flatMap((ip) => textOf(ip) ?? [])] as const;
  });
  return {
    endpoints: listOf(fields["endpoints"]).flatMap((each) => textOf(each) ?? []),
    caFile: fileName(fields["trusted-ca-file"]),
    certFile: fileName(fields["cert-file"]),
    keyFile: fileName(fields["key-file"]),
    aliases: new Map(aliases),
  };
}

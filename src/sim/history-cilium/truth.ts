// What should be, worked out from what tenants' workspaces really hold, without a line of the planner: which clusters are
// to be connected with which, which Services shared, which intents carried out, and since when.

import { ciliumKinds } from "../../api/cilium-kinds.ts";
import { fieldsOf, listOf, textOf } from "../../core/json.ts";
import type { Clock } from "../../kube/runtime.ts";
import type { CiliumBox } from "../cilium/box.ts";
import { placeOf } from "../kcp/workspaces.ts";
import type { Fields } from "../value.ts";

/** Something that a tenant wants, and that is not being deleted. */
export type Wish = {
  /** `<kind>/<workspace>/<namespace>/<name>`. */
  readonly id: string;
  readonly workspace: string;
  readonly name: string;
  readonly spec: Fields;
  readonly isSuspended: boolean;
  /** The clusters of its mesh that are the tenant's own. */
  readonly members: readonly string[];
};

const storageOf = (plural: string): string => `${ciliumKinds.clusterMeshBinding.group}/${plural}`;

/** Where the kinds of tenants are kept. */
export const wishStorages = {
  bindings: storageOf(ciliumKinds.clusterMeshBinding.plural),
  services: storageOf(ciliumKinds.globalService.plural),
  intents: storageOf(ciliumKinds.connectivityIntent.plural),
  exposures: storageOf(ciliumKinds.exposedService.plural),
} as const;

/** The truth about a fleet, kept up to date as workspaces change. */
export class CiliumTruth {
  readonly #box: CiliumBox;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #stop: readonly (() => void)[];
  readonly #since = new Map<string, number>();
  readonly #until = new Map<string, number>();
  /** Every form that an intent has had, and when the next one came. */
  readonly #forms = new Map<string, { readonly wish: Wish; untilMs: number }[]>();
  bindings: readonly Wish[] = [];
  services: readonly Wish[] = [];
  intents: readonly Wish[] = [];
  exposures: readonly Wish[] = [];

  constructor(box: CiliumBox, clock: Pick<Clock, "monotonicMs">) {
    this.#box = box;
    this.#clock = clock;
    this.#stop = [...box.kcp.shards.values()].flatMap((server) =>
      Object.values(wishStorages).map((storage) =>
        server.listen(storage, ({ type, before, after }) => {
          if (type !== "MODIFIED" || before === undefined || meaning(before) !== meaning(after)) this.#refresh();
        }),
      ),
    );
    this.#refresh();
  }

  close(): void {
    for (const stop of this.#stop) stop();
  }

  /** For how long something has been wanted without a break; nothing, if it is not. */
  wantedForMs(what: string): number | undefined {
    const since = this.#since.get(what);
    return since === undefined ? undefined : this.#clock.monotonicMs() - since;
  }

  /** Whether something is wanted, or was a moment ago. */
  wasWanted(what: string, withinMs: number): boolean {
    const until = this.#until.get(what);
    return this.#since.has(what) || (until !== undefined && this.#clock.monotonicMs() - until <= withinMs);
  }

  /** Every form of an intent that somebody may still believe in. */
  formsOf(id: string, withinMs: number): readonly Wish[] {
    const nowMs = this.#clock.monotonicMs();
    return (this.#forms.get(id) ?? []).filter(({ untilMs }) => nowMs - untilMs <= withinMs).map(({ wish }) => wish);
  }

  /** The clusters that are to be connected with a cluster. */
  peersOf(cluster: string): readonly string[] {
    const all = this.bindings.filter(({ members }) => members.includes(cluster)).flatMap(({ members }) => members);
    return [...new Set(all)].filter((name) => name !== cluster);
  }

  #refresh(): void {
    this.bindings = this.#read(wishStorages.bindings, "ClusterMeshBinding", ({ spec }) =>
      listOf(spec["clusterRefs"]).map((ref) => textOf(fieldsOf(ref)["name"]) ?? ""),
    );
    const ofMesh = ({ spec, workspace }: Pick<Wish, "spec" | "workspace">): readonly string[] => {
      const mesh = textOf(fieldsOf(spec["meshRef"])["name"]);
      return this.bindings.find((each) => each.workspace === workspace && each.name === mesh)?.members ?? [];
    };
    this.services = this.#read(wishStorages.services, "GlobalService", ofMesh);
    this.intents = this.#read(wishStorages.intents, "ConnectivityIntent", ofMesh);
    this.exposures = this.#read(wishStorages.exposures, "ExposedService", ofMesh);
    this.#note();
  }

  #read(
    storage: string,
    kind: string,
    clusters: (wish: Pick<Wish, "spec" | "workspace">) => readonly string[],
  ): readonly Wish[] {
    return [...this.#box.kcp.shards.values()].flatMap((server) =>
      server.objects(storage).flatMap((object): Wish[] => {
        const place = placeOf(object);
        const { name, deletionTimestamp } = fieldsOf(object["metadata"]);
        if (place === undefined || deletionTimestamp !== undefined || typeof name !== "string") return [];
        const spec = fieldsOf(object["spec"]);
        const { workspace, namespace } = place;
        const own = clusters({ spec, workspace }).filter((cluster) => this.#box.ownerOf(cluster) === workspace);
        const members = [...new Set(own)];
        const id = `${kind}/${workspace}/${namespace}/${name}`;
        return [{ id, workspace, name, spec, isSuspended: spec["suspend"] === true, members }];
      }),
    );
  }

  /** Everything that is wanted now, by what it is called. */
  *#wanted(): Generator<string> {
    for (const { members } of this.bindings) {
      for (const one of members) {
        yield `cluster ${one}`;
        for (const other of members) if (one !== other) yield `link ${one} ${other}`;
      }
    }
    for (const { members, spec, id } of this.services) {
      const { namespace, name } = fieldsOf(spec["selector"]);
      for (const cluster of members) {
        yield `service ${cluster} ${String(namespace)}/${String(name)}`;
        yield `wish ${cluster} ${id}`;
      }
    }
    for (const { members, spec, id } of this.exposures) {
      const { namespace, name } = fieldsOf(spec["serviceRef"]);
      for (const cluster of members) {
        yield `wish ${cluster} ${id}`;
        if (spec["global"] !== false) yield `service ${cluster} ${String(namespace)}/${String(name)}`;
      }
    }
    for (const { members, id } of this.intents) for (const cluster of members) yield `wish ${cluster} ${id}`;
  }

  #note(): void {
    const nowMs = this.#clock.monotonicMs();
    const now = new Set(this.#wanted());
    for (const what of now) if (!this.#since.has(what)) this.#since.set(what, nowMs);
    for (const what of Array.from(this.#since.keys())) {
      if (now.has(what)) continue;
      this.#since.delete(what);
      this.#until.set(what, nowMs);
    }
    const known = new Map(this.intents.map((wish) => [wish.id, wish]));
    for (const [id, wish] of known) {
      const forms = this.#forms.get(id) ?? [];
      this.#forms.set(id, forms);
      const last = forms.at(-1);
      if (last !== undefined && last.untilMs === Number.POSITIVE_INFINITY) {
        if (JSON.stringify(last.wish) === JSON.stringify(wish)) continue;
        last.untilMs = nowMs;
      }
      forms.push({ wish, untilMs: Number.POSITIVE_INFINITY });
    }
    for (const [id, forms] of this.#forms) {
      const last = forms.at(-1);
      if (!known.has(id) && last?.untilMs === Number.POSITIVE_INFINITY) last.untilMs = nowMs;
    }
  }
}

function meaning(object: Fields): string {
  const { deletionTimestamp } = fieldsOf(object["metadata"]);
  return `${String(deletionTimestamp)}${JSON.stringify(object["spec"])}`;
}

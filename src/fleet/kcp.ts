// Intents from kcp: whoever binds our APIExport shows its objects in a virtual workspace, one per shard, whose addresses
// an APIExportEndpointSlice lists.
//
//   the slice says …              intents are …
//   nothing yet                   absent
//   no address                    none: nobody has bound the export yet
//   an address                    those that a wildcard watch there shows, of all workspaces at once
//   an address that fails         stale: what is known stays; no cluster is connected to anew until it was listed once
//   an address no longer          kept until that watch shows none: an object that carries our finalizer cannot be gone

import { fieldsOf, listOf, textOf } from "../core/json.ts";
import type { Resource } from "../core/resource.ts";
import { trimEnd } from "../core/trim.ts";
import type { Failure, Observed } from "../core/world.ts";
import type { KubeApi } from "../kube/api.ts";
import { asWorldFailure } from "../kube/failure.ts";
import type { HttpServer } from "../kube/http.ts";
import { startInformer } from "../kube/informer.ts";
import { type IntentRecord, type IntentSource, type IntentSourceOptions, startIntentFeed } from "./intent-feed.ts";

/** What reading intents from kcp needs. */
export type KcpOptions = {
  /** The workspace that holds the APIExport. */
  readonly workspace: KubeApi;
  readonly exportName: string;
  /** Another way to the addresses that kcp publishes: scheme, host and port are taken from here. */
  readonly externalUrl: string | undefined;
  /** The server at an address of the slice. */
  readonly connect: (url: string) => HttpServer;
};

/** The list of addresses under which an export is served. */
export const endpointSlices: Resource = {
  group: "apis.kcp.io",
  version: "v1alpha1",
  plural: "apiexportendpointslices",
  kind: "APIExportEndpointSlice",
  namespaced: false,
};

const workspaceAnnotation = "kcp.io/cluster";
const addressesMax = 256;
const urlCharsMax = 2_048;

type Feed<Intent> = {
  readonly source: IntentSource<Intent>;
  readonly server: HttpServer;
  readonly stop: AbortController;
};

/** Watches the objects of every workspace that binds an export. */
export function kcpIntents<Intent>(kcp: KcpOptions): (options: IntentSourceOptions<Intent>) => IntentSource<Intent> {
  return (options) => {
    const { runtime, signal } = options;
    const feeds = new Map<string, Feed<Intent>>();
    const ending = new Set<Promise<unknown>>();
    const slice = startInformer<readonly string[]>({
      api: kcp.workspace,
      resource: endpointSlices,
      scope: { fieldSelector: `metadata.name=${kcp.exportName}` },
      read: (raw) => addressesOf(raw, kcp.externalUrl),
      same: (a, b) => a.join(" ") === b.join(" "),
      onChange: () => {
        follow();
        options.onChange("world");
      },
      runtime,
      signal,
    });
    const published = (): readonly string[] | undefined => {
      const view = slice.view();
      return view.state === "syncing" ? undefined : view.objects.get(kcp.exportName)?.fact;
    };

    const open = (url: string): Feed<Intent> => {
      const server = kcp.connect(url);
      const stop = new AbortController();
      const apis = new Map<string, KubeApi>();
      const api = (workspace: string): KubeApi => {
        const known = apis.get(workspace) ?? server.at(["clusters", workspace]);
        apis.set(workspace, known);
        return known;
      };
      const source = startIntentFeed({
        ...options,
        api: server.at(["clusters", "*"]),
        workspaces: { of: workspaceOf, api },
        onChange: (origin) => {
          follow();
          options.onChange(origin);
        },
        signal: stop.signal,
      });
      runtime.log.info("virtual workspace opened", { url });
      return { source, server, stop };
    };

    const close = (url: string, { source, server, stop }: Feed<Intent>): void => {
      feeds.delete(url);
      stop.abort();
      runtime.log.info("virtual workspace closed", { url });
      const end = source.done.then(server.close).finally(() => ending.delete(end));
      ending.add(end);
    };

    /** Opens what is published and closes what is not, once it holds nothing that we would have to let go of. */
    const follow = (): void => {
      const wanted = published();
      if (wanted === undefined || signal.aborted) return;
      for (const url of wanted) if (!feeds.has(url)) feeds.set(url, open(url));
      for (const [url, feed] of feeds) {
        if (!wanted.includes(url) && ![...feed.source.records().values()].some(isHeld)) close(url, feed);
      }
    };

    let known: { readonly of: readonly unknown[]; readonly records: ReadonlyMap<string, IntentRecord<Intent>> };
    known = { of: [], records: new Map() };
    const ended = new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
    return {
      records: () => {
        const parts = [...feeds.values()].map(({ source }) => source.records());
        if (parts.length !== known.of.length || parts.some((part, index) => part !== known.of[index])) {
          known = { of: parts, records: new Map(parts.flatMap((part) => [...part])) };
        }
        return known.records;
      },
      observed: () => together(sliceFailure(slice.view(), kcp.exportName), [...feeds.values()]),
      isComplete: () =>
        sliceFailure(slice.view(), kcp.exportName).state !== "absent" &&
        [...feeds.values()].every(({ source }) => source.isComplete()),
      done: ended.then(async () => {
        for (const [url, feed] of feeds) close(url, feed);
        await Promise.all([slice.done, ...ending]);
      }),
    };
  };
}

/** Whether an object could not be gone without our letting it go: only what is looked at carries no finalizer. */
const isHeld = ({ home, finalizers }: IntentRecord<unknown>): boolean => !home.passive && finalizers.length > 0;

type SliceView = ReturnType<ReturnType<typeof startInformer<readonly string[]>>["view"]>;
type SliceState = { readonly state: "synced" } | { readonly state: "stale" | "absent"; readonly because: Failure };

function sliceFailure(view: SliceView, name: string): SliceState {
  switch (view.state) {
    case "syncing": {
      const detail = "the addresses of the virtual workspaces have not been listed";
      const because: Failure =
        view.failure === undefined ? { kind: "unreachable", detail } : asWorldFailure(view.failure);
      return { state: "absent", because };
    }
    case "stale":
      return { state: "stale", because: asWorldFailure(view.failure) };
    case "synced":
      if (view.objects.has(name)) return { state: "synced" };
      return {
        state: "absent",
        because: {
          kind: "missing",
          detail: `there is no APIExportEndpointSlice ${name}: does the kubeconfig lead to the workspace that holds the APIExport?`,
        },
      };
  }
}

/** All shards as one: nothing may be missed, so the least sure of them counts. */
function together<Intent>(slice: SliceState, feeds: readonly Feed<Intent>[]): Observed<readonly Intent[]> {
  if (slice.state === "absent") return { state: "absent", because: slice.because };
  const value: Intent[] = [];
  let stale: Failure | undefined = slice.state === "stale" ? slice.because : undefined;
  for (const { source } of feeds) {
    const observed = source.observed();
    if (observed.state !== "synced") stale ??= observed.because;
    if (observed.state !== "absent") for (const intent of observed.value) value.push(intent);
  }
  return stale === undefined ? { state: "synced", value } : { state: "stale", because: stale, value };
}

const workspaceOf = (raw: unknown): string | undefined =>
  textOf(fieldsOf(fieldsOf(fieldsOf(raw)["metadata"])["annotations"])[workspaceAnnotation]);

/** The addresses of a slice, with another host where one is given; what is no address is left out. */
export function addressesOf(raw: unknown, externalUrl: string | undefined): readonly string[] {
  const urls = listOf(fieldsOf(fieldsOf(raw)["status"])["endpoints"]).flatMap((each) => {
    const url = urlOf(textOf(fieldsOf(each)["url"]));
    if (url === undefined) return [];
    const outside = urlOf(externalUrl);
    const origin = outside === undefined ? url.origin : outside.origin;
    return [`${origin}${trimEnd(url.pathname, "/")}`];
  });
  return [...new Set(urls)].sort().slice(0, addressesMax);
}

function urlOf(text: string | undefined): URL | undefined {
  if (text === undefined || text.length > urlCharsMax || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  return url.protocol === "https:" ? url : undefined;
}

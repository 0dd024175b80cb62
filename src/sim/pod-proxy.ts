import { noSuchResource, notFound, Refusal, type SimReply } from "./answer.ts";
import type { ResourceRoute, Route } from "./route.ts";
import type { Store } from "./store.ts";

/** A question that an API server passes on to a pod. */
export type PodQuestion = {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
  /** Begins with a slash. */
  readonly path: string;
};

/** What a pod answers; nothing, if nobody listens there. */
export type PodProxy = (question: PodQuestion) => SimReply | undefined;

/** Whether a request is one that the server passes on. */
export const isProxied = ({ group, plural, subresource, verb }: ResourceRoute): boolean =>
  group === "" && plural === "pods" && subresource === "proxy" && verb === "get";

/** The answer of a pod, or what the server says in its place. */
export function proxied(store: Store, { path, resource }: Route, ask: PodProxy | undefined): SimReply {
  const { namespace = "", name = "" } = resource ?? {};
  const [pod = "", port = ""] = name.split(":");
  if (namespace === "") throw noSuchResource();
  if (store.get("/pods", `${namespace}/${pod}`) === undefined) {
    throw notFound({ group: "", plural: "pods", kind: "Pod" }, pod);
  }
  const rest = path.slice(path.indexOf("/proxy") + "/proxy".length);
  const answer = ask?.({ namespace, pod, port: Number(port), path: rest === "" ? "/" : rest });
  if (answer !== undefined) return answer;
  throw new Refusal(503, {
    message: "error trying to reach service: connection refused",
    reason: "ServiceUnavailable",
  });
}

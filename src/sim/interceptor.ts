// The production client on a simulated server: its requests are answered here instead of being sent, so paging,
// repetition, line splitting and what failures mean are the code that runs in production.

import type { ClusterAccess } from "../kube/access.ts";
import { hostOf } from "../kube/access.ts";
import type { HttpAnswer, HttpRequest, Interceptor } from "../kube/interceptor.ts";
import type { SimAnswer, SimWatch } from "./answer.ts";
import { replyText } from "./reply-text.ts";
import type { SimServer } from "./server.ts";

/** Whom the client says it is; the client's own station for that comes after this one, and never runs. */
export type SimAccess = {
  /** The token as it is when a request is made. */
  readonly token: () => string | undefined | Promise<string | undefined>;
};

/** The last station of every request: it answers, and sends nothing on. */
export function simInterceptor(server: SimServer, { token }: SimAccess): Interceptor {
  return async (request) => {
    request.signal.throwIfAborted();
    const bearer = await token();
    const authorization = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
    const { method, path, headers, body } = request;
    const answer = server.handle({
      method,
      path,
      headers: { ...headers, ...authorization },
      ...(body === undefined ? {} : { body }),
    });
    // A real answer is never there before the caller waits for it.
    await Promise.resolve();
    request.signal.throwIfAborted();
    return answer.kind === "watch" ? streamed(answer.watch, request, answer) : whole(answer);
  };
}

/**
 * The same for one access of many: its server by host and port, its token as it is. A host that leads nowhere is a name
 * that does not resolve.
 */
export function simAccess(access: ClusterAccess, servers: ReadonlyMap<string, SimServer>): Interceptor {
  const host = hostOf(access);
  const server = servers.get(host);
  if (server === undefined) {
    const failure = { kind: "unreachable", detail: `no such host: ${host}` } as const;
    return async () => ({ kind: "lost", failure, repeat: "always" });
  }
  const { token, tokenProvider } = access;
  return simInterceptor(server, {
    token: async () => (tokenProvider === undefined ? token : await tokenProvider())?.expose(),
  });
}

const whole = (answer: Extract<SimAnswer, { kind: "reply" }>): HttpAnswer => ({
  kind: "response",
  status: answer.status,
  headers: { ...answer.headers },
  body: Buffer.from(replyText(answer)),
});

/** Hands on one line after the other, never from within a request of somebody else. */
function streamed(
  watch: SimWatch,
  { onChunk, signal }: HttpRequest,
  { status, headers }: SimAnswer,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const queue: string[] = [];
    let isOver = false;
    let isDraining = false;
    let hasEnded = false;
    const settle = (run: () => void): void => {
      if (isOver) return;
      isOver = true;
      signal.removeEventListener("abort", abort);
      watch.cancel();
      run();
    };
    const abort = (): void => settle(() => reject(signal.reason));
    const drain = (): void => {
      isDraining = false;
      if (!isOver && queue.length > 0) {
        const chunk = Buffer.from(`${queue.splice(0).join("\n")}\n`);
        try {
          const failure = onChunk?.(chunk);
          if (failure !== undefined) settle(() => resolve({ kind: "lost", failure, repeat: "never" }));
        } catch (error) {
          settle(() => reject(error));
        }
      }
      if (hasEnded && queue.length === 0) {
        settle(() => resolve({ kind: "response", status, headers: { ...headers }, body: Buffer.alloc(0) }));
      }
    };
    const soon = (): void => {
      if (isDraining) return;
      isDraining = true;
      void Promise.resolve().then(drain);
    };
    signal.addEventListener("abort", abort, { once: true });
    watch.subscribe(
      (line) => {
        queue.push(line);
        soon();
      },
      () => {
        hasEnded = true;
        soon();
      },
    );
  });
}

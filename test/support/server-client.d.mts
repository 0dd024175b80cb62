/** An answer: the parsed JSON, or the text if it was none. */
export type Answer<Body> = { readonly status: number; readonly body: Body };

/** Speaks to one API server with one token. */
export type ServerClient = {
  /** Sends one request. A body that is a text goes out as it is. `Body` is taken on trust: this is for tests. */
  readonly request: <Body = unknown>(
    method: string,
    path: string,
    body?: unknown,
    contentType?: string,
  ) => Promise<Answer<Body>>;
  /** Creates an object in a collection, unless there is one of that name; any other refusal is thrown. */
  readonly ensure: (path: string, object: object) => Promise<void>;
  /** Breaks every connection. */
  readonly close: () => Promise<void>;
};

/** A client that speaks to one server with one token; an answer may take 30 s. */
export function createClient(
  server: { readonly url: string; readonly caPem: string },
  token: string,
  options?: { readonly connections?: number; readonly userAgent?: string },
): ServerClient;

import type { ClusterAccess } from "./access.ts";
import type { Interceptor } from "./interceptor.ts";

/** The token of one access: it goes into every request, and out of every text. */
export type Credential = {
  /** Puts the token as it is now into the request's headers. */
  readonly authenticated: Interceptor;
  /** Takes the token out of text that a server sent: some echo it. */
  readonly conceal: (text: string) => string;
};

/** A token replaced while a request is on its way may still be echoed. */
const tokensKept = 2;

/** What proves who we are with every request; a client certificate proves it with every connection instead. */
export function credentialOf({ token, tokenProvider }: ClusterAccess): Credential {
  let used: readonly string[] = [];

  async function current(): Promise<string | undefined> {
    const text = (tokenProvider === undefined ? token : await tokenProvider())?.expose();
    if (text !== undefined && !used.includes(text)) used = [text, ...used].slice(0, tokensKept);
    return text;
  }

  return {
    authenticated: async (request, next) => {
      const text = await current();
      if (text === undefined) return next(request);
      return next({ ...request, headers: { ...request.headers, authorization: `Bearer ${text}` } });
    },
    conceal: (text) => used.reduce((safe, secret) => safe.replaceAll(secret, "[redacted]"), text),
  };
}

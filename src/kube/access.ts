import { type Address, parseAddress } from "../core/net/address.ts";
import type { Redacted } from "../core/redacted.ts";

/** Where an API server is and who we are to it: all that a connection needs. */
export type ClusterAccess = {
  /** Origin and path prefix, normalised, without a slash at its end: `https://10.0.0.1:6443`. */
  readonly server: string;
  /** Who may sign the server's certificate; without it, whom the machine trusts. */
  readonly caPem?: string;
  /** The name that the server's certificate must carry, when it is not the host of `server`. */
  readonly serverName?: string;
  readonly token?: Redacted<string>;
  /** The token as it is now, for tokens that rotate; it goes before `token`, and never rejects. */
  readonly tokenProvider?: () => Promise<Redacted<string>>;
  readonly clientCertificate?: { readonly certPem: string; readonly keyPem: Redacted<string> };
  /** Only ever set by the operator's own kubeconfig. */
  readonly skipTlsVerify?: true;
  /** The namespace that the context names. */
  readonly namespace?: string;
  /** The same text for the same server and the same identity; it says nothing about the secrets in it. */
  readonly fingerprint: string;
  /** What a person should know although the access works. */
  readonly notes: readonly string[];
};

/** Host and port for messages, no credentials and no path. */
export function hostOf({ server }: ClusterAccess): string {
  const { hostname, port, protocol } = new URL(server);
  return `${hostname}:${port === "" ? (protocol === "http:" ? "80" : "443") : port}`;
}

/** The address in the URL of a server, if it is reached by one. */
export function serverAddress(server: string): Address | undefined {
  const { hostname } = new URL(server);
  const address = parseAddress(hostname.startsWith("[") ? hostname.slice(1, -1) : hostname);
  return address.ok ? address.value : undefined;
}

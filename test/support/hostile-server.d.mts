/** A way of doing harm. */
export type HostileMode = "fat" | "facts" | "inflate" | "dense" | "deep" | "biglines" | "many" | "longname";

/** Every way there is, with what it does. */
export const hostileModes: Readonly<Record<HostileMode, string>>;

/** A server that means harm. */
export type HostileServer = {
  readonly url: string;
  /** How many requests there have been. */
  readonly asked: () => number;
  readonly sentBytes: () => number;
  readonly close: () => Promise<void>;
};

/**
 * Starts a server on the loopback interface that serves one mode to whoever asks. Its nodes are those of a cluster with
 * pods in 10.<100 + number>.0.0/16 and WireGuard addresses in 10.<110 + number>.0.0/16.
 */
export function startHostile(options: {
  readonly mode: HostileMode;
  readonly number?: number;
  readonly certPem: string;
  readonly keyPem: string;
}): Promise<HostileServer>;

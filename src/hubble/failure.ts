// Everything that can go wrong between us and a Hubble Relay, sorted by what to do next; in one line and without secrets.

import { status } from "@grpc/grpc-js";
import { shown } from "../core/shown.ts";

/** Why nothing is known of flows. */
export type HubbleFailure =
  | { readonly kind: "unreachable"; readonly detail: string } // refused, reset, DNS, an answer of the relay that it cannot
  | { readonly kind: "tls"; readonly detail: string } // CA, name or client certificate do not fit
  | { readonly kind: "unauthenticated"; readonly detail: string } // the relay does not want us
  | { readonly kind: "unimplemented"; readonly detail: string } // something else answers there, or a Hubble too old
  | { readonly kind: "deadline"; readonly detail: string } // nothing came in time
  | { readonly kind: "invalid"; readonly detail: string } // the question itself is not understood
  | { readonly kind: "garbled"; readonly detail: string }; // what came is no flow, or larger than any

/** What the texts of OpenSSL and Node.js mean; gRPC calls everything below it unavailable and keeps no code. */
const tlsFaults: readonly (readonly [RegExp, string])[] = [
  [/altnames/i, "its certificate is for another name"],
  [/has expired/i, "its certificate, or its CA's, has expired"],
  [/not yet valid/i, "its certificate is not yet valid: one of the two clocks is wrong"],
  [
    /self.signed|unable to (verify|get)|signature failure/i,
    "its certificate is not signed by the CA that it should be",
  ],
  [/certificate required/i, "it asks for a client certificate, and there is none"],
  [
    /alert (bad|unknown|unsupported|certificate)|unknown ca|handshake failure/i,
    "it does not accept our client certificate",
  ],
  [/wrong version number|packet length too long/i, "it does not speak TLS on this port"],
  [/certificate|SSL|TLS/i, "the TLS handshake failed"],
];

const kinds: Readonly<Record<number, HubbleFailure["kind"]>> = {
  [status.UNAVAILABLE]: "unreachable",
  [status.UNAUTHENTICATED]: "unauthenticated",
  [status.PERMISSION_DENIED]: "unauthenticated",
  [status.UNIMPLEMENTED]: "unimplemented",
  [status.DEADLINE_EXCEEDED]: "deadline",
  [status.INVALID_ARGUMENT]: "invalid",
  [status.RESOURCE_EXHAUSTED]: "garbled",
};

/** The failure that the status of a call stands for. The same fault has the same text: it ends up in a status. */
export function failureOf(code: number, details: string): HubbleFailure {
  const name = status[code] ?? `status ${code}`;
  const detail = oneLine(details === "" ? name : essence(details));
  const kind = kinds[code];
  if (kind === undefined) return { kind: "unreachable", detail: oneLine(`${name}: ${detail}`) };
  if (kind !== "unreachable") return { kind, detail };
  const fault = tlsFaults.find(([pattern]) => pattern.test(detail))?.[1];
  if (fault !== undefined) return { kind: "tls", detail: oneLine(`${fault} (${detail})`) };
  if (detail !== "Failed to connect") return { kind, detail };
  return { kind, detail: "the connection was closed at once: it may want TLS, or another client certificate" };
}

/** What gRPC and OpenSSL say, without what they put around it: moments, addresses in memory, empty notes. */
function essence(details: string): string {
  return details
    .trimEnd()
    .replace(/^No connection established\. Last error: /, "")
    .replace(/\. Resolution note:$/, "")
    .replace(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)/, "")
    .replace(/^(Error(?: \[\w+\])?: )/, "")
    .replace(/^[0-9A-F]{8,16}:error:[0-9A-F]+:SSL routines:\w*:([^:]*):.*$/s, "$1");
}

/** A text from outside, fit for a status: one line, at most 300 characters. */
export const oneLine = (text: string): string => shown(text.replaceAll(/[\p{C}\p{Z}]+/gu, " ").trim(), 300);

// What breaks below HTTP, in words that say what it means. The texts of Node.js and undici name hosts, ports and
// certificates, never credentials.

import { errors } from "undici";
import { fieldsOf, listOf, textOf } from "../core/json.ts";
import type { HttpLoss } from "./interceptor.ts";

/** How far a request had come when its connection broke. */
export type Progress = "queued" | "sent" | "answering";

/** The connection itself broke; nothing says that the next one will. */
const broken = new Set(["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "UND_ERR_SOCKET"]);

const unknownCa = "unknown certificate authority: the server's certificate is not signed by the CA of the kubeconfig";
const refusedCertificate = "the server does not accept our client certificate";

/** What the codes of OpenSSL and Node.js mean for whoever reads the message. */
const tlsFaults: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: "certificate has expired: the server's certificate, or its CA's, must be renewed",
  CERT_NOT_YET_VALID: "certificate is not yet valid: one of the two clocks is wrong",
  DEPTH_ZERO_SELF_SIGNED_CERT: unknownCa,
  SELF_SIGNED_CERT_IN_CHAIN: unknownCa,
  UNABLE_TO_GET_ISSUER_CERT: unknownCa,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownCa,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownCa,
  CERT_SIGNATURE_FAILURE: unknownCa,
  ERR_TLS_CERT_ALTNAME_INVALID:
    "certificate is for another name: the server's certificate does not carry the host of the kubeconfig; set tls-server-name if that is meant",
  ERR_SSL_WRONG_VERSION_NUMBER: "the server does not speak TLS on this port",
  ERR_SSL_PACKET_LENGTH_TOO_LONG: "the server does not speak TLS on this port",
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: "the server asks for a client certificate, and the kubeconfig has none",
  ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE: refusedCertificate,
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN: refusedCertificate,
  ERR_SSL_SSLV3_ALERT_CERTIFICATE_EXPIRED: `${refusedCertificate}: it has expired`,
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: `${refusedCertificate}: its CA is not known there`,
};

/** The loss that an error of the connection stands for. */
export function lossOf(thrown: unknown, progress: Progress): HttpLoss {
  const error = firstOf(thrown);
  const code = textOf(fieldsOf(error)["code"]) ?? "";
  const message = error instanceof Error ? error.message : String(error);
  const lost = (detail: string): HttpLoss => ({
    kind: "lost",
    failure: { kind: "unreachable", detail },
    repeat: repeatOf(code, progress),
  });
  const fault = tlsFaults[code];
  if (fault !== undefined) return lost(`${fault} (${code === "ERR_TLS_CERT_ALTNAME_INVALID" ? message : code})`);
  if (code === "UND_ERR_CONNECT_TIMEOUT") return lost("no connection within 10 s");
  if (code === "UND_ERR_DESTROYED" || code === "UND_ERR_CLOSED") return lost("closed");
  if (code === "UND_ERR_SOCKET" || code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" || message.includes("EOF state"))
    return lost(`connection closed by the server ${progress === "answering" ? "within" : "before"} its answer`);
  // undici gives its parser's errors no code, only a class.
  if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError)
    return { kind: "lost", failure: { kind: "garbled", detail: message }, repeat: "never" };
  return lost(message.includes(code) ? message : `${message} (${code})`);
}

function repeatOf(code: string, progress: Progress): HttpLoss["repeat"] {
  if (!broken.has(code) || progress === "answering") return "never";
  return progress === "queued" ? "always" : "idempotent";
}

/** A name with several addresses fails with the errors of all; the first one stands for them. */
function firstOf(error: unknown): unknown {
  const [first] = error instanceof AggregateError ? listOf(error.errors) : [];
  return first ?? error;
}

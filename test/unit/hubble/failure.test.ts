import { status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { failureOf } from "../../../src/hubble/failure.ts";

/** As gRPC words it; the alerts are those of a relay, which is Go. */
const alert = (text: string): string =>
  `No connection established. Last error: 802C82562B7F0000:error:0A000418:SSL routines:ssl3_read_bytes:${text}:../deps/openssl/ssl/record/rec_layer_s3.c:1601:SSL alert number 48 (2026-11-15T22:56:17.915Z). Resolution note: `;

test.each([
  [alert("tlsv1 alert unknown ca"), "it does not accept our client certificate (tlsv1 alert unknown ca)"],
  [alert("sslv3 alert bad certificate"), "it does not accept our client certificate (sslv3 alert bad certificate)"],
  [
    alert("sslv3 alert certificate expired"),
    "it does not accept our client certificate (sslv3 alert certificate expired)",
  ],
  [
    alert("tlsv13 alert certificate required"),
    "it asks for a client certificate, and there is none (tlsv13 alert certificate required)",
  ],
  [
    "No connection established. Last error: Error: certificate has expired. Resolution note: ",
    "its certificate, or its CA's, has expired (certificate has expired)",
  ],
  [
    "No connection established. Last error: Error: unable to verify the first certificate. Resolution note: ",
    "its certificate is not signed by the CA that it should be (unable to verify the first certificate)",
  ],
])("TLS that failed is said plainly, without moments and addresses in memory: %#", (details, detail) => {
  expect(failureOf(status.UNAVAILABLE, details)).toEqual({ kind: "tls", detail });
});

test("what is no fault of TLS is not called one", () => {
  const refused = "No connection established. Last error: Error: connect ECONNREFUSED 10.0.0.1:443. Resolution note: ";
  expect(failureOf(status.UNAVAILABLE, refused)).toEqual({
    kind: "unreachable",
    detail: "connect ECONNREFUSED 10.0.0.1:443",
  });
  expect(failureOf(status.UNAVAILABLE, "")).toEqual({ kind: "unreachable", detail: "UNAVAILABLE" });
  expect(failureOf(99, "certificate")).toEqual({ kind: "unreachable", detail: "status 99: certificate" });
});

test("a text of any length and shape is one short line", () => {
  const { detail } = failureOf(status.INVALID_ARGUMENT, `a\n\u0000\u001b[31mb${"c".repeat(1000)}`);
  expect(detail).toMatch(/^a \[31mbc+…$/);
  expect(detail).toHaveLength(300);
});

import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { describe, expect, test } from "vitest";
import { readPrivateKey } from "../../../src/pki/private-key.ts";
import { type RsaPart, rsaKeyWith } from "../../support/certificate.ts";
import { openssl, opensslMissing } from "../../support/openssl.ts";

const pemOf = (key: KeyObject, type: "pkcs1" | "pkcs8" | "sec1" = "pkcs8"): string =>
  key.export({ type, format: "pem" } as never).toString();
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
const problemOf = (pem: string): string | undefined => {
  const key = readPrivateKey(pem);
  return key.ok ? undefined : key.error;
};

describe("a key is read that is", () => {
  test.each([
    ["RSA in PKCS#8", pemOf(rsa)],
    ["RSA in PKCS#1", pemOf(rsa, "pkcs1")],
    ["RSA as its parts are made again", rsaKeyWith({})],
    ["RSA-PSS", pemOf(generateKeyPairSync("rsa-pss", { modulusLength: 2048 }).privateKey)],
    ["EC in PKCS#8", pemOf(ec)],
    ["EC in SEC 1", pemOf(ec, "sec1")],
    ["P-521", pemOf(generateKeyPairSync("ec", { namedCurve: "P-521" }).privateKey)],
    ["Ed25519", pemOf(generateKeyPairSync("ed25519").privateKey)],
  ])("%s", (_, pem) => {
    expect(problemOf(pem)).toBeUndefined();
  });
});

const apart = "an RSA key whose parts do not belong together";

describe("a key is refused", () => {
  test.each<[RsaPart, number]>([
    ["n", 2_048],
    ["d", 2_048],
    ["d", 16_384],
    ["p", 1_024],
    ["p", 16_384],
    ["q", 1_024],
    ["q", 16_384],
    ["dp", 1_024],
    ["dp", 16_384],
    ["dq", 1_024],
    ["dq", 16_384],
    ["qi", 1_024],
    ["qi", 16_384],
  ])("whose %s is another number of %i bits", (part, bits) => {
    expect(problemOf(rsaKeyWith({ [part]: bits }))).toBe(apart);
  });

  test.each([
    ["of more than 8,192 bits", rsaKeyWith({ n: 8_200 }), "an RSA key of more than 8192 bits"],
    ["of more than 8 KiB", rsaKeyWith({ p: 32_768, q: 32_768 }), "longer than 8192 characters"],
    ["with text beyond 8 KiB", `${pemOf(ec)}${" ".repeat(8_192)}`, "longer than 8192 characters"],
    ["that is none", "x", "unreadable, or has a passphrase"],
    [
      "with a passphrase",
      ec.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" }).toString(),
      "unreadable, or has a passphrase",
    ],
    ["of another kind", pemOf(generateKeyPairSync("x25519").privateKey), "neither RSA nor of an elliptic curve"],
  ])("%s", (_, pem, problem) => {
    expect(problemOf(pem)).toBe(problem);
  });

  test.skipIf(opensslMissing !== undefined)("that has three primes", () => {
    expect(problemOf(openssl(["genrsa", "-primes", "3", "2048"]).stdout)).toBe(apart);
  });
});

test("what is read signs", () => {
  for (const pem of [pemOf(rsa), pemOf(ec)]) {
    const key = readPrivateKey(pem);
    if (!key.ok) throw new Error(key.error);
    expect(sign("sha256", Buffer.from("x"), key.value).length).toBeGreaterThan(60);
  }
});

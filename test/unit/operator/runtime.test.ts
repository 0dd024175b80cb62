import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { createLog, createSecrets, type LogOptions, systemRuntime } from "../../../src/operator/runtime.ts";

/** A log that writes into a list. */
function setUp(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const secrets = createSecrets();
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLog({ level: "info", format: "json", destination, redact: secrets, ...options });
  return { log, lines, secrets };
}

const token = `eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQifQ.${"c2lnbmF0dXJl".repeat(20)}`;
const opaque = "k10f3c9a77b1de4455aa::server:0d9f8e7c6b5a4938";
const pem = `-----BEGIN EC PRIVATE KEY-----\n${"MHcCAQEEIA".repeat(6)}\noUQDQgAE\n-----END EC PRIVATE KEY-----`;
const presharedKey = "FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE=";

describe("systemRuntime", () => {
  const { clock, random } = systemRuntime(setUp().log);

  test("sleeps no shorter than asked, and leaves no listener behind", async () => {
    const { signal } = new AbortController();
    const startedMs = clock.monotonicMs();
    await clock.sleep(12.5, signal);
    expect(clock.monotonicMs() - startedMs).toBeGreaterThanOrEqual(12.5);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  test("a sleep that is aborted rejects with the signal's reason, at once", async () => {
    const controller = new AbortController();
    const reason = new Error("shutting down");
    const sleeping = clock.sleep(60_000, controller.signal);
    controller.abort(reason);
    await expect(sleeping).rejects.toBe(reason);
    await expect(clock.sleep(60_000, controller.signal)).rejects.toBe(reason);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  test("what is called off does not run; what is asked for in a month does not run now", async () => {
    const ran: string[] = [];
    const cancel = clock.after(1, () => ran.push("called off"));
    const cancelMonth = clock.after(30 * 24 * 3_600_000, () => ran.push("in a month"));
    clock.after(2, () => ran.push("soon"));
    cancel();
    await clock.sleep(20);
    cancelMonth();
    expect(ran).toEqual(["soon"]);
  });

  test("knows what time it is, and rolls dice", () => {
    expect(Math.abs(clock.nowMs() - Date.now())).toBeLessThan(1_000);
    expect(random()).toBeLessThan(1);
  });
});

describe("createLog", () => {
  test("json: one line each, level as text, ISO time, the message beside the fields", () => {
    const { log, lines } = setUp();
    log.info("cluster synced", {
      cluster: "local",
      revision: 7,
      fresh: true,
      hint: undefined,
      gone: null,
      nodes: ["a", "b"],
    });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      /^\{"level":"info","time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z","cluster":"local",.*\}\n$/,
    );
    expect(JSON.parse(lines[0] ?? "")).toEqual({
      level: "info",
      time: expect.any(String) as string,
      cluster: "local",
      revision: 7,
      fresh: true,
      gone: null,
      nodes: ["a", "b"],
      msg: "cluster synced",
    });
  });

  test("pretty: one line for people, values quoted where they have to be", () => {
    const { log, lines } = setUp({ format: "pretty" });
    log.warn("cluster is stale", {
      cluster: "local",
      revision: 7,
      detail: 'says "no"\nreally',
      hint: undefined,
      nodes: ["a", "b c"],
    });
    expect(lines.map((line) => line.replace(/^\d\d:\d\d:\d\d\.\d{3}/, "TIME"))).toEqual([
      'TIME WARN  cluster is stale cluster=local revision=7 detail="says \\"no\\"\\nreally" nodes=[a "b c"]\n',
    ]);
  });

  test("pretty: what others wrote can neither end a line nor speak to the terminal", () => {
    const { log, lines } = setUp({ format: "pretty" });
    log.info("a\nb", { "na\u001bme": "\u001b[31mred\u009b0m\r\n" });
    // oxlint-disable-next-line no-control-regex -- it is about control characters
    expect(lines.join("")).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]|\n./);
  });

  test.each([
    ["debug", ["d", "i", "w", "e"]],
    ["info", ["i", "w", "e"]],
    ["warn", ["w", "e"]],
    ["error", ["e"]],
  ] as const)("level %s writes %s, in both formats", (level, expected) => {
    for (const format of ["json", "pretty"] as const) {
      const { log, lines } = setUp({ level, format });
      log.debug("d");
      log.info("i");
      log.warn("w");
      log.error("e");
      const said = lines.map((line) =>
        format === "json" ? (JSON.parse(line) as { msg: string }).msg : line.trim().slice(-1),
      );
      expect(said).toEqual(expected);
    }
  });

  test("a field that is called like one of the line's own is renamed, so that no key stands twice", () => {
    const { log, lines } = setUp();
    log.info("x", { level: "high", time: "noon", msg: "other" });
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      level: "info",
      msg: "x",
      level_: "high",
      time_: "noon",
      msg_: "other",
    });
  });

  test("texts and lists have a limit", () => {
    const { log, lines } = setUp();
    log.info("x", { detail: "y".repeat(1_000_000), nodes: Array.from({ length: 1_000 }, (_, index) => `n${index}`) });
    const { detail, nodes } = JSON.parse(lines[0] ?? "") as { detail: string; nodes: string[] };
    expect([detail.length, nodes.length, nodes.at(-1)]).toEqual([4_097, 51, "… 950 more"]);
  });

  test.each(["json", "pretty"] as const)("no secret is written, wherever it stands: %s", (format) => {
    const { log, lines, secrets } = setUp({ format });
    secrets.register(opaque);
    log.error(`message ${opaque}`, {
      [opaque]: "name",
      detail: `text ${token} and ${opaque}`,
      list: [opaque, pem],
      presharedKey,
      token: "short",
    });
    for (const secret of [opaque, token, "MHcCAQ", presharedKey, "short"]) expect(lines.join("")).not.toContain(secret);
    expect(lines.join("").split("[redacted]")).toHaveLength(9);
  });
});

describe("a tenant that chooses its token", () => {
  const line = {
    cluster: "victim/va-kubeconfig/kubeconfig",
    action: "create",
    kind: "unreachable",
    name: "vmesh--vb--vb-1",
    detail: "unreachable: Secret victim/va-kubeconfig/kubeconfig",
  };

  test.each(["unreachable", "victim/va-kubeconfig/kubeconfig", "vmesh--vb--vb-1", "create"])(
    "%s: the lines of others stay whole",
    (chosen) => {
      const { log, lines, secrets } = setUp();
      secrets.register("a-token-of-the-victim-01234567", "victim/va-kubeconfig/kubeconfig", "va.example:6443");
      secrets.register(chosen, "evil/e-kubeconfig/kubeconfig", "evil.example:6443");
      log.info("applied", line);
      expect(JSON.parse(lines[0] ?? "")).toMatchObject(line);
    },
  );

  test("and no token is in any line: not in its own, nor in those of others", () => {
    const { log, lines, secrets } = setUp();
    const tokens = ["victim-plain-token-of-words", "Zq8vK2mPx1LtR7wYb4Nc"];
    for (const each of tokens) secrets.register(each, "victim/va-kubeconfig/kubeconfig", "va.example:6443");
    log.warn("not applied", { ...line, detail: `the server says ${tokens.join(" ")}` });
    log.warn("a fault of ours", { key: "plan", detail: `Error: ${tokens[1]}` });
    for (const each of tokens) expect(lines.join("")).not.toContain(each);
  });
});

describe("createSecrets", () => {
  test("a registered secret goes, also with quotes around, in JSON within JSON and in base64", () => {
    const { register, scrub } = createSecrets();
    const secret = 'pass"word\\with\nmuch in it';
    register(`${secret}\n`);
    expect(scrub(`a ${secret} b`)).toBe("a [redacted] b");
    expect(scrub(JSON.stringify({ secret }))).toBe('{"secret":"[redacted]"}');
    expect(scrub(`data: ${Buffer.from(`${secret}\n`).toString("base64")}`)).toBe("data: [redacted]");
    expect(scrub(`data: ${Buffer.from(secret).toString("base64")}`)).toBe("data: [redacted]");
  });

  test("a secret that begins another does not leave the rest of it", () => {
    const { register, scrub } = createSecrets();
    register("abcdefghijklmnopqrst");
    register("abcdefghijklmnopqrst-and-more");
    expect(scrub("x abcdefghijklmnopqrst-and-more y abcdefghijklmnopqrst z")).toBe("x [redacted] y [redacted] z");
  });

  test("what is too short to be a secret is not taken: it would take harmless words out", () => {
    const { register, scrub } = createSecrets();
    register("node");
    register("   ");
    expect(scrub("node gone")).toBe("node gone");
  });

  test("when there are too many, the one registered longest ago goes first", () => {
    const { register, scrub } = createSecrets();
    const secret = (index: number): string => `secret-number-${String(index).padStart(8, "0")}`;
    for (let index = 0; index < 10_000; index += 1) register(secret(index), `n/s${index}/k`, "host");
    register(secret(0), "n/s0/k", "host");
    register("one-too-many-00000000", "n/more/k", "host");
    expect([secret(0), secret(1), secret(2), "one-too-many-00000000"].map((text) => scrub(text))).toEqual([
      "[redacted]",
      secret(1),
      "[redacted]",
      "[redacted]",
    ]);
  });

  test("edits of one Secret push out its own older tokens alone", () => {
    const { register, scrub } = createSecrets();
    register("token-of-the-victim-00000001", "victim/s/k", "host");
    for (let edit = 0; edit < 20_000; edit += 1) register(`token-number-${edit}-00000000`, "evil/s/k", "host");
    expect(scrub("x token-of-the-victim-00000001 y")).toBe("x [redacted] y");
    expect(scrub("x token-number-19999-00000000 y")).toBe("x [redacted] y");
    expect(scrub("x token-number-1-00000000 y")).toBe("x token-number-1-00000000 y");
  });

  test("a token that is a word goes from lines about its own cluster only; one of chance from all", () => {
    const { register, scrub } = createSecrets();
    const word = "ERR_TLS_CERT_ALTNAME_INVALID";
    const chance = "Zq8vK2mPx1LtR7wYb4Nc";
    register(word, "evil/s/k", "evil.example:6443");
    register(chance, "evil/s/k", "evil.example:6443");
    expect(scrub(`a ${word} b ${chance}`, "evil/s/k")).toBe("a [redacted] b [redacted]");
    expect(scrub(`a ${word} b ${chance}`, "victim/s/k")).toBe(`a ${word} b [redacted]`);
    expect(scrub(`a ${word} b ${chance}`)).toBe(`a ${word} b [redacted]`);
  });

  test("a token that is the name of a cluster or of its server goes from no other's line", () => {
    const { register, scrub } = createSecrets();
    register("an-honest-token-00000001", "tenant-11112222-33334444/s/k", "api-11112222-33334444.example:6443");
    register("tenant-11112222-33334444", "evil/s/k", "evil.example:6443");
    register("api-11112222-33334444.example", "evil/s/k", "evil.example:6443");
    const text = "Secret tenant-11112222-33334444/s at api-11112222-33334444.example:6443";
    expect(scrub(text)).toBe(text);
  });

  test("the operator's own token goes from every line, whatever it looks like", () => {
    const { register, scrub } = createSecrets();
    register("a-plain-token-of-ours", "local", "host");
    register("a-plain-token-for-kcp", "kcp", "host");
    expect(scrub("a-plain-token-of-ours a-plain-token-for-kcp", "victim/s/k")).toBe("[redacted] [redacted]");
  });

  test.each([
    ["a JWT in a header", `Authorization: Bearer ${token}`, "Authorization: Bearer [redacted]"],
    ["a JWT in JSON", JSON.stringify({ a: token, b: 1 }), '{"a":"[redacted]","b":1}'],
    ["a JWT after an escaped newline", `x\\n${token}`, "x\\n[redacted]"],
    ["a private key", `key:\n${pem}\nrest`, "key:\n[redacted]\nrest"],
    ["a private key in JSON", JSON.stringify({ key: pem }), '{"key":"[redacted]"}'],
    ["a private key that is cut off", pem.slice(0, 60), "[redacted]"],
    [
      "a key in a kubeconfig",
      `client-key-data: ${Buffer.from(pem).toString("base64")}\n`,
      "client-key-data: [redacted]\n",
    ],
    ["a preshared key in a Peer", JSON.stringify({ presharedKey }), '{"presharedKey":"[redacted]"}'],
    [
      "a preshared key in JSON within JSON",
      JSON.stringify(JSON.stringify({ presharedKey })),
      '"{\\"presharedKey\\":\\"[redacted]\\"}"',
    ],
    ["a preshared key as wg has it", `PresharedKey = ${presharedKey}`, "PresharedKey = [redacted]"],
    ["a private key as wg shows it", `private key: ${presharedKey}`, "private key: [redacted]"],
  ])("%s goes, though nobody registered it", (_, text, expected) => {
    expect(createSecrets().scrub(text)).toBe(expected);
  });

  test.each([
    "publicKey FpCyhws9cxwWoV4xELtfJvjJN+zQVRPISllRWgeopVE= of node n1",
    "eyJ is how tokens begin",
    "private key: unreadable",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "",
  ])("%j stays as it is", (text) => {
    expect(createSecrets().scrub(text)).toBe(text);
  });

  test("a hostile text costs no more than its length", () => {
    const { register, scrub } = createSecrets();
    for (let index = 0; index < 2_000; index += 1) register(`eyJhbGciOiJSUzI1NiIsImtpZCI6${"abc".repeat(100)}${index}`);
    const startedMs = performance.now();
    for (const part of [
      "eyJ-",
      "\\neyJ",
      "eyJaaaaaaaaaa.",
      "-----BEGIN ",
      "-----BEGIN PRIVATE KEY-----",
      "private key: ",
      "LS0tLS1CRUdJTi",
    ])
      scrub(part.repeat(200_000 / part.length));
    expect(performance.now() - startedMs).toBeLessThan(8_000);
  });
});

import { describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { Redacted } from "../../../src/core/redacted.ts";
import { hostOf } from "../../../src/kube/access.ts";
import { parseKubeconfig } from "../../../src/kube/kubeconfig.ts";
import { type FileAccess, inClusterAccess, loadKubeconfig } from "../../../src/kube/kubeconfig-files.ts";
import { type RefusalCode, refusals } from "../../../src/kube/refusal.ts";
import { makeCertificate, publicKeyPem, rsaKeyWith } from "../../support/certificate.ts";

const dayMs = 24 * 60 * 60 * 1000;
const ca = makeCertificate({ isCa: true, subject: "ca", names: [] });
const person = makeCertificate({ subject: "person", issuer: ca });
const stranger = makeCertificate({ subject: "stranger" });
const rsa = makeCertificate({ key: "rsa-2048" });
const base64 = (text: string): string => Buffer.from(text).toString("base64");

const goodCluster = { server: "https://10.0.0.1:6443", "certificate-authority-data": base64(ca.certPem) };
const certified = { "client-certificate-data": base64(person.certPem), "client-key-data": base64(person.keyPem) };

type Parts = { cluster?: object; user?: object; context?: object; rest?: object };

/** A kubeconfig that is good but for the parts given. */
function kubeconfig({
  cluster = goodCluster,
  user = { token: "secret-token" },
  context = {},
  rest = {},
}: Parts = {}): string {
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "here",
    contexts: [{ name: "here", context: { cluster: "c", user: "u", ...context } }],
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user }],
    ...rest,
  });
}

const codeOf = (text: string): string => {
  const parsed = parseKubeconfig(text);
  return parsed.ok ? "ok" : parsed.error.code;
};

describe("parseKubeconfig", () => {
  test("reads a server, its CA and a token", () => {
    const parsed = parseKubeconfig(kubeconfig({ context: { namespace: "kilo" } }));
    expect(parsed).toEqual({
      ok: true,
      value: {
        server: "https://10.0.0.1:6443",
        caPem: ca.certPem.trim(),
        token: new Redacted("secret-token"),
        namespace: "kilo",
        fingerprint: expect.stringMatching(/^[0-9a-f]{64}$/),
        notes: [],
      },
    });
    expect(parsed.ok && parsed.value.token?.expose()).toBe("secret-token");
    expect(JSON.stringify(parsed)).not.toContain("secret-token");
  });

  test("reads a client certificate, a server name, a path and several CAs with comments between", () => {
    const bundle = base64(`# first\n${ca.certPem}\n# second\n${stranger.certPem}`);
    const cluster = {
      server: "HTTPS://Rancher.Example:443/k8s/clusters/c-1/",
      "certificate-authority-data": bundle,
      "tls-server-name": "api.internal",
    };
    const parsed = parseKubeconfig(kubeconfig({ cluster, user: certified }));
    expect(parsed).toMatchObject({
      ok: true,
      value: {
        server: "https://rancher.example/k8s/clusters/c-1",
        caPem: `${ca.certPem}${stranger.certPem}`.trim(),
        serverName: "api.internal",
        clientCertificate: { certPem: person.certPem.trim(), keyPem: new Redacted(person.keyPem) },
      },
    });
    expect(parsed.ok && hostOf(parsed.value)).toBe("rancher.example:443");
    expect(JSON.stringify(parsed)).not.toContain("PRIVATE KEY");
  });

  test("JSON is YAML, unknown fields mean nothing, and empty ones neither", () => {
    const user = {
      token: " secret-token\n",
      username: "",
      exec: null,
      "as-groups": undefined,
      extensions: [{ name: "x" }],
    };
    const cluster = { ...goodCluster, "insecure-skip-tls-verify": false, "proxy-url": "", "future-field": true };
    const text = kubeconfig({ user, cluster, rest: { preferences: {}, future: [1] } });
    const parsed = parseKubeconfig(text);
    expect(parsed.ok && parsed.value.token?.expose()).toBe("secret-token");
    expect(codeOf(JSON.stringify({ kind: "Config", contexts: [], clusters: [], users: [] }))).toBe("ContextMissing");
  });

  test("the only context counts when none is current; one asked for goes before both", () => {
    expect(codeOf(kubeconfig({ rest: { "current-context": undefined } }))).toBe("ok");
    const contexts = [
      { name: "here", context: { cluster: "c", user: "nobody" } },
      { name: "there", context: { cluster: "c", user: "u" } },
    ];
    expect(codeOf(kubeconfig({ rest: { contexts, "current-context": "" } }))).toBe("ContextMissing");
    expect(parseKubeconfig(kubeconfig({ rest: { contexts } }), { context: "there" }).ok).toBe(true);
  });

  test("an expired client certificate is used, with a note", () => {
    const expired = makeCertificate({
      notBeforeMs: Date.now() - 3 * dayMs,
      notAfterMs: Date.now() - dayMs,
    });
    const user = { "client-certificate-data": base64(expired.certPem), "client-key-data": base64(expired.keyPem) };
    const parsed = parseKubeconfig(kubeconfig({ user }), { nowMs: Date.now() });
    expect(parsed.ok && parsed.value.notes).toEqual([
      expect.stringMatching(/^the client certificate expired on .* GMT$/),
    ]);
    const good = parseKubeconfig(kubeconfig({ user: certified }), { nowMs: Date.now() });
    expect(good.ok && good.value.notes).toEqual([]);
  });

  test.each<[RefusalCode, string]>([
    ["KubeconfigTooLarge", `${kubeconfig()}#${"x".repeat(64 * 1024)}`],
    ["KubeconfigTooLarge", `[${",".repeat(5_000)}`],
    ["KubeconfigTooLarge", `${kubeconfig()}${"#\n".repeat(4_000)}`],
    ["KubeconfigTooLarge", `a: "${"\\q".repeat(5_000)}"`],
    ["KeyDuplicate", kubeconfig().replace(/( *)server: .*\n/, "$&$1server: https://other.example\n")],
    ["KeyDuplicate", kubeconfig().replace(/( *)server: .*\n/, '$&$1"server": https://other.example\n')],
    [
      "KeyDuplicate",
      kubeconfig().replace(/( *)server: .*\n/, "$1&s server: https://a.example\n$1*s : https://b.example\n"),
    ],
    ["KeyDuplicate", `${kubeconfig()}\nusers: []\n`],
    ["KeyDuplicate", "1: a\n'1': b"],
    ["YamlInvalid", "a: [1, 2"],
    ["YamlInvalid", "a: &a [1, 1]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c, *c]"],
    ["YamlInvalid", "[".repeat(4_000)],
    ["YamlInvalid", `${"[".repeat(65)}${"]".repeat(65)}`],
    ["NotKubeconfig", `${"[".repeat(64)}${"]".repeat(64)}`],
    ["YamlInvalid", "a: 1\n---\nb: 2\n"],
    ["NotKubeconfig", ""],
    ["NotKubeconfig", "just text"],
    ["NotKubeconfig", "[1, 2]"],
    ["NotKubeconfig", kubeconfig({ rest: { kind: "Secret" } })],
    ["EntryDuplicate", kubeconfig({ rest: { users: [{ name: "u" }, { name: "u" }] } })],
    ["ContextMissing", kubeconfig({ rest: { "current-context": undefined, contexts: [] } })],
    ["ContextUnknown", kubeconfig({ rest: { "current-context": "elsewhere" } })],
    ["ClusterUnknown", kubeconfig({ context: { cluster: "d" } })],
    ["ClusterUnknown", kubeconfig({ context: { cluster: undefined } })],
    ["UserUnknown", kubeconfig({ context: { user: "v" } })],
    ["UserUnknown", kubeconfig({ rest: { users: {} } })],
    ["ServerMissing", kubeconfig({ cluster: {} })],
    ["ServerInvalid", kubeconfig({ cluster: { server: "10.0.0.1" } })],
    ["ServerInvalid", kubeconfig({ cluster: { server: 12 } })],
    ["ServerInvalid", kubeconfig({ cluster: { server: "https://user:pass@10.0.0.1" } })],
    ["ServerInvalid", kubeconfig({ cluster: { server: "https://10.0.0.1?a=b" } })],
    ["ServerInvalid", kubeconfig({ cluster: { server: "https://10.0.0.1#a" } })],
    ["ServerInvalid", kubeconfig({ cluster: { server: `https://10.0.0.1/${"x".repeat(2_048)}` } })],
    ["ServerNotHttps", kubeconfig({ cluster: { server: "http://10.0.0.1" } })],
    ["ServerNotHttps", kubeconfig({ cluster: { server: "http://127.0.0.1:8001" } })],
    ["ServerNotHttps", kubeconfig({ cluster: { server: "file:///etc/passwd" } })],
    ["ServerNameInvalid", kubeconfig({ cluster: { ...goodCluster, "tls-server-name": "a b" } })],
    ["ProxyNotAllowed", kubeconfig({ cluster: { ...goodCluster, "proxy-url": "http://proxy" } })],
    ["TlsVerifyDisabled", kubeconfig({ cluster: { ...goodCluster, "insecure-skip-tls-verify": true } })],
    ["TlsVerifyDisabled", kubeconfig({ cluster: { ...goodCluster, "insecure-skip-tls-verify": "yes" } })],
    ["CaFileNotAllowed", kubeconfig({ cluster: { ...goodCluster, "certificate-authority": "/etc/ca.crt" } })],
    ["CaInvalid", kubeconfig({ cluster: { ...goodCluster, "certificate-authority-data": "%%%" } })],
    ["CaInvalid", kubeconfig({ cluster: { ...goodCluster, "certificate-authority-data": ca.certPem } })],
    ["CaInvalid", kubeconfig({ cluster: { ...goodCluster, "certificate-authority-data": base64("no PEM") } })],
    ["CaInvalid", kubeconfig({ cluster: { ...goodCluster, "certificate-authority-data": 7 } })],
    ["ExecNotAllowed", kubeconfig({ user: { token: "t", exec: { command: "sh" } } })],
    ["ExecNotAllowed", kubeconfig({ user: { token: "t", exec: [] } })],
    ["AuthProviderNotAllowed", kubeconfig({ user: { "auth-provider": { name: "gcp" } } })],
    ["BasicAuthNotAllowed", kubeconfig({ user: { username: "admin" } })],
    ["BasicAuthNotAllowed", kubeconfig({ user: { token: "t", password: "p" } })],
    ["ImpersonationNotAllowed", kubeconfig({ user: { token: "t", as: "admin" } })],
    ["ImpersonationNotAllowed", kubeconfig({ user: { token: "t", "as-groups": ["system:masters"] } })],
    ["ImpersonationNotAllowed", kubeconfig({ user: { token: "t", "as-uid": "1" } })],
    ["ImpersonationNotAllowed", kubeconfig({ user: { token: "t", "as-user-extra": { a: ["b"] } } })],
    ["TokenFileNotAllowed", kubeconfig({ user: { token: "t", tokenFile: "/var/run/secrets/token" } })],
    ["TokenInvalid", kubeconfig({ user: { token: "two words" } })],
    ["TokenInvalid", kubeconfig({ user: { token: "a\r\nX-Injected: 1" } })],
    ["TokenInvalid", kubeconfig({ user: { token: 12345 } })],
    ["ClientCertificateFileNotAllowed", kubeconfig({ user: { ...certified, "client-certificate": "/c.pem" } })],
    ["ClientCertificateFileNotAllowed", kubeconfig({ user: { ...certified, "client-key": "/k.pem" } })],
    ["ClientCertificateIncomplete", kubeconfig({ user: { ...certified, "client-key-data": undefined } })],
    ["ClientCertificateIncomplete", kubeconfig({ user: { ...certified, "client-certificate-data": undefined } })],
    ["ClientCertificateInvalid", kubeconfig({ user: { ...certified, "client-certificate-data": base64("x") } })],
    ["ClientKeyInvalid", kubeconfig({ user: { ...certified, "client-key-data": base64("x") } })],
    ["ClientKeyInvalid", kubeconfig({ user: { ...certified, "client-key-data": base64(publicKeyPem(person)) } })],
    ["ClientKeyMismatch", kubeconfig({ user: { ...certified, "client-key-data": base64(stranger.keyPem) } })],
    ["ClientKeyMismatch", kubeconfig({ user: { ...certified, "client-key-data": base64(rsa.keyPem) } })],
    ["ClientKeyInvalid", kubeconfig({ user: { ...certified, "client-key-data": base64(rsaKeyWith({ p: 16_384 })) } })],
    ["ClientKeyInvalid", kubeconfig({ user: { ...certified, "client-key-data": base64(rsaKeyWith({ n: 16_384 })) } })],
    ["CredentialsMissing", kubeconfig({ user: {} })],
    ["NamespaceInvalid", kubeconfig({ context: { namespace: "../kube-system" } })],
  ])("%s", (code, text) => {
    expect(codeOf(text)).toBe(code);
  });

  test("every refusal says what, why and what to do", () => {
    for (const [code, { what, why, fix }] of Object.entries(refusals)) {
      expect(code).toMatch(/^[A-Z][A-Za-z]+$/);
      for (const text of [what, why, fix]) expect(text.length).toBeGreaterThan(10);
    }
  });

  test("no refusal contains anything secret, wherever it stands", () => {
    const sentinel = "SENTINEL";
    const secretKey = base64(`${person.keyPem}${sentinel}`);
    const users: readonly object[] = [
      { token: `two ${sentinel}` },
      { username: sentinel, password: sentinel },
      { tokenFile: sentinel },
      { exec: { command: sentinel, args: [sentinel], env: [{ name: "a", value: sentinel }] } },
      { "auth-provider": { name: sentinel, config: { "id-token": sentinel } } },
      { as: sentinel },
      { "client-certificate": sentinel, "client-key": sentinel },
      { "client-certificate-data": sentinel, "client-key-data": sentinel },
      { "client-certificate-data": base64(person.certPem), "client-key-data": base64(sentinel) },
      { "client-certificate-data": base64(stranger.certPem), "client-key-data": secretKey },
    ];
    const clusters: readonly object[] = [
      { server: `https://${sentinel}:${sentinel}@host` },
      { server: `https://host/?token=${sentinel}` },
      { server: sentinel },
      { server: `http://${sentinel}` },
      { ...goodCluster, "proxy-url": `http://${sentinel}@proxy` },
      { ...goodCluster, "certificate-authority": sentinel },
      { ...goodCluster, "certificate-authority-data": sentinel },
      { ...goodCluster, "tls-server-name": `${sentinel} x` },
    ];
    const texts = [
      ...users.map((user) => kubeconfig({ user })),
      ...clusters.map((cluster) => kubeconfig({ cluster, user: { token: sentinel } })),
      `token: ${sentinel}\n  password: {${sentinel}`,
      `a: "${sentinel}`,
      `{token: ${sentinel}]`,
      `- *${sentinel}`,
      `%${sentinel}`,
      `a: !!${sentinel} b: !<${sentinel}`,
    ];
    for (const text of texts) {
      const parsed = parseKubeconfig(text);
      expect(parsed.ok).toBe(false);
      expect(JSON.stringify(parsed).toUpperCase()).not.toContain(sentinel);
    }
  });

  test("a name in a refusal is one short printable line", () => {
    const parsed = parseKubeconfig(kubeconfig({ rest: { "current-context": `a\n\u001b[31m${"b".repeat(500)}` } }));
    expect(!parsed.ok && parsed.error.detail).toBe(`there is no context "a [31m${"b".repeat(73)}"`);
  });
});

describe("fingerprint", () => {
  const fingerprint = (text: string): string => {
    const parsed = parseKubeconfig(text);
    return parsed.ok ? parsed.value.fingerprint : parsed.error.code;
  };

  test("is the same for the same access, however it is written", () => {
    const other = kubeconfig({
      cluster: { ...goodCluster, server: "https://10.0.0.1:6443/", extensions: [] },
      context: { namespace: "other" },
    });
    expect(fingerprint(other)).toBe(fingerprint(kubeconfig()));
  });

  test("differs with everything that decides where we go or who we are", () => {
    const texts = [
      kubeconfig(),
      kubeconfig({ cluster: { ...goodCluster, server: "https://10.0.0.2:6443" } }),
      kubeconfig({ cluster: { ...goodCluster, server: "https://10.0.0.1:6443/x" } }),
      kubeconfig({ cluster: { server: goodCluster.server } }),
      kubeconfig({ cluster: { ...goodCluster, "certificate-authority-data": base64(stranger.certPem) } }),
      kubeconfig({ cluster: { ...goodCluster, "tls-server-name": "x" } }),
      kubeconfig({ user: { token: "other" } }),
      kubeconfig({ user: certified }),
      kubeconfig({ user: { ...certified, token: "secret-token" } }),
    ];
    expect(new Set(texts.map(fingerprint)).size).toBe(texts.length);
  });
});

/** Files in memory, a clock that a test moves, and the warnings. */
function fileAccess(contents: Record<string, string>) {
  let nowMs = Date.now();
  const warnings: string[] = [];
  const files: FileAccess = {
    readFile: async (path) => {
      const text = contents[path];
      if (text === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: "ENOENT" });
      return text;
    },
    clock: {
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      sleep: () => Promise.reject(new Error("not used")),
      after: () => () => undefined,
    },
    log: {
      debug: () => undefined,
      info: () => undefined,
      warn: (message) => warnings.push(message),
      error: () => undefined,
    },
  };
  const pass = (ms: number): void => {
    nowMs += ms;
  };
  return { files, contents, pass, warnings };
}

describe("loadKubeconfig", () => {
  test("reads the files that it names, relative to its own directory", async () => {
    const cluster = { server: "https://api", "certificate-authority": "pki/ca.crt" };
    const user = { "client-certificate": "../me.crt", "client-key": "/keys/me.key" };
    const { files } = fileAccess({
      "/etc/kube/config": kubeconfig({ cluster, user, context: { namespace: "ops" } }),
      "/etc/kube/pki/ca.crt": ca.certPem,
      "/etc/me.crt": person.certPem,
      "/keys/me.key": person.keyPem,
    });
    expect(await loadKubeconfig({ flag: "/etc/kube/config", env: "/ignored" }, files)).toMatchObject({
      ok: true,
      value: {
        server: "https://api",
        caPem: ca.certPem.trim(),
        clientCertificate: { certPem: person.certPem.trim() },
        namespace: "ops",
      },
    });
  });

  test("inline data goes before files", async () => {
    const cluster = { ...goodCluster, "certificate-authority": "/missing" };
    const { files } = fileAccess({ "/c": kubeconfig({ cluster }) });
    expect(await loadKubeconfig({ flag: "/c" }, files)).toMatchObject({ ok: true });
  });

  test("a token file is read again after a minute, and its last good token is kept", async () => {
    const { files, contents, pass, warnings } = fileAccess({
      "/c": kubeconfig({ user: { token: "inline", tokenFile: "token" } }),
      "/token": "first\n",
    });
    const loaded = await loadKubeconfig({ flag: "/c" }, files);
    const token = async (): Promise<string | undefined> =>
      loaded.ok ? (await loaded.value.tokenProvider?.())?.expose() : undefined;
    expect(await token()).toBe("first");
    contents["/token"] = "second\n";
    expect(await token()).toBe("first");
    pass(61_000);
    expect(await token()).toBe("second");
    delete contents["/token"];
    pass(61_000);
    expect(await token()).toBe("second");
    expect(warnings).toHaveLength(1);
    contents["/token"] = "not a\ttoken";
    pass(61_000);
    expect(await token()).toBe("second");
    contents["/token"] = "third";
    pass(61_000);
    expect(await token()).toBe("third");
  });

  test("a rotated token does not change the fingerprint, another token file does", async () => {
    const load = async (path: string, text: string): Promise<string> => {
      const { files } = fileAccess({ "/c": kubeconfig({ user: { tokenFile: path } }), [path]: text });
      const loaded = await loadKubeconfig({ flag: "/c" }, files);
      return loaded.ok ? loaded.value.fingerprint : loaded.error.code;
    };
    expect(await load("/a", "one")).toBe(await load("/a", "two"));
    expect(await load("/a", "one")).not.toBe(await load("/b", "one"));
  });

  test("several files are merged, the first one to name an entry having it whole", async () => {
    const one = stringify({ users: [{ name: "u", user: { token: "first" } }], contexts: [] });
    const two = kubeconfig({ user: { token: "second", as: "nobody" } });
    const { files } = fileAccess({ "/one": one, "/two": two });
    const loaded = await loadKubeconfig({ env: "/one::/missing:/two", home: "/root-of-somebody" }, files);
    expect(loaded.ok && loaded.value.token?.expose()).toBe("first");
  });

  test("without a flag or KUBECONFIG it is the one in the home directory", async () => {
    const { files } = fileAccess({ "/h/.kube/config": kubeconfig() });
    expect((await loadKubeconfig({ env: "", home: "/h" }, files)).ok).toBe(true);
    expect(await loadKubeconfig({ home: "/elsewhere" }, files)).toMatchObject({
      ok: false,
      error: { code: "FileUnreadable", detail: "there is no kubeconfig: /elsewhere/.kube/config" },
    });
  });

  test("a file that was asked for must be there", async () => {
    const { files } = fileAccess({ "/c": kubeconfig({ user: { tokenFile: "gone" } }) });
    expect(await loadKubeconfig({ flag: "/d" }, files)).toMatchObject({ ok: false, error: { detail: "/d: ENOENT" } });
    expect(await loadKubeconfig({ flag: "/c" }, files)).toMatchObject({
      ok: false,
      error: { detail: "/gone: ENOENT" },
    });
  });

  test("an unverified server is allowed with a note; programs are not", async () => {
    const cluster = { ...goodCluster, "insecure-skip-tls-verify": true };
    const { files } = fileAccess({
      "/c": kubeconfig({ cluster }),
      "/e": kubeconfig({ user: { exec: { command: "aws" } } }),
    });
    const loaded = await loadKubeconfig({ flag: "/c" }, files);
    expect(loaded).toMatchObject({
      ok: true,
      value: { skipTlsVerify: true, notes: [expect.stringContaining("not verified")] },
    });
    expect(loaded.ok && loaded.value.caPem).toBeUndefined();
    expect(await loadKubeconfig({ flag: "/e" }, files)).toMatchObject({ ok: false, error: { code: "ExecNotAllowed" } });
  });

  test("a context may be chosen by name", async () => {
    const { files } = fileAccess({ "/c": kubeconfig() });
    expect((await loadKubeconfig({ flag: "/c" }, files, "here")).ok).toBe(true);
    expect(await loadKubeconfig({ flag: "/c" }, files, "there")).toMatchObject({
      ok: false,
      error: { code: "ContextUnknown" },
    });
  });
});

describe("inClusterAccess", () => {
  const directory = "/var/run/secrets/kubernetes.io/serviceaccount";
  const mounted = {
    [`${directory}/token`]: "pod-token",
    [`${directory}/ca.crt`]: ca.certPem,
    [`${directory}/namespace`]: "kilo\n",
  };
  const env = { KUBERNETES_SERVICE_HOST: "10.96.0.1", KUBERNETES_SERVICE_PORT: "443" };

  test("is the ServiceAccount of the Pod, with a token that rotates", async () => {
    const { files, contents, pass } = fileAccess({ ...mounted });
    const access = await inClusterAccess(env, files);
    expect(access).toMatchObject({
      ok: true,
      value: { server: "https://10.96.0.1", caPem: ca.certPem.trim(), namespace: "kilo", notes: [] },
    });
    contents[`${directory}/token`] = "next";
    pass(60_000);
    expect(access.ok && (await access.value.tokenProvider?.())?.expose()).toBe("next");
  });

  test("takes an IPv6 address", async () => {
    const { files } = fileAccess({ ...mounted });
    const access = await inClusterAccess(
      { ...env, KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "6443" },
      files,
    );
    expect(access.ok && access.value.server).toBe("https://[fd00::1]:6443");
  });

  test("outside a Pod, or without its files, it says so", async () => {
    expect(await inClusterAccess({}, fileAccess(mounted).files)).toMatchObject({
      ok: false,
      error: { code: "NotInCluster" },
    });
    expect(await inClusterAccess(env, fileAccess({}).files)).toMatchObject({
      ok: false,
      error: { code: "FileUnreadable" },
    });
    const empty = fileAccess({ ...mounted, [`${directory}/token`]: "\n" });
    expect(await inClusterAccess(env, empty.files)).toMatchObject({ ok: false, error: { code: "FileUnreadable" } });
  });
});

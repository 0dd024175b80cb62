import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

const main = join(import.meta.dirname, "../../../tools/main.mjs");
const platform = `${process.platform}-${process.arch}`;

// Stands for Go: notes how it was called, writes half of the binary, waits, then writes the rest or fails.
const go = `#!/bin/sh
echo "$GOFLAGS $*" >> "$GO_LOG"
while [ "$1" != "-o" ]; do shift; done
printf '#!/bin/sh\\n' > "$2"
/bin/sleep "\${GO_SLEEP:-0}"
if [ -n "$GO_FAIL" ]; then echo "thing.go:7: undefined: colour" >&2; exit 1; fi
echo 'echo built v9.9.9' >> "$2"
/bin/chmod +x "$2"
`;

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "causeway-tools-"));
  for (const folder of ["bin", "assets", "cache"]) mkdirSync(join(home, folder));
  writeFileSync(join(home, "go.log"), "");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const cache = () => join(home, "cache/causeway/tools");
const etcdInCache = () => join(cache(), `etcd-v3.6.8-${platform}/etcd`);
const goCalls = () => readFileSync(join(home, "go.log"), "utf8").split("\n").slice(0, -1);

function executable(path: string, text: string): string {
  writeFileSync(join(home, path), text);
  chmodSync(join(home, path), 0o755);
  return join(home, path);
}
const working = (path: string) => executable(path, "#!/bin/sh\necho v1.2.3\n");
const broken = (path: string) => executable(path, "#!/bin/sh\nexit 1\n");
const installGo = () => executable("bin/go", go);

type Run = { readonly code: number | null; readonly out: string; readonly errors: string };

function start(args: readonly string[], environment: Record<string, string> = {}) {
  const env = {
    HOME: home,
    XDG_CACHE_HOME: join(home, "cache"),
    PATH: join(home, "bin"),
    GO_LOG: join(home, "go.log"),
  };
  const child = spawn(process.execPath, [main, ...args], { env: { ...env, ...environment } });
  return { child, ended: collect(child) };
}

function collect(child: ChildProcess): Promise<Run> {
  let out = "";
  let errors = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => void (out += chunk));
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => void (errors += chunk));
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, out, errors })));
}

const tools = (args: readonly string[], environment?: Record<string, string>) => start(args, environment).ended;

async function until(condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    if (tries > 500) throw new Error("waited too long");
    await sleep(10);
  }
}

describe("path", () => {
  test("KUBEBUILDER_ASSETS comes before PATH, PATH before the cache, the cache before a build", async () => {
    const assets = { KUBEBUILDER_ASSETS: join(home, "assets") };
    installGo();
    expect((await tools(["path", "etcd"])).out).toBe(`${etcdInCache()}\n`);
    expect((await tools(["path", "etcd"], assets)).out).toBe(`${etcdInCache()}\n`);
    expect(goCalls()).toHaveLength(1);
    const onPath = working("bin/etcd");
    expect((await tools(["path", "etcd"], assets)).out).toBe(`${onPath}\n`);
    const inAssets = working("assets/etcd");
    expect(await tools(["path", "etcd"], assets)).toEqual({ code: 0, out: `${inAssets}\n`, errors: "" });
  });

  test("what does not run is passed over, and said to be", async () => {
    const first = broken("assets/etcd");
    const second = working("bin/etcd");
    expect(await tools(["path", "etcd"], { KUBEBUILDER_ASSETS: join(home, "assets") })).toEqual({
      code: 0,
      out: `${second}\n`,
      errors: `tools: ${first} (from KUBEBUILDER_ASSETS) does not run; looking further\n`,
    });
  });

  test("a build puts only the path on standard output and stamps the version", async () => {
    installGo();
    const { code, out, errors } = await tools(["path", "kubectl"]);
    const path = join(cache(), `kubectl-v1.36.3-${platform}/kubectl`);
    expect({ code, out }).toEqual({ code: 0, out: `${path}\n` });
    expect(errors).toContain("tools: building kubectl v1.36.3");
    expect(spawnSync(path, { encoding: "utf8" }).stdout).toBe("built v9.9.9\n");
    const [call = ""] = goCalls();
    expect(call).toMatch(/^-mod=readonly build -ldflags=-s -w .*version\.gitVersion=v1\.36\.3 /);
    expect(call).toMatch(/ k8s\.io\/kubernetes\/cmd\/kubectl$/);
  });

  test("a half-written binary is never in the cache", async () => {
    installGo();
    const { ended } = start(["path", "etcd"], { GO_SLEEP: "0.2" });
    await until(() => goCalls().length === 1);
    expect(existsSync(etcdInCache())).toBe(false);
    expect((await ended).code).toBe(0);
    expect(readFileSync(etcdInCache(), "utf8")).toContain("v9.9.9");
    expect(readdirSync(cache())).toEqual([`etcd-v3.6.8-${platform}`]);
  });

  test("two at once build once: the second waits and finds the binary", async () => {
    installGo();
    const first = start(["path", "etcd"], { GO_SLEEP: "0.5" });
    await until(() => goCalls().length === 1);
    const second = await tools(["path", "etcd"]);
    expect(second.errors).toContain(`waiting for process ${first.child.pid}, which builds etcd`);
    expect([second.out, (await first.ended).out]).toEqual([`${etcdInCache()}\n`, `${etcdInCache()}\n`]);
    expect(goCalls()).toHaveLength(1);
  });

  test("an interrupt leaves nothing behind, and the next build works", async () => {
    installGo();
    const { child, ended } = start(["path", "etcd"], { GO_SLEEP: "30" });
    await until(() => goCalls().length === 1);
    child.kill("SIGINT");
    expect(await ended).toMatchObject({ code: 130, out: "" });
    expect(readdirSync(cache())).toEqual([]);
    expect((await tools(["path", "etcd"])).code).toBe(0);
  });

  test("a lock whose owner is dead is taken over", async () => {
    installGo();
    mkdirSync(cache(), { recursive: true });
    const dead = spawnSync(process.execPath, ["--version"]).pid;
    writeFileSync(join(cache(), `etcd-v3.6.8-${platform}.lock`), String(dead));
    expect((await tools(["path", "etcd"])).code).toBe(0);
    expect(readdirSync(cache())).toEqual([`etcd-v3.6.8-${platform}`]);
  });

  test("without Go it is exit code 3 and one line that says what to do", async () => {
    expect(await tools(["path", "kube-apiserver"])).toEqual({
      code: 3,
      out: "",
      errors:
        "tools: kube-apiserver is not on this machine and there is no Go to build it with: install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder that has kube-apiserver\n",
    });
  });

  test("a failed build is exit code 3 with the compiler's words, and leaves nothing behind", async () => {
    installGo();
    const { code, out, errors } = await tools(["path", "etcd"], { GO_FAIL: "yes" });
    expect({ code, out }).toEqual({ code: 3, out: "" });
    expect(errors).toContain("etcd v3.6.8 does not build (go exits with 1):\nthing.go:7: undefined: colour\n");
    expect(readdirSync(cache())).toEqual([]);
  });

  test.each(["helm", "kg"])("%s cannot be built: exit code 3, one line", async (name) => {
    installGo();
    const { code, out, errors } = await tools(["path", name]);
    expect({ code, out }).toEqual({ code: 3, out: "" });
    expect(errors).toMatch(new RegExp(`^tools: ${name} cannot be had: .*PATH\n$`));
  });

  test("kcp and Cilium call themselves what they are", async () => {
    installGo();
    const names = ["kcp", "clustermesh-apiserver"];
    for (const name of names) expect((await tools(["path", name])).code).toBe(0);
    const [kcp = "", cilium = ""] = goCalls();
    expect(kcp).toContain(" -X k8s.io/component-base/version.gitVersion=v1.32.3+kcp-v0.28.1 ");
    expect(kcp).toMatch(/ github\.com\/kcp-dev\/kcp\/cmd\/kcp$/);
    expect(cilium).toContain(" -X 'github.com/cilium/cilium/pkg/version.ciliumVersion=1.19.6 unknown unknown' ");
    expect(cilium).toMatch(/ github\.com\/cilium\/cilium\/clustermesh-apiserver$/);
  });

  test("kg is taken from CAUSEWAY_KG, else from PATH", async () => {
    const onPath = working("bin/kg");
    expect((await tools(["path", "kg"])).out).toBe(`${onPath}\n`);
    const named = working("assets/my-kg");
    expect((await tools(["path", "kg"], { CAUSEWAY_KG: named })).out).toBe(`${named}\n`);
  });
});

describe("module", () => {
  // Stands for Go: knows where a module is once it is downloaded, and downloads it unless it must not.
  const goWithModules = () =>
    executable(
      "bin/go",
      `#!/bin/sh
echo "$GOFLAGS $*" >> "$GO_LOG"
case "$1" in
  list) if [ -e "$HOME/downloaded" ]; then echo "$HOME/downloaded"; fi ;;
  mod) if [ -n "$GO_FAIL" ]; then printf 'go: downloading thing\\ngo: no such host\\n' >&2; exit 1; fi; : > "$HOME/downloaded" ;;
esac
`,
    );
  const cilium = "github.com/cilium/cilium";

  test("its folder is printed, and it is downloaded once", async () => {
    goWithModules();
    const first = await tools(["module", cilium]);
    expect(first).toMatchObject({ code: 0, out: `${join(home, "downloaded")}\n` });
    expect(first.errors).toContain(`tools: downloading ${cilium} v1.19.6, once per machine`);
    expect(await tools(["module", cilium])).toEqual({ code: 0, out: first.out, errors: "" });
    expect(goCalls().filter((call) => call.includes("download"))).toEqual([`-mod=readonly mod download ${cilium}`]);
  });

  test("one that cannot be downloaded is exit code 3, with the last word of Go", async () => {
    goWithModules();
    const { code, out, errors } = await tools(["module", cilium], { GO_FAIL: "yes" });
    expect({ code, out }).toEqual({ code: 3, out: "" });
    expect(errors.split("\n").at(-2)).toBe(`tools: ${cilium} v1.19.6 cannot be downloaded: go: no such host`);
  });

  test("without Go it is exit code 3 and one line", async () => {
    expect(await tools(["module", cilium])).toEqual({
      code: 3,
      out: "",
      errors: `tools: ${cilium} v1.19.6 cannot be had without Go: install Go 1.26 or newer\n`,
    });
  });
});

describe("usage", () => {
  test.each([
    [[]],
    [["fly"]],
    [["path"]],
    [["path", "nothing"]],
    [["path", "etcd", "kubectl"]],
    [["path", "toString"]],
    [["module"]],
    [["module", "github.com/nobody/nothing"]],
  ])("%j is exit code 2, with a hint", async (args) => {
    const { code, out, errors } = await tools(args);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(errors).toContain("--help");
  });

  test("help teaches the commands, the places and the exit codes", async () => {
    const { code, out } = await tools(["--help"]);
    expect(code).toBe(0);
    for (const word of ["path NAME", "list", "build", "module MODULE", "KUBEBUILDER_ASSETS", cache(), "Exit codes"]) {
      expect(out).toContain(word);
    }
  });

  test("list shows what is where and builds nothing", async () => {
    installGo();
    const onPath = working("bin/kubectl");
    const { code, out } = await tools(["list"]);
    expect(code).toBe(0);
    expect(out).toMatch(/^etcd +v3\.6\.8 +not built yet$/m);
    expect(out).toMatch(/^kubectl +v1\.2\.3 +PATH: /m);
    expect(out).toContain(onPath);
    expect(goCalls()).toEqual([]);
  });

  test("build makes what is named even if PATH has one", async () => {
    installGo();
    working("bin/etcd");
    expect(await tools(["build", "etcd"])).toMatchObject({ code: 0, out: `${etcdInCache()}\n` });
    expect((await tools(["build", "helm"])).code).toBe(3);
  });
});

// `npm run -s test:cilium -- [VITEST ARGUMENTS]`: the tests of the project `cilium`, in a network of their own.
//
// An API server's pods/proxy refuses pods with a loopback address, and every cluster wants the same well-known ports. So
// these tests, and all servers they start, run in a network namespace where 10.255.0.0/16 belongs to the loopback
// interface: every address of it can be bound, none leaves the machine.
import { spawnSync } from "node:child_process";
import { toolPath, modulePath } from "./guarded-processes.mjs";

const probeMsMax = 20_000;
const setup = "ip link set lo up && ip address add 10.255.0.1/16 dev lo";

/**
 * The words to put before a command so that it runs in a private network; `missing` says in one line why it cannot.
 * @returns {{ prefix: readonly string[], missing?: string }}
 */
export function privateNetwork() {
  const isRoot = process.getuid?.() === 0;
  // Without root, a user namespace gives the rights that it takes, where the system lets people make one.
  const unshare = ["unshare", ...(isRoot ? [] : ["--map-root-user"]), "--net"];
  const probe = [...unshare, "sh", "-c", `${setup} && unshare --mount mount -t tmpfs none /var/lib`];
  const { error, status, stderr } = spawnSync(probe[0], probe.slice(1), { encoding: "utf8", timeout: probeMsMax });
  if (status === 0) return { prefix: [...unshare, "sh", "-c", `${setup} && exec "$@"`, "sh"] };
  const why = error?.message ?? (stderr.trim().split("\n").at(-1) || `exit code ${status}`);
  return {
    prefix: [],
    missing: `network and mount namespaces (root, or user namespaces; unshare of util-linux and ip of iproute2): ${why}`,
  };
}

/** Runs a command of which the words are given, in a private network if there can be one; tests that need one skip otherwise. */
export function runOnPrivateNetwork(words, environment) {
  // There is no way out of the network, so everything is fetched before.
  for (const name of ["kube-apiserver", "etcd", "kubectl", "kcp", "clustermesh-apiserver"])
    attempt(() => toolPath(name));
  attempt(() => modulePath("github.com/cilium/cilium"));
  const { prefix, missing } = privateNetwork();
  if (missing !== undefined) console.log(`tests are skipped for want of ${missing}`);
  const [command, ...args] = [...prefix, ...words];
  const env = { ...environment, ...(missing === undefined ? {} : { CAUSEWAY_MISSING: missing }) };
  return spawnSync(command, args, { stdio: "inherit", env });
}

/** What cannot be had is said by the tests that need it, and by the tools command on standard error. */
function attempt(obtain) {
  try {
    obtain();
  } catch (error) {
    console.error(error.message);
  }
}

if (process.argv[1] === import.meta.filename) {
  const words = ["npx", "vitest", "run", "--project", "cilium", ...process.argv.slice(2)];
  process.exitCode = runOnPrivateNetwork(words, process.env).status ?? 1;
}

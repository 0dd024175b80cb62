// The operator as a process on a host of its own, with exactly the committed roles.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isReady } from "../../test/support/guarded-processes.mjs";
import { operatorAddress } from "./fabric.ts";
import { operatorNamespace } from "./install.ts";
import type { HostProcess, Namespace } from "./namespace.ts";

const bin = fileURLToPath(new URL("../../bin/causeway.js", import.meta.url));

/** A running operator. */
export type LabOperator = {
  /** SIGTERM: it releases its Lease and ends. */
  readonly stop: () => Promise<void>;
  /** SIGKILL. */
  readonly kill: () => Promise<void>;
  /** What it logged. */
  readonly log: () => string;
};

/** Starts operators, one after the other or side by side, on one host. */
export class OperatorHost {
  readonly #host: Namespace;
  readonly #kubeconfig: string;
  readonly #running = new Set<HostProcess>();
  #started = 0;

  constructor(host: Namespace, kubeconfig: string) {
    this.#host = host;
    this.#kubeconfig = join(host.home, "hub.kubeconfig");
    writeFileSync(this.#kubeconfig, kubeconfig, { mode: 0o600 });
  }

  /** Starts an operator and answers when it serves its probes. */
  async start(args: readonly string[] = []): Promise<LabOperator> {
    this.#started += 1;
    const port = 8_080 + this.#started;
    const command = [
      process.execPath,
      bin,
      "operator",
      `--kubeconfig=${this.#kubeconfig}`,
      "--leader-elect",
      `--health-probe-bind-address=${operatorAddress}:${port}`,
      "--log-level=debug",
      ...args,
    ];
    const child = this.#host.start(`operator-${this.#started}`, command, { POD_NAMESPACE: operatorNamespace });
    this.#running.add(child);
    await child.until(() => isReady(`http://${operatorAddress}:${port}/healthz`));
    const end = async (graceMs: number): Promise<void> => {
      this.#running.delete(child);
      await child.stop(graceMs);
    };
    return { stop: () => end(10_000), kill: () => end(0), log: () => readFileSync(child.log, "utf8") };
  }

  /** Adds names to the host's /etc/hosts: the only names that the operator can resolve. */
  name(lines: readonly string[]): void {
    writeFileSync(join(this.#host.home, "etc-hosts"), ["127.0.0.1 localhost", ...lines, ""].join("\n"));
  }

  /** Ends every operator. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.#running].map((child) => child.stop()));
    this.#running.clear();
  }
}

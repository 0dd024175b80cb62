import type { Namespace } from "./namespace.ts";
import { demand } from "./unmet.ts";

/** Fails unless an address answers five pings of a host, each of them. */
export async function demandAnswers(host: Namespace, address: string): Promise<void> {
  const said = await host.run(`ping -n -q -c5 -i0.2 -W2 ${address} || true`);
  demand(/ 0% packet loss/.test(said), `${host.name} pings ${address}: ${said.trim().split("\n").at(-1)}`);
}

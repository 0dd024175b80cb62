// A TCP transfer between two pods, measured where it arrives.

import type { LabNode } from "./node.ts";
import { waitFor } from "./unmet.ts";

/** What a transfer moved. */
export type Transfer = { readonly receivedBytes: number; readonly megabitsPerSecond: number };

type Measured = {
  readonly error?: string;
  readonly end?: { readonly sum_received?: { readonly bytes: number; readonly bits_per_second: number } };
};

const port = 5201;

/** Sends from one pod to another as fast as it goes; answers with what the receiver got. `reverse` sends the other way. */
export async function transfer(
  from: LabNode,
  to: LabNode,
  { lasts = 3, reverse = false }: { readonly lasts?: number; readonly reverse?: boolean } = {},
): Promise<Transfer> {
  const server = to.pod.start("iperf3", ["iperf3", "--server", "--port", String(port)]);
  try {
    await waitFor("iperf3 to listen", async () => (await to.pod.exec(["ss", "-Hltn"])).includes(`:${port}`));
    const client = ["iperf3", "--client", to.podAddress, "--port", String(port), "--time", String(lasts), "--json"];
    // iperf3 ends with an error if nothing arrived; what it printed says so as well.
    const command = [...client, ...(reverse ? ["--reverse"] : [])].join(" ");
    const printed = await from.pod.exec(["sh", "-c", `timeout ${lasts + 10} ${command} || true`]);
    const { end, error } = JSON.parse(printed === "" ? "{}" : printed) as Measured;
    const received = end?.sum_received;
    if (received === undefined) throw new Error(`iperf3 from ${from.name} to ${to.name}: ${error ?? printed}`);
    return { receivedBytes: received.bytes, megabitsPerSecond: Math.round(received.bits_per_second / 1_000_000) };
  } finally {
    await server.stop();
  }
}

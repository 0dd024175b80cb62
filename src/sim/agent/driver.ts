// What stands between the model of Kilo's agent and a real machine.

import type { Device } from "./device.ts";
import type { NodeCore } from "./node.ts";
import type { Topology } from "./topology.ts";

/** A machine that a model agent programs. Every call is over when it returns, as it is for kg. */
export type DeviceDriver = {
  /** The device as it is, and the endpoints of those peers that it had a handshake with since it was written. */
  readonly read: (written: Device) => { readonly device: Device; readonly handshakes: ReadonlyMap<string, string> };
  /** Replaces all peers of the device, with all sessions lost. */
  readonly write: (device: Device) => void;
  /** Sets the address and the state of the device, and the routes, to what a topology wants. */
  readonly lay: (topology: Topology, nodes: readonly NodeCore[]) => void;
  /** Removes the routes. */
  readonly withdraw: () => void;
};

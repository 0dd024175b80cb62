export { settled, VirtualClock } from "../../src/sim/virtual-clock.ts";

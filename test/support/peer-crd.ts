export { peerDefinition as peerCrd } from "../../src/sim/peer-definition.ts";

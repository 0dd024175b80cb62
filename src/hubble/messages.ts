// The messages of Hubble's observer API, as much of them as we use. A test holds names, numbers and types against the
// definitions of Cilium itself.

import protobuf from "protobufjs/light.js";
import { fieldsOf } from "../core/json.ts";

const text = (id: number) => ({ type: "string", id });
const texts = (id: number) => ({ rule: "repeated", type: "string", id });
const numberOf = (id: number) => ({ type: "uint32", id });
const one = (type: string, id: number) => ({ type, id });
const many = (type: string, id: number) => ({ rule: "repeated", type, id });
const ports = { source_port: numberOf(1), destination_port: numberOf(2) };

/** The definitions in the form of protobufjs. Enumerations that we only read are numbers here. */
export const definitions: protobuf.INamespace = {
  nested: {
    google: {
      nested: {
        protobuf: {
          nested: {
            Timestamp: { fields: { seconds: one("int64", 1), nanos: one("int32", 2) } },
            BoolValue: { fields: { value: one("bool", 1) } },
          },
        },
      },
    },
    flow: {
      nested: {
        Verdict: { values: { VERDICT_UNKNOWN: 0, FORWARDED: 1, DROPPED: 2, ERROR: 3, AUDIT: 4, REDIRECTED: 5 } },
        FlowType: { values: { UNKNOWN_TYPE: 0, L3_L4: 1, L7: 2, SOCK: 3 } },
        TrafficDirection: { values: { TRAFFIC_DIRECTION_UNKNOWN: 0, INGRESS: 1, EGRESS: 2 } },
        TraceObservationPoint: { values: { UNKNOWN_POINT: 0, TO_PROXY: 1, TO_ENDPOINT: 101 } },
        DropReason: { values: { DROP_REASON_UNKNOWN: 0 } },
        Flow: {
          fields: {
            time: one("google.protobuf.Timestamp", 1),
            verdict: one("Verdict", 2),
            l4: one("Layer4", 6),
            source: one("Endpoint", 8),
            destination: one("Endpoint", 9),
            Type: one("FlowType", 10),
            event_type: one("CiliumEventType", 19),
            traffic_direction: one("TrafficDirection", 22),
            trace_observation_point: one("TraceObservationPoint", 24),
            drop_reason_desc: one("DropReason", 25),
            is_reply: one("google.protobuf.BoolValue", 26),
            egress_denied_by: many("Policy", 21004),
            ingress_denied_by: many("Policy", 21005),
          },
        },
        Layer4: {
          oneofs: { protocol: { oneof: ["TCP", "UDP", "SCTP"] } },
          fields: { TCP: one("TCP", 1), UDP: one("UDP", 2), SCTP: one("SCTP", 5) },
        },
        TCP: { fields: { ...ports, flags: one("TCPFlags", 3) } },
        UDP: { fields: ports },
        SCTP: { fields: ports },
        TCPFlags: { fields: { SYN: one("bool", 2), RST: one("bool", 3), ACK: one("bool", 5) } },
        Endpoint: { fields: { cluster_name: text(7), labels: texts(4) } },
        CiliumEventType: { fields: { type: one("int32", 1) } },
        Policy: { fields: { name: text(1), namespace: text(2), kind: text(5) } },
        LostEvent: { fields: { num_events_lost: one("uint64", 2) } },
        FlowFilter: {
          fields: {
            verdict: many("Verdict", 5),
            source_label: texts(10),
            destination_label: texts(11),
            protocol: texts(12),
            source_port: texts(13),
            destination_port: texts(14),
            reply: many("bool", 15),
            source_cluster_name: texts(37),
            destination_cluster_name: texts(38),
          },
        },
      },
    },
    relay: {
      nested: {
        NodeState: {
          values: { UNKNOWN_NODE_STATE: 0, NODE_CONNECTED: 1, NODE_UNAVAILABLE: 2, NODE_GONE: 3, NODE_ERROR: 4 },
        },
        NodeStatusEvent: { fields: { state_change: one("NodeState", 1), node_names: texts(2) } },
      },
    },
    observer: {
      nested: {
        GetFlowsRequest: { fields: { number: one("uint64", 1), whitelist: many("flow.FlowFilter", 6) } },
        GetFlowsResponse: {
          oneofs: { response_types: { oneof: ["flow", "node_status", "lost_events"] } },
          fields: {
            flow: one("flow.Flow", 1),
            node_status: one("relay.NodeStatusEvent", 2),
            lost_events: one("flow.LostEvent", 3),
          },
        },
      },
    },
  },
};

/** Where the observer's flows are asked for. */
export const getFlowsPath = "/observer.Observer/GetFlows";

/** One condition on flows; what is not there does not matter. */
export type FlowFilter = {
  readonly verdict?: readonly number[];
  /** Each a whole selector; one of them must match. */
  readonly source_label?: readonly string[];
  readonly destination_label?: readonly string[];
  readonly protocol?: readonly string[];
  readonly source_port?: readonly string[];
  readonly destination_port?: readonly string[];
  readonly reply?: readonly boolean[];
  readonly source_cluster_name?: readonly string[];
  readonly destination_cluster_name?: readonly string[];
};

/** What is asked: the last flows, as many of each node, that one of the filters matches. */
export type GetFlowsRequest = { readonly number: number; readonly whitelist: readonly FlowFilter[] };

const root = protobuf.Root.fromJSON(definitions);
const requestType = root.lookupType("observer.GetFlowsRequest");
const responseType = root.lookupType("observer.GetFlowsResponse");

/** The request as it goes over the wire. */
export const encodeRequest = (request: GetFlowsRequest): Buffer =>
  Buffer.from(requestType.encode(requestType.fromObject(request)).finish());

/** The fields of an answer, with enumerations as numbers; undefined if the bytes are no answer. */
export function decodeResponse(bytes: Uint8Array): Readonly<Record<string, unknown>> | undefined {
  try {
    return fieldsOf(
      responseType.toObject(responseType.decode(bytes), { longs: Number, enums: Number, defaults: false }),
    );
  } catch (error) {
    // protobufjs throws a RangeError or an Error with a text of its own for whatever the bytes are.
    if (error instanceof Error) return undefined;
    throw error;
  }
}

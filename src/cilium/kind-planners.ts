import { planConnectivityIntents } from "./connectivity-intent.ts";
import { planExposedServices } from "./exposed-service.ts";
import { planFabrics } from "./fabric.ts";
import { planGlobalServices } from "./global-service.ts";

/** The planners of the kinds that act on meshes, by kind. */
export const kindPlanners = {
  GlobalService: planGlobalServices,
  ConnectivityIntent: planConnectivityIntents,
  ExposedService: planExposedServices,
  Fabric: planFabrics,
} as const;

import { afterAll } from "vitest";
import { releaseFleet } from "./servers.ts";

afterAll(releaseFleet);

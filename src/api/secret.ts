import { z } from "zod";
import { apiObject, type Immutable, namespacedMetadataFields } from "./object.ts";

/** Stands where the value of a Secret was: that a key exists is known, what it holds is not. */
export const opaque = "[opaque]";

/** What we read of a Secret: that it exists, its type, and the names of its keys. A parsed Secret carries no value. */
export const secretSchema = apiObject({
  metadata: apiObject(namespacedMetadataFields),
  type: z.string().optional(),
  data: z
    .record(
      z.string(),
      z.unknown().transform((): typeof opaque => opaque),
    )
    .optional(),
});

/** A Secret without its values. */
export type Secret = Immutable<z.output<typeof secretSchema>>;

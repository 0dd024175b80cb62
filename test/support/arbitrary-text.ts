// Values as hostile or careless nodes publish them: inside and outside every grant, somebody else's, and none at all.

import * as fc from "fast-check";
import { keyOf } from "./world-recipe.ts";

const words = (text: string): fc.Arbitrary<string> => fc.constantFrom("", ...text.trim().split(/\s+/));

/** Texts that are, or look like, networks. */
export const networkText = words(`
  10.1.0.0/16 10.0.0.0/24 10.1.7.0/24 10.2.0.0/25 10.0.0.0/8 0.0.0.0/0 ::/0 10.101.0.0/24 10.101.0.2/32 10.201.0.0/16
  10.200.3.0/24 172.17.0.0/16 172.16.0.1/32 192.0.2.0/24 198.51.100.33/32 fd10:1::/48 fd10:0:0:1::/64 192.168.0.0/16
  10.1.0.9/24 10.1.0.0/33 010.1.0.0/16 10.1.0.0 256.0.0.0/8 ::ffff:10.1.0.0/112 fe80::1%eth0/64 - ten`);

/** Texts that are, or look like, addresses. */
export const addressText = words(`
  10.0.0.5 10.1.1.5 10.100.0.1 10.101.0.1 10.200.0.10 10.201.0.10 172.16.0.1 172.17.0.2 192.0.2.1 192.0.2.33 198.51.100.2
  203.0.113.7 203.0.113.8 2001:db8::1:1 fd10:1:0:1::5 127.0.0.1 169.254.169.254 ::1 ::ffff:10.1.0.1 fe80::1%eth0 999.1.1.1
  host`);

/** Texts that are, or look like, endpoints; the names are those that worlds may resolve. */
export const endpointText = fc.oneof(
  { weight: 3, arbitrary: addressText.map((ip) => (ip.includes(":") ? `[${ip}]:51820` : `${ip}:51820`)) },
  {
    weight: 1,
    arbitrary: words(`
      name.example:51820 inside.example:51820 nowhere.example:51820 192.0.2.200:0 192.0.2.200 [2001:db8::5]:51820
      192.0.2.200:99999 :51820 0x7f.1:51820 __proto__:1 constructor`),
  },
);

/** Texts that are no key, and two spellings of one. */
export const keyText = fc.oneof(
  fc.constantFrom("", "short", "A".repeat(43) + "=", keyOf(1, 0).replace("c=", "d="), "!".repeat(44), "__proto__"),
  fc.string({ maxLength: 50 }),
);

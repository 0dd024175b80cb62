declare const brand: unique symbol;

/** A value that only its parser may make: `Brand<string, "Cidr">` is a string that has been checked once and is trusted after. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** How long a slot stays taken without a renewal: two beats in a row may be lost. */
export const LEASE_S = 18

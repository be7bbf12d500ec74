/** Where a sandbox finds a source that is read in place: the network has nothing else. */
export const LOOPBACK = { host: '127.0.0.1', port: 8080 } as const

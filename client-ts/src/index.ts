export * from "./client.js";
export { MemoryError } from "./errors.js";
export { Outbox, type Refused, type StoredTurn, type Turn } from "./outbox.js";
export type { components, paths } from "./openapi.js";

// @ts-check
// Code generated from internal/plan/table.go by `go generate ./internal/plan`. DO NOT EDIT.

/** The number of streams of a soak, unless CONNECTIONS or an option of k6 sets it. */
export const DEFAULT_CONNECTIONS = 1200;

/** Seconds before the end of the run at which each client requests the end of its stream. */
export const DISCONNECT_LEAD = 5;

/** The modules of load-tests/services, by name. */
export const SERVICES = Object.freeze(['a2a', 'ag-ui', 'anthropic-messages', 'centrifugo', 'django-eventstream', 'graphql-sse', 'mcp', 'mercure', 'nchan', 'noop', 'ntfy', 'openai-chat', 'openai-responses', 'pocketbase', 'sse']);

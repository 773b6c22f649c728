// @ts-check
// Code generated from internal/plan/table.go by `go generate ./internal/plan`. DO NOT EDIT.

/** How many streams a soak holds where neither CONNECTIONS nor an option of k6 says. */
export const USUAL_CONNECTIONS = 1200;

/** How many seconds before the end of the run each connection asks the server to end its stream. */
export const DISCONNECT_LEAD = 5;

/** The modules of load-tests/services, by name. */
export const SERVICES = Object.freeze(['a2a', 'ag-ui', 'anthropic-messages', 'centrifugo', 'django-eventstream', 'graphql-sse', 'mcp', 'mercure', 'nchan', 'noop', 'ntfy', 'openai-chat', 'openai-responses', 'pocketbase', 'sse']);
